"""Lists that are read page by page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class ListPage(Generic[Item]):
    """A page of a list; `next_cursor` is None at the end."""

    items: tuple[Item, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class CountedPage(ListPage[Item]):
    """A page of a list whose whole length is known."""

    total_count: int
