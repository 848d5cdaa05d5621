"""Two documents, and a question that one of them answers."""

from __future__ import annotations

LEAVE = "Employees may take fifteen days of annual leave. Unused leave expires in March."
PRINTER = "The printer stands on the third floor. Its paper tray holds five hundred sheets."
QUESTION = "How many days of annual leave may employees take?"
