"""The chat model that administrators chose, cached between answers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable

from portal.domain.answering import ChatModel


class BuiltModel:
    """The last model that was built, with the key that it was built from. Thread-safe. A replaced
    model is not closed, because unfinished answers still use it. Its connections end when the last
    of them releases it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._built: tuple[Hashable, ChatModel] | None = None

    def get(self, key: Hashable, build: Callable[[], ChatModel]) -> ChatModel:
        """Return the model for `key`, building it if the key has changed."""
        with self._lock:
            if self._built is None or self._built[0] != key:
                self._built = key, build()
            return self._built[1]
