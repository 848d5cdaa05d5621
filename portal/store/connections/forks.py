"""Connections, locks and threads that a forked worker must leave to its parent."""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


class Forked(Protocol):
    def leave_to_parent(self) -> None:
        """Forget, in a forked child, the connections, locks and threads that are the parent's."""


_kept: WeakSet[Forked] = WeakSet()


def watch(kept: Forked) -> None:
    """Have `leave_to_parent` called in each forked child."""
    _kept.add(kept)


def _leave_all() -> None:
    for one in list(_kept):
        one.leave_to_parent()


os.register_at_fork(after_in_child=_leave_all)
