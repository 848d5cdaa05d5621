"""Loading of a model in the background; each caller chooses how long to wait."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from portal.errors import N_, EmbedderUnavailable, Message

T = TypeVar("T")

# Set in processes that serve users: see `mark_as_serving`.
_serves = threading.Event()

# A load that fails because the hub is unreachable takes a minute itself.
RETRY_AFTER_S = 60.0


def mark_as_serving() -> None:
    """Mark this process as one whose users wait for embeddings.

    If the model is not loaded in time, keyword search answers without it. A command line or a
    worker waits instead.
    """
    _serves.set()


def query_wait_s(timeout_s: float) -> float | None:
    """Return how long a query waits for a local model; None to wait until it is loaded."""
    return timeout_s if _serves.is_set() else None


class _Attempt(threading.Thread, Generic[T]):
    """One load, in a daemon thread, so that a hanging download does not keep the process alive."""

    def __init__(self, load: Callable[[], T], clock: Callable[[], float]) -> None:
        super().__init__(name="model-load", daemon=True)
        self.process = os.getpid()
        self.finished = threading.Event()
        self.model: T | None = None
        self.failure: Message | None = None
        self.failed_at = 0.0
        self._load = load
        self._clock = clock

    def run(self) -> None:
        try:
            self.model = self._load()
        except EmbedderUnavailable as error:
            self.failure = error.reason
        except Exception as error:  # noqa: BLE001 - the waiting caller must get any error
            said = f"{type(error).__name__}: {error}"
            self.failure = N_("it does not load (%(error)s)", error=said)
        finally:
            self.failed_at = self._clock()
            self.finished.set()


class BackgroundLoad(Generic[T]):
    """A value loaded on first use. After a failure, calls fail at once for `RETRY_AFTER_S`.

    Then it is loaded again. Thread-safe, and fork-safe. `clock` is monotonic seconds.
    """

    def __init__(
        self, load: Callable[[], T], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._load = load
        self._clock = clock
        self._lock = threading.Lock()
        self._attempt: _Attempt[T] | None = None

    @property
    def has_begun(self) -> bool:
        """Return whether anything is loaded or being loaded."""
        return self._attempt is not None

    def get(self, *, wait_s: float | None = None) -> T:
        """Return the loaded value.

        Waits up to `wait_s` seconds for a load in progress, by default until it ends. Raises
        EmbedderUnavailable.
        """
        attempt = self._current()
        if not attempt.finished.wait(wait_s):
            raise EmbedderUnavailable("it is still being loaded")
        if attempt.model is None:
            raise EmbedderUnavailable(attempt.failure)
        return attempt.model

    def _current(self) -> _Attempt[T]:
        with self._lock:
            if self._attempt is None or self._is_over(self._attempt):
                self._attempt = _Attempt(self._load, self._clock)
                self._attempt.start()
            return self._attempt

    def _is_over(self, attempt: _Attempt[T]) -> bool:
        if not attempt.finished.is_set():
            return attempt.process != os.getpid()  # Its thread stayed with the parent.
        return attempt.failure is not None and self._clock() >= attempt.failed_at + RETRY_AFTER_S
