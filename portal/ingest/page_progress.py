"""How far reading a file is, and whether it is still wanted: for whoever waits for it.

A context rather than an argument, because most formats have no pages to count and would only hand
it on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Follow = Callable[[int, int], None]
"""Called with the number of pages that are done, and of all. What it raises ends the reading."""
Check = Callable[[], None]
"""Called in another thread, about twice a second, while a process reads. What it raises ends the
reading at once."""


def _nothing() -> None:
    pass


_follow: ContextVar[Follow | None] = ContextVar("follow", default=None)
_check: ContextVar[Check] = ContextVar("check", default=_nothing)


@contextmanager
def followed_by(follow: Follow, *, check: Check = _nothing) -> Iterator[None]:
    """Within, each page that is read is told, and `check` is asked whether to go on."""
    token, check_token = _follow.set(follow), _check.set(check)
    try:
        yield
    finally:
        _follow.reset(token)
        _check.reset(check_token)


def tell(done: int, total: int) -> None:
    """Say that `done` of `total` pages are read, to whoever follows."""
    follow = _follow.get()
    if follow is not None:
        follow(done, total)


def current_check() -> Check:
    """Return the check of this context, to be called in another thread."""
    return _check.get()
