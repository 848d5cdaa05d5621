"""A reader that reads nothing, to test which layers of confinement hold on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO


def read(_file: BinaryIO) -> Iterator[dict[str, Any]]:
    """Yield one record, which shows that the reader could run."""
    yield {"is_alive": True}
