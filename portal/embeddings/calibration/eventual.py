"""Calibration of a model that may not answer yet, without delaying the start."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import structlog

from portal.domain.embedding import Embedder, Vector
from portal.embeddings.calibration import Calibration, QueryStatistics
from portal.embeddings.calibration import background as backgrounds
from portal.embeddings.calibration.confidence import load_models
from portal.errors import EmbedderUnavailable, InvalidEmbedding

# Long enough for a local model, so that the first search has its calibration.
CALIBRATION_TIMEOUT_S = 10.0
RETRY_AFTER_S = 5.0

log = structlog.get_logger(__name__)


class EventualCalibration(Calibration):
    """A calibration that is neutral until the model has embedded its background.

    A thread tries this at creation and then as questions arrive, no more often than every
    `RETRY_AFTER_S`. Thread-safe. `clock` is monotonic seconds.
    """

    def __init__(
        self,
        embedder: Embedder,
        cache_dir: Path | None = None,
        *,
        timeout_s: float = CALIBRATION_TIMEOUT_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Wait up to `timeout_s` seconds for the first attempt."""
        super().__init__(background=None, models=load_models(embedder.name))
        self._embedder = embedder
        self._cache_dir = cache_dir
        self._clock = clock
        self._trying = threading.Lock()
        self._try_at = clock()
        self._attempt = self._try()
        self.wait(timeout_s)

    def wait(self, timeout_s: float) -> None:
        """Wait up to `timeout_s` seconds for the first attempt."""
        if self._attempt is not None:
            self._attempt.join(timeout_s)

    def query_statistics(self, query_vector: Vector, query: str) -> QueryStatistics:
        # The model has just embedded the question, so it is available again. A background of
        # another length was embedded before the right length was known.
        if self.ready and not self._fits_length(len(query_vector)):
            self._background = None
        self._try()
        return super().query_statistics(query_vector, query)

    def _try(self) -> threading.Thread | None:
        if self.ready or self._clock() < self._try_at or not self._trying.acquire(blocking=False):
            return None
        self._try_at = self._clock() + RETRY_AFTER_S
        attempt = threading.Thread(target=self._calibrate, name="calibration", daemon=True)
        attempt.start()
        return attempt

    def _calibrate(self) -> None:
        try:
            if not self._is_kept():
                # Probe with one question first: chunks are requested with many retries.
                self._embedder.embed_query("?")
            made = Calibration.for_model(self._embedder, self._cache_dir)
            # A single assignment, so that a concurrent search sees all of it or nothing.
            self.__dict__ = self.__dict__ | made.__dict__
        except (EmbedderUnavailable, InvalidEmbedding, OSError) as error:
            log.warning("model_not_calibrated", model=self._embedder.name, reason=str(error))
        finally:
            self._trying.release()

    def _is_kept(self) -> bool:
        """Return whether the background is available without loading the model."""
        name = backgrounds.file_name(self._embedder)
        folders = [backgrounds.SHIPPED, *([self._cache_dir] if self._cache_dir else [])]
        return any((folder / name).is_file() for folder in folders)
