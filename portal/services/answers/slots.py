"""The limits on answers that a process writes at the same time.

Each answer occupies a thread of the web server; without a limit, slow answers would leave none for
other requests. A limit per user keeps one user from taking all.
"""

from __future__ import annotations

from collections import Counter
from threading import RLock
from uuid import UUID

from portal.errors import TooManyAnswers, TooManyOwnAnswers
from portal.settings import ChatSettings


class AnswerSlots:
    """The slots in use. Thread-safe."""

    def __init__(self) -> None:
        # A slot may be garbage-collected, and so released, within any allocation of `take`.
        self._lock = RLock()
        self._taken = 0
        self._by_user: Counter[UUID] = Counter()

    @property
    def taken(self) -> int:
        return self._taken

    def take(self, user_id: UUID, settings: ChatSettings) -> Slot:
        """Take a slot for a user's answer, within the limits of `settings`. Raises TooManyAnswers,
        TooManyOwnAnswers."""
        with self._lock:
            if self._taken >= settings.concurrent_answers:
                raise TooManyAnswers
            if self._by_user[user_id] >= settings.answers_per_user:
                raise TooManyOwnAnswers(max=settings.answers_per_user)
            self._taken += 1
            self._by_user[user_id] += 1
        return Slot(self, user_id)

    def _release(self, user_id: UUID) -> None:
        with self._lock:
            self._taken -= 1
            self._by_user[user_id] -= 1
            if not self._by_user[user_id]:
                del self._by_user[user_id]


class Slot:
    """A slot, released once however often `release` is called, and also on garbage collection."""

    def __init__(self, slots: AnswerSlots, user_id: UUID) -> None:
        self._slots: AnswerSlots | None = slots
        self._user_id = user_id

    def __del__(self) -> None:
        self.release()

    def release(self) -> None:
        slots, self._slots = self._slots, None
        if slots is not None:
            slots._release(self._user_id)  # noqa: SLF001 - private to this module
