"""Ways for a process to die. Imports little, so that the process starts quickly."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any


def die_of_a_signal(*_: Any) -> None:
    """Die of a signal, like a parser with an invalid memory access."""
    os.kill(os.getpid(), signal.SIGSEGV)


def end_as_asked(*_: Any) -> None:
    """Exit as if a service manager stopped all processes of the portal at once."""
    os.kill(os.getpid(), signal.SIGTERM)


def end_of_an_error(*_: Any) -> None:
    """Exit as if the database were gone and nothing could be recorded."""
    sys.exit(1)
