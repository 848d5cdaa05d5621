"""How a process dies. It imports nothing, so that one that is to die is quick to start."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any


def die_of_a_signal(*_: Any) -> None:
    """As of a parser that reads where it must not."""
    os.kill(os.getpid(), signal.SIGSEGV)


def end_as_asked(*_: Any) -> None:
    """As when a service manager stops all processes of the portal at once."""
    os.kill(os.getpid(), signal.SIGTERM)


def end_of_an_error(*_: Any) -> None:
    """As when the database is gone, and nothing can be noted."""
    sys.exit(1)
