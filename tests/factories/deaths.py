"""Ways for a process to die. Imports little, so that such a process starts quickly."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any


def die_of_a_signal(*_: Any) -> None:
    """Die of a signal, like a parser with an invalid memory access."""
    os.kill(os.getpid(), signal.SIGSEGV)


def end_as_asked(*_: Any) -> None:
    """End as when a service manager stops all processes of the portal at once."""
    os.kill(os.getpid(), signal.SIGTERM)


def end_of_an_error(*_: Any) -> None:
    """End as when the database is gone and nothing can be recorded."""
    sys.exit(1)
