"""A reranker with a deadline."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from portal.domain.health import HealthSample
from portal.domain.search.reranking import Reranker
from portal.errors import RerankerUnavailable

# A model that is always late would add its whole timeout to every search.
MAX_FAILURES = 3
REST_S = 30.0
_PROBE_TIMEOUT_S = 5.0


class _Call(threading.Thread):
    """One call of the model, in a daemon thread so that a hanging call does not block exit."""

    def __init__(self, score: Callable[[], list[float]], *, ends_at: float) -> None:
        super().__init__(name="reranker", daemon=True)
        self.ends_at = ends_at
        self.finished = threading.Event()
        self.found: list[float] | None = None
        self.error: BaseException | None = None
        self._score = score

    def run(self) -> None:
        try:
            self.found = self._score()
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            self.error = error
        finally:
            self.finished.set()


class TimeBoxed:
    """Runs a reranker in a thread, and stops waiting when its time is over. Thread-safe.

    One call runs at a time. Others wait for it as long as they have time themselves, but not if it
    is overdue: while it hangs, they fail at once. After `MAX_FAILURES` failures in a row the model
    rests for `REST_S` seconds.
    """

    def __init__(self, reranker: Reranker, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._reranker = reranker
        self._clock = clock
        self._turn = threading.Lock()
        self._running: _Call | None = None
        self._failures = 0
        self._rests_until = 0.0
        self._health: HealthSample | None = None

    @property
    def health(self) -> HealthSample | None:
        """Return whether the last call gave scores in time."""
        return self._health

    def probe(self) -> None:
        """Score one short chunk, however long the model takes to load. Raises
        RerankerUnavailable."""
        self._reranker.load()
        self.scores("?", ["?"], deadline_s=_PROBE_TIMEOUT_S)

    @property
    def name(self) -> str:
        return self._reranker.name

    def load(self) -> None:
        self._reranker.load()

    def scores(self, query: str, chunks: Sequence[str], *, deadline_s: float) -> list[float]:
        try:
            found = self._scores(query, chunks, deadline_s)
        except RerankerUnavailable:
            self._health = HealthSample(ok=False)
            raise
        self._health = HealthSample(ok=True)
        return found

    def _scores(self, query: str, chunks: Sequence[str], deadline_s: float) -> list[float]:
        ends_at = self._clock() + deadline_s
        call = self._begin(query, chunks, ends_at)
        if not call.finished.wait(max(0.0, ends_at - self._clock())):
            self._note_failure()
            raise RerankerUnavailable(
                "it took more than %(seconds)s seconds", seconds=f"{deadline_s:g}"
            )
        if call.error is not None:
            self._note_failure()
            if isinstance(call.error, RerankerUnavailable):
                raise call.error
            raise RerankerUnavailable(
                "it failed (%(error)s)", error=f"{type(call.error).__name__}: {call.error}"
            ) from call.error
        self._failures = 0
        return call.found or []

    def _begin(self, query: str, chunks: Sequence[str], ends_at: float) -> _Call:
        while True:
            with self._turn:
                running = self._running
                if running is None or running.finished.is_set():
                    return self._start(query, chunks, ends_at)
            self._wait_for(running, ends_at)

    def _start(self, query: str, chunks: Sequence[str], ends_at: float) -> _Call:
        rest_s = self._rests_until - self._clock()
        if rest_s > 0:
            raise RerankerUnavailable(
                "it failed repeatedly and is paused for %(seconds)s more seconds",
                seconds=f"{rest_s:.0f}",
            )
        left_s = max(0.0, ends_at - self._clock())
        call = _Call(
            lambda: self._reranker.scores(query, chunks, deadline_s=left_s), ends_at=ends_at
        )
        self._running = call
        call.start()
        return call

    def _wait_for(self, running: _Call, ends_at: float) -> None:
        now = self._clock()
        if now >= running.ends_at:
            raise RerankerUnavailable("it is still working on an earlier question")
        if not running.finished.wait(max(0.0, min(running.ends_at, ends_at) - now)):
            raise RerankerUnavailable("it is busy with other questions")

    def _note_failure(self) -> None:
        self._failures += 1
        if self._failures >= MAX_FAILURES:
            self._rests_until = self._clock() + REST_S
