"""Models beside the configured one, loaded when they are asked for: while the portal goes from one
model to another, a process embeds with both."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path

from cachetools import LRUCache

from portal.domain.caching import SharedCache
from portal.domain.embedding import Embedder
from portal.embeddings import create_embedder
from portal.embeddings.calibration import Calibration
from portal.embeddings.eventual import PATIENCE_S, EventualCalibration
from portal.settings import EmbeddingSettings

# One serves, one is built, one is kept to go back to.
MAX_MODELS = 4


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """An embedding model that is ready to use, and what its cosines mean."""

    embedder: Embedder
    calibration: Calibration


@dataclass(slots=True)
class _Slot:
    """A model's place, held while the model is made: those who want the same wait for it, and
    nobody else does."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    model: LoadedModel | None = None


class LoadedModels:
    """A bounded memory of models, safe for threads. A model that does not load stays in it: its
    provider retries after a while, and says why until then."""

    def __init__(self, *, max_models: int = MAX_MODELS) -> None:
        self._slots: LRUCache[str, _Slot] = LRUCache(maxsize=max_models)
        self._lock = threading.Lock()

    def get(
        self,
        settings: EmbeddingSettings,
        cache_dir: Path,
        cache: SharedCache | None = None,
        *,
        patience_s: float = PATIENCE_S,
    ) -> LoadedModel:
        """The model that the settings name, whose questions go to `cache`. The first time waits
        `patience_s` seconds at most for its calibration, which comes later. Raises
        EmbedderUnavailable when there is none."""
        slot = self._slot(_key(settings, cache_dir))
        with slot.lock:
            if slot.model is None:
                embedder = create_embedder(settings, cache)
                calibration = EventualCalibration(embedder, cache_dir, patience_s=0)
                slot.model = LoadedModel(embedder, calibration)
            model = slot.model
        # Outside the lock: a caller that cannot wait must not wait for one that can.
        if isinstance(model.calibration, EventualCalibration):
            model.calibration.wait(patience_s)
        return model

    def peek(self, settings: EmbeddingSettings, cache_dir: Path) -> LoadedModel | None:
        """What `get` would give at once; None where it would have to be made."""
        with self._lock:
            slot = self._slots.get(_key(settings, cache_dir))
        return slot.model if slot is not None else None

    def _slot(self, key: str) -> _Slot:
        with self._lock:
            slot = self._slots.get(key)
            if slot is None:
                slot = self._slots[key] = _Slot()
            return slot


def _key(settings: EmbeddingSettings, cache_dir: Path) -> str:
    # The text of the settings shows no secret, and tells apart all that changes vectors.
    return f"{settings!r} {cache_dir}"
