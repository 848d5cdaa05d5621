"""One answer for all who ask the same at the same time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock
from typing import Generic, TypeVar

Result = TypeVar("Result")


class SingleFlight(Generic[Result]):
    """Whoever asks while another's question is under way gets that one's answer. Safe between
    threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._under_way: Future[Result] | None = None

    def ask(self, find: Callable[[], Result]) -> Result:
        """What `find` gives, or raises, to whoever asked first."""
        with self._lock:
            others, mine = self._under_way, Future[Result]()
            if others is None:
                self._under_way = mine
        if others is not None:
            return others.result()
        try:
            mine.set_result(find())
        except BaseException as error:
            mine.set_exception(error)
            raise
        finally:
            with self._lock:
                self._under_way = None
        return mine.result()
