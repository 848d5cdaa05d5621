"""How many answers a process writes at the same time.

Each holds a thread of the web server while it is written; without a bound, slow answers would
leave none for anything else.
"""

from __future__ import annotations

from threading import Lock

from portal.errors import TooManyAnswers


class AnswerSlots:
    """Safe between threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._taken = 0

    @property
    def taken(self) -> int:
        return self._taken

    def take(self, most: int) -> Slot:
        """A place among `most`. Raises TooManyAnswers."""
        with self._lock:
            if self._taken >= most:
                raise TooManyAnswers
            self._taken += 1
        return Slot(self)

    def _give_back(self) -> None:
        with self._lock:
            self._taken -= 1


class Slot:
    """One place; given back once, however often it is released, and also when it is forgotten."""

    def __init__(self, slots: AnswerSlots) -> None:
        self._slots: AnswerSlots | None = slots

    def __del__(self) -> None:
        self.release()

    def release(self) -> None:
        slots, self._slots = self._slots, None
        if slots is not None:
            slots._give_back()  # noqa: SLF001 - the two are one
