"""Models besides the configured one, loaded on demand.

During a switch from one model to another, a process embeds with both.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path

from cachetools import LRUCache

from portal.domain.caching import SharedCache
from portal.domain.embedding import Embedder
from portal.embeddings import create_embedder
from portal.embeddings.calibration import Calibration
from portal.embeddings.calibration.eventual import CALIBRATION_TIMEOUT_S, EventualCalibration
from portal.settings import EmbeddingSettings

# One is active, one is being built, one is kept to switch back to, one is compared with them.
MAX_MODELS = 4


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """An embedding model that is ready to use, with its calibration."""

    embedder: Embedder
    calibration: Calibration


@dataclass(slots=True)
class _Slot:
    """A slot for one model, locked while the model is created: only callers of that model wait."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    model: LoadedModel | None = None


class LoadedModels:
    """A bounded cache of models, thread-safe.

    A model that fails to load stays cached: its provider retries after a while, and reports the
    reason until then.
    """

    def __init__(self, *, max_models: int = MAX_MODELS) -> None:
        self._slots: LRUCache[str, _Slot] = LRUCache(maxsize=max_models)
        self._lock = threading.Lock()

    def get(
        self,
        settings: EmbeddingSettings,
        cache_dir: Path,
        cache: SharedCache | None = None,
        *,
        timeout_s: float = CALIBRATION_TIMEOUT_S,
    ) -> LoadedModel:
        """Return the model for these settings; its queries share `cache`.

        The first call waits up to `timeout_s` seconds for the calibration, which otherwise follows
        later. Raises EmbedderUnavailable if there is no such model.
        """
        slot = self._slot(_key(settings, cache_dir))
        with slot.lock:
            if slot.model is None:
                embedder = create_embedder(settings, cache, cache_dir)
                calibration = EventualCalibration(embedder, cache_dir, timeout_s=0)
                slot.model = LoadedModel(embedder, calibration)
            model = slot.model
        # Outside the lock, so that a caller that cannot wait is not held up by one that can.
        if isinstance(model.calibration, EventualCalibration):
            model.calibration.wait(timeout_s)
        return model

    def peek(self, settings: EmbeddingSettings, cache_dir: Path) -> LoadedModel | None:
        """Return the model that `get` would return at once; None if it is not cached."""
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
    # The text of the settings shows no secrets, and differs for everything that changes vectors.
    return f"{settings!r} {cache_dir}"
