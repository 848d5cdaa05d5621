"""Reads nothing: it is started to see which layers of confinement hold on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO


def read(_file: BinaryIO) -> Iterator[dict[str, Any]]:
    """Yield one record, which says that it came this far."""
    yield {"is_alive": True}
