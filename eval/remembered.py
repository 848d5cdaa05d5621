"""An embedder with a cache on disk, so that only the first evaluation is slow."""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from portal.domain.embedding import Embedder, Vector

KEPT = Path("var") / "eval" / "vectors.sqlite"


class Remembered:
    """Caches the vectors of an embedder by model, kind and text."""

    def __init__(self, embedder: Embedder, path: Path = KEPT) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._embedder = embedder
        self._lock = threading.Lock()
        self._kept = sqlite3.connect(path, check_same_thread=False, timeout=60)
        self._kept.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB)")

    @property
    def name(self) -> str:
        return self._embedder.name

    @property
    def dimensions(self) -> int:
        return self._embedder.dimensions

    def embed_query(self, text: str) -> Vector:
        return self._known(f"query\0{text}", lambda: self._embedder.embed_query(text))

    def embed_chunks(self, texts: Sequence[str]) -> Vector:
        return np.stack([self._chunk(text) for text in texts])

    def _chunk(self, text: str) -> Vector:
        return self._known(text, lambda: self._embedder.embed_chunks([text])[0])

    def remember(self, text: str, vector: Vector, *, is_query: bool = False) -> None:
        """Store a vector that was computed elsewhere."""
        self._keep(f"query\0{text}" if is_query else text, vector)

    def _known(self, text: str, compute: Callable[[], Vector]) -> Vector:
        with self._lock:
            row = self._kept.execute(
                "SELECT vector FROM vectors WHERE key = ?", (self._key(text),)
            ).fetchone()
            if row is not None:
                return np.frombuffer(row[0], dtype=np.float32)
            vector = compute()
            self._keep(text, vector)
            return vector

    def _keep(self, text: str, vector: Vector) -> None:
        row = (self._key(text), vector.astype(np.float32).tobytes())
        self._kept.execute("INSERT OR REPLACE INTO vectors VALUES (?, ?)", row)
        self._kept.commit()

    def _key(self, text: str) -> bytes:
        return hashlib.blake2b(f"{self.name}\0{text}".encode(), digest_size=16).digest()
