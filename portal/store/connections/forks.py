"""Connections, locks and threads that a forked worker must leave to its parent."""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


class Forked(Protocol):
    def after_fork_in_child(self) -> None:
        """Forget, in a forked child, the connections, locks and threads that are the parent's."""


_kept: WeakSet[Forked] = WeakSet()


def watch(kept: Forked) -> None:
    """Have `after_fork_in_child` called in each forked child."""
    _kept.add(kept)


def _after_fork() -> None:
    for one in list(_kept):
        one.after_fork_in_child()


os.register_at_fork(after_in_child=_after_fork)
