"""One computation for concurrent callers."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock
from typing import Generic, TypeVar

Result = TypeVar("Result")


class SingleFlight(Generic[Result]):
    """Lets concurrent callers share the result of one call. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._under_way: Future[Result] | None = None

    def ask(self, find: Callable[[], Result]) -> Result:
        """Return or raise the result of the call in progress; without one, call `find`."""
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
