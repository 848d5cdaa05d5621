"""An embedder with a cache on disk, so that only the first evaluation is slow."""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from portal.domain.embedding import Embedder, Vector

CACHE_FILE = Path("var") / "eval" / "vectors.sqlite"


class CachedEmbedder:
    """Caches the vectors of an embedder by model, kind and text."""

    def __init__(self, embedder: Embedder, path: Path = CACHE_FILE) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._embedder = embedder
        self._lock = threading.Lock()
        self._cache = sqlite3.connect(path, check_same_thread=False, timeout=60)
        self._cache.execute(
            "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB)"
        )

    @property
    def name(self) -> str:
        return self._embedder.name

    @property
    def dimensions(self) -> int:
        return self._embedder.dimensions

    def embed_query(self, text: str) -> Vector:
        return self._load(f"query\0{text}", lambda: self._embedder.embed_query(text))

    def embed_chunks(self, texts: Sequence[str]) -> Vector:
        return np.stack([self._chunk(text) for text in texts])

    def _chunk(self, text: str) -> Vector:
        return self._load(text, lambda: self._embedder.embed_chunks([text])[0])

    def _load(self, text: str, compute: Callable[[], Vector]) -> Vector:
        with self._lock:
            row = self._cache.execute(
                "SELECT vector FROM vectors WHERE key = ?", (self._key(text),)
            ).fetchone()
            if row is not None:
                return np.frombuffer(row[0], dtype=np.float32)
            vector = compute()
            values = (self._key(text), vector.astype(np.float32).tobytes())
            self._cache.execute("INSERT OR REPLACE INTO vectors VALUES (?, ?)", values)
            self._cache.commit()
            return vector

    def _key(self, text: str) -> bytes:
        return hashlib.blake2b(f"{self.name}\0{text}".encode(), digest_size=16).digest()
