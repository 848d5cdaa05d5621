"""How far reading a file is: whoever waits for it is told, page by page.

A context rather than an argument, because most formats have no pages to count and would only hand
it on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Follow = Callable[[int, int], None]
"""Called with the number of pages that are done, and of all. What it raises ends the reading."""

_follow: ContextVar[Follow | None] = ContextVar("follow", default=None)


@contextmanager
def followed_by(follow: Follow) -> Iterator[None]:
    """Within, each page that is read is told."""
    token = _follow.set(follow)
    try:
        yield
    finally:
        _follow.reset(token)


def tell(done: int, total: int) -> None:
    """Say that `done` of `total` pages are read, to whoever follows."""
    follow = _follow.get()
    if follow is not None:
        follow(done, total)
