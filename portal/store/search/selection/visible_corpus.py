"""How much of the portal a user may see: the base of the statistics of their searches.

Switches do not affect it: switching a document off does not change the weight of a word.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock
from uuid import UUID

from cachetools import LRUCache
from sqlalchemy import text

from portal.store.documents.selection import IS_LIMITED, VISIBLE_WHERE
from portal.store.search.selection.changes import changes_of
from portal.store.search.selection.scope import Versions
from portal.store.statements import Reader, fetch

_CACHE_BYTES = 8 * 1024 * 1024
_ENTRY_BYTES = 300
# The weights of words and confidence only depend on the logarithm of the number of chunks.
_MAX_DRIFT = 0.001

_SHARED = text(
    """
    SELECT COALESCE(sum(d.chunk_count), 0) FROM documents d
    WHERE d.collection_id = :collection_id AND d.current_job_id IS NOT NULL
      AND d.deleted_at IS NULL AND d.visibility = 'shared' AND d.gate_id IS NULL
    """
)
_PRIVATE = text(
    f"""
    SELECT COALESCE(sum(d.chunk_count), 0),
           CAST(COALESCE(array_agg(d.current_job_id), '{{}}') AS text)
    FROM documents d
    WHERE d.collection_id = :collection_id AND d.current_job_id IS NOT NULL
      AND {VISIBLE_WHERE} AND {IS_LIMITED}
    """
)


@dataclass(frozen=True, slots=True)
class VisibleCorpus:
    """The numbers of chunks that a user may see: `shared_chunks` are open to all users,
    `private_chunks` are of documents that not all users may see, whose jobs are in `private_jobs`
    as a PostgreSQL array."""

    shared_chunks: int
    private_chunks: int
    private_jobs: str

    @property
    def chunk_count(self) -> int:
        return self.shared_chunks + self.private_chunks


class VisibleCorpora:
    """A process's LRU cache of visible corpora, each valid for one version of the documents.
    Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._shared: tuple[tuple[UUID, int], int, int] | None = None
        self._cache: LRUCache[UUID, tuple[tuple[UUID, int], VisibleCorpus]] = LRUCache(
            _CACHE_BYTES, getsizeof=lambda entry: _ENTRY_BYTES + len(entry[1].private_jobs)
        )

    def get(self, reader: Reader, user_id: UUID, versions: Versions) -> VisibleCorpus:
        """Return what a user may see. The reader must be from `Database`."""
        version = versions.collection_id, versions.documents
        with self._lock:
            kept = self._cache.get(user_id)
        if kept is not None and kept[0] == version:
            return kept[1]
        binds = {
            "collection_id": versions.collection_id,
            "user_id": user_id,
            "user_is_admin": False,
        }
        shared = self._count_shared(reader, version, binds)
        ((private, jobs),) = fetch(reader, _PRIVATE, binds)
        found = VisibleCorpus(shared, int(private), jobs)
        with self._lock:
            if _ENTRY_BYTES + len(jobs) <= _CACHE_BYTES:
                self._cache[user_id] = version, found
        return found

    def _count_shared(
        self, reader: Reader, version: tuple[UUID, int], binds: Mapping[str, object]
    ) -> int:
        """Count the shared chunks, the same for every user, within one in a thousand."""
        kept = self._shared
        if kept is not None and kept[0] != version and kept[0][0] == version[0]:
            before, count, drift = kept
            changed = changes_of(reader, version[0], before[1], version[1])
            drift += sum(changed.values()) if changed is not None else count + 1
            kept = (version, count, drift) if drift <= _MAX_DRIFT * count else None
        if kept is None or kept[0] != version:
            kept = version, int(fetch(reader, _SHARED, binds)[0][0]), 0
        self._shared = kept
        return kept[1]
