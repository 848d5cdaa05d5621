"""A conversation over two documents."""

from __future__ import annotations

import pytest

from portal.services.answers import conversations
from tests.conftest import Portal


@pytest.fixture
def talk(portal: Portal) -> object:
    portal.add(LEAVE, title="Leave policy")
    portal.add(PRINTER, title="Printer manual")
    return conversations.create(portal.services, portal.admin).id


LEAVE = "Employees may take fifteen days of annual leave. Unused leave expires in March."
PRINTER = "The printer stands on the third floor. Its paper tray holds five hundred sheets."
QUESTION = "How many days of annual leave may employees take?"
