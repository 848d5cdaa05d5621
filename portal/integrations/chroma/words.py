"""Rank words over a Chroma collection that has no sparse index.

The index is in the memory of this process. The first search by words builds it from the collection,
and writes through the store keep it up to date. Changes by other programs are noticed by the number
of records and, for a directory, by the state of its database file; from a server, everything is
read again after `RECHECK_S` seconds. A refresh analyses only records that differ. Results are
always read from the collection; if one differs from the index, the index is refreshed and the
search is repeated once.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any

import structlog

from portal.domain.search.bm25 import Bm25Parameters
from portal.domain.search.semantic import SemanticChunk
from portal.integrations.chroma.client import DATABASE_FILE, Client
from portal.integrations.chroma.collection import OpenCollection, chunks_of
from portal.integrations.chroma.lexical_index import LexicalIndex
from portal.integrations.chunk_store import CONTENT_TYPE

RECHECK_S = 30.0
"""How long searches may use the old words of records that others have changed on a server."""

_PAGE = 2_000
_STATE_FILES = (DATABASE_FILE, f"{DATABASE_FILE}-wal")

log = structlog.get_logger(__name__)


class LocalWordIndex:
    """The words of one collection. Thread-safe: writes and searches take turns."""

    def __init__(self, client: Client, parameters: Bm25Parameters) -> None:
        self._lock = RLock()
        self._index = LexicalIndex(parameters)
        self._digests: dict[str, bytes] = {}
        self._directory = _directory_of(client)
        # The state of the collection that the index reflects; None before it has been built.
        self._shown: object = None
        self._read_at = 0.0

    def best(
        self, there: OpenCollection, query: str, limit: int, content_type: str | None
    ) -> list[SemanticChunk]:
        """Return the best chunks of this type by BM25, best first."""
        with self._lock:
            if not self._is_in_step(there):
                self._read(there)
            found = self._find(there, query, limit, content_type)
            if found is None:
                self._read(there)
                found = self._find(there, query, limit, content_type, is_last=True)
            return found or []

    @contextmanager
    def writing(
        self,
        there: OpenCollection,
        written: Sequence[SemanticChunk] = (),
        erased: Sequence[str] = (),
    ) -> Iterator[None]:
        """Keep the index up to date with what the block writes and deletes."""
        with self._lock:
            # Writing does not build an index that no search has needed yet.
            was_in_step = self._shown is not None and self._is_in_step(there)
            self._shown = None
            yield
            if was_in_step:
                for chunk in written:
                    self._put(chunk)
                for key in erased:
                    self._remove(key)
                self._shown = self._state(there)

    def _find(
        self,
        there: OpenCollection,
        query: str,
        limit: int,
        content_type: str | None,
        *,
        is_last: bool = False,
    ) -> list[SemanticChunk] | None:
        """Return the best chunks as stored, or None if the index is outdated; on the last attempt,
        only those that are still current."""
        keys = self._index.best(query, limit, content_type)
        if not keys:
            return []
        result = there.collection.get(ids=keys, include=["documents", "metadatas"])
        stored = {chunk.id: chunk for chunk in chunks_of(result, there.hidden_keys)}
        found = [stored[key] for key in keys if key in stored]
        known = [chunk for chunk in found if _digest(chunk) == self._digests[chunk.id]]
        return known if is_last or len(known) == len(keys) else None

    # --- keeping in step ------------------------------------------------------------------------

    def _is_in_step(self, there: OpenCollection) -> bool:
        if self._shown is None or self._shown != self._state(there):
            return False
        if self._directory is None and time.monotonic() - self._read_at >= RECHECK_S:
            return False
        return bool(there.collection.count() == len(self._index))

    def _state(self, there: OpenCollection) -> object:
        """Return a value that changes with every write to a directory; for a server, only with the
        collection."""
        # The database files must not be opened: closing them would release the locks that Chroma
        # holds on them in this process.
        files = [self._directory / name for name in _STATE_FILES] if self._directory else []
        return there.collection.id, tuple(map(_file_state, files))

    def _read(self, there: OpenCollection) -> None:
        """Refresh the index with the records that have changed."""
        started, analysed = time.monotonic(), 0
        # Taken before reading: after a write meanwhile it differs, and the index is refreshed.
        shown = self._state(there)
        gone = set(self._digests)
        for chunk in _all(there):
            gone.discard(chunk.id)
            if self._digests.get(chunk.id) != _digest(chunk):
                self._put(chunk)
                analysed += 1
        for key in gone:
            self._remove(key)
        self._shown, self._read_at = shown, time.monotonic()
        log.info(
            "chroma_words_read",
            collection=there.collection.name,
            records=len(self._index),
            analysed=analysed,
            removed=len(gone),
            duration_ms=round((self._read_at - started) * 1000, 1),
        )

    def _put(self, chunk: SemanticChunk) -> None:
        self._index.put(chunk.id, chunk.content or "", _type_of(chunk))
        self._digests[chunk.id] = _digest(chunk)

    def _remove(self, key: str) -> None:
        self._index.remove(key)
        self._digests.pop(key, None)


def _all(there: OpenCollection) -> Iterator[SemanticChunk]:
    """Yield every record, read in pages. If deletions meanwhile make it miss a record, the next
    search notices that by the count."""
    offset = 0
    while True:
        result = there.collection.get(
            limit=_PAGE, offset=offset, include=["documents", "metadatas"]
        )
        page = chunks_of(result, there.hidden_keys)
        yield from page
        if len(page) < _PAGE:
            return
        offset += _PAGE


def _directory_of(client: Client) -> Path | None:
    try:
        settings = client.get_settings()
    except AttributeError:
        return None
    return Path(settings.persist_directory) if settings.is_persistent else None


def _file_state(path: Path) -> tuple[int, int, int] | None:
    try:
        state = path.stat()
    except FileNotFoundError:
        return None
    return state.st_ino, state.st_size, state.st_mtime_ns


def _type_of(chunk: SemanticChunk) -> str | None:
    value: Any = chunk.metadata.get(CONTENT_TYPE)
    return value if isinstance(value, str) else None


def _digest(chunk: SemanticChunk) -> bytes:
    """Hash what ranking depends on: text and type."""
    shown = f"{_type_of(chunk)}\0{chunk.content}"
    return hashlib.blake2b(shown.encode("utf-8", "replace"), digest_size=16).digest()
