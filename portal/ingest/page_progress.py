"""Progress and cancellation of reading a file.

A context rather than an argument, because most formats have no pages to count and would only pass
it on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Follow = Callable[[int, int], None]
"""Called with the number of pages done, and of all pages. An exception from it ends the reading."""
Check = Callable[[], None]
"""Called in another thread, about twice a second, while a process reads.

An exception from it ends the reading at once.
"""


def _nothing() -> None:
    pass


_follow: ContextVar[Follow | None] = ContextVar("follow", default=None)
_check: ContextVar[Check] = ContextVar("check", default=_nothing)


@contextmanager
def followed_by(follow: Follow, *, check: Check = _nothing) -> Iterator[None]:
    """Report each page read to `follow`, and let `check` stop the reading, within the context."""
    token, check_token = _follow.set(follow), _check.set(check)
    try:
        yield
    finally:
        _follow.reset(token)
        _check.reset(check_token)


def tell(done: int, total: int) -> None:
    """Report that `done` of `total` pages are read."""
    follow = _follow.get()
    if follow is not None:
        follow(done, total)


def current_check() -> Check:
    """Return the check of this context, to be called in another thread."""
    return _check.get()
