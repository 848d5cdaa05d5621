"""The calibration of a model that may not answer yet: no process waits for it to start."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import structlog

from portal.domain.embedding import Embedder, Vector
from portal.embeddings import background as backgrounds
from portal.embeddings.calibration import Calibration, QueryStatistics
from portal.embeddings.confidence import load_weighings
from portal.errors import EmbedderUnavailable, InvalidEmbedding

# Long enough for a model on this machine, so that the first search has it already.
PATIENCE_S = 10.0
AGAIN_AFTER_S = 5.0

log = structlog.get_logger(__name__)


class EventualCalibration(Calibration):
    """Neutral at first, and the model's own as soon as the model has embedded its background.

    That is tried in a thread, when it is made and then as questions come, at most once in
    `again_after_s`. Safe for threads. `clock` is monotonic seconds.
    """

    def __init__(
        self,
        embedder: Embedder,
        cache_dir: Path | None = None,
        *,
        patience_s: float = PATIENCE_S,
        again_after_s: float = AGAIN_AFTER_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Waits `patience_s` seconds at most for the first attempt."""
        super().__init__(background=None, weighings=load_weighings(embedder.name))
        self._embedder = embedder
        self._cache_dir = cache_dir
        self._again_after_s = again_after_s
        self._clock = clock
        self._trying = threading.Lock()
        self._try_at = clock()
        self._attempt = self._try()
        self.wait(patience_s)

    def wait(self, patience_s: float) -> None:
        """Wait for the first attempt, this many seconds at most."""
        if self._attempt is not None:
            self._attempt.join(patience_s)

    def query_statistics(self, query_vector: Vector, query: str) -> QueryStatistics:
        # The model has just embedded the question: if it was away, it is back. If its background
        # has another length, that was made before it was known which one is right.
        if self.ready and not self._knows_length(len(query_vector)):
            self._background = None
        self._try()
        return super().query_statistics(query_vector, query)

    def _try(self) -> threading.Thread | None:
        if self.ready or self._clock() < self._try_at or not self._trying.acquire(blocking=False):
            return None
        self._try_at = self._clock() + self._again_after_s
        attempt = threading.Thread(target=self._calibrate, name="calibration", daemon=True)
        attempt.start()
        return attempt

    def _calibrate(self) -> None:
        try:
            if not self._is_kept():
                # One question goes first: chunks are asked for with patience and many retries.
                self._embedder.embed_query("?")
            made = Calibration.for_model(self._embedder, self._cache_dir)
            # One step, so that a search meanwhile has either all of it or nothing.
            self.__dict__ = self.__dict__ | made.__dict__
        except (EmbedderUnavailable, InvalidEmbedding, OSError) as error:
            log.warning("model_not_calibrated", model=self._embedder.name, reason=str(error))
        finally:
            self._trying.release()

    def _is_kept(self) -> bool:
        """Whether the background need not be embedded, nor a model be loaded for it."""
        name = backgrounds.file_name(self._embedder)
        folders = [backgrounds.SHIPPED, *([self._cache_dir] if self._cache_dir else [])]
        return any((folder / name).is_file() for folder in folders)
