"""The chat model that administrators chose, kept between answers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable

from portal.domain.answering import ChatModel


class BuiltModel:
    """The last model that was built, with what it was built from. Thread-safe.

    One that is replaced is not closed: answers under way still use it. Its connections end when
    the last of them lets go of it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._built: tuple[Hashable, ChatModel] | None = None

    def get(self, key: Hashable, build: Callable[[], ChatModel]) -> ChatModel:
        """Return the model of `key`; build it when another one was chosen meanwhile."""
        with self._lock:
            if self._built is None or self._built[0] != key:
                self._built = key, build()
            return self._built[1]
