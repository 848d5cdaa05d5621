"""The documents and chunks that a user has switched on, cached until something changes.

Collecting them takes milliseconds at ten thousand documents, about as long as a search. The result
is therefore cached in the process under versions, which triggers update in the same transaction
that toggles, trashes, publishes or changes the visibility of a document: the next search of any
process reads other versions and computes the set again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from threading import Lock
from typing import Any

from cachetools import LRUCache
from psycopg.errors import QueryCanceled
from psycopg.rows import tuple_row
from sqlalchemy import TextClause, text

from portal.domain.deadlines import Deadline
from portal.errors import DatabaseUnavailable
from portal.store.documents.selection import SELECTION_JOINS, SELECTION_WHERE, selection_binds
from portal.store.search.selection.changes import documents_since
from portal.store.search.selection.chunk_vectors import ChunkVectors
from portal.store.search.selection.row_cache import RowCache, listed
from portal.store.search.selection.scope import Scope, Versions
from portal.store.search.selection.term_postings import KeptWeights, TermPostings
from portal.store.search.selection.visible_corpus import VisibleCorpora
from portal.store.statements import Reader, fetch_under

_CACHE_BYTES = 32 * 1024 * 1024
_ENTRY_BYTES = 500
# Counts that may be off by more than this share are taken again.
_MAX_DRIFT = 0.02


@dataclass(frozen=True, slots=True)
class EnabledSet:
    """The number of documents and chunks that count for a user. `ids` lists them as a PostgreSQL
    array, of jobs or, with `of_chunks`, of chunks; None when there are more chunks than the
    limit. `documents` lists the documents of jobs in their order, and `counts` their chunks.
    `drift` is how many chunks the counts may be off by: they choose a plan, and a few chunks more
    or less change nothing."""

    document_count: int
    chunk_count: int
    ids: str | None
    of_chunks: bool = False
    documents: str | None = None
    counts: str | None = None
    drift: int = 0

    def is_same(self, other: EnabledSet) -> bool:
        """Tell whether both list the same ids, in any order."""
        if self.ids is None or other.ids is None:
            return False
        return set(listed(self.ids)) == set(listed(other.ids))

    def with_changes(self, changed: Iterable[str], present: EnabledSet) -> EnabledSet:
        """Return the set after documents changed, of which those in `present` count now."""
        jobs = self._jobs()
        for document in changed:
            jobs.pop(document, None)
        jobs |= present._jobs()
        ids, counts = ([one[place] for one in jobs.values()] for place in (0, 1))
        return EnabledSet(
            len(jobs),
            sum(map(int, counts)),
            _array(ids),
            documents=_array(jobs),
            counts=_array(counts),
        )

    def _jobs(self) -> dict[str, tuple[str, str]]:
        """Return the job and the number of chunks of each document."""
        jobs = zip(listed(self.ids), listed(self.counts), strict=True)
        return dict(zip(listed(self.documents), jobs, strict=True))

    @property
    def size_bytes(self) -> int:
        """Return the approximate memory use."""
        listed = (self.ids, self.documents, self.counts)
        return _ENTRY_BYTES + sum(len(one or "") for one in listed)


def _array(values: Iterable[str]) -> str:
    return f"{{{','.join(values)}}}"


class EnabledSets:
    """A process's LRU caches of enabled sets, of the words and vectors of small ones, of what users
    may see, and of the weights of words. Thread-safe."""

    def __init__(self) -> None:
        self.postings = RowCache[TermPostings](_CACHE_BYTES)
        self.vectors = RowCache[ChunkVectors](_CACHE_BYTES)
        self.visible = VisibleCorpora()
        self.shared_weights = KeptWeights()
        self._lock = Lock()
        self._kept: LRUCache[Hashable, tuple[Versions, EnabledSet]] = LRUCache(
            _CACHE_BYTES, getsizeof=lambda entry: entry[1].size_bytes
        )

    def find(
        self, reader: Reader, scope: Scope, versions: Versions, *, most: int, deadline: Deadline
    ) -> EnabledSet:
        """Return what counts in a scope, with ids when it has at most `most` chunks."""
        enabled = self.get(
            scope,
            versions,
            lambda: count_enabled(reader, scope, versions, most=most, deadline=deadline),
            lambda before, kept: _followed(
                reader, scope, before, kept, versions, most=most, deadline=deadline
            ),
        )
        if not scope.narrowing.chunks or not enabled.document_count:
            return enabled
        # Conditions on chunks are evaluated chunk by chunk, and a query may have many.
        fitting = list_chunks(reader, scope, versions, most=most, deadline=deadline)
        # Too many to list: conditions on the text are then evaluated in the legs, except in a leg
        # that compares all of a listed set.
        return fitting if fitting.ids is not None else replace(enabled, ids=None)

    def get(
        self,
        scope: Scope,
        versions: Versions,
        compute: Callable[[], EnabledSet],
        follow: Callable[[Versions, EnabledSet], EnabledSet | None] = lambda *_: None,
    ) -> EnabledSet:
        """Return the set of these versions, from the cache, followed from the one of earlier
        versions where that is possible, or computed."""
        key = scope.key()
        with self._lock:
            kept = self._kept.get(key)
        if kept is not None and kept[0] == versions:
            return kept[1]
        found = (kept and follow(*kept)) or compute()
        with self._lock:
            # A set that alone exceeds the cache is not stored.
            if found.size_bytes <= _CACHE_BYTES:
                self._kept[key] = (versions, found)
        return found


def _followed(
    reader: Reader,
    scope: Scope,
    before: Versions,
    enabled: EnabledSet,
    versions: Versions,
    *,
    most: int,
    deadline: Deadline,
) -> EnabledSet | None:
    """Return a set of earlier versions after the changes since; None where it has to be collected
    again."""
    changed = documents_since(reader, scope, before, versions)
    if changed is None:
        return None
    if enabled.ids is None:
        return drifted(enabled, sum(changed.values()), most=most)
    conditions = f"{scope.narrowing.documents} AND d.id = ANY(:changed)"
    binds = _binds(scope, versions, most) | {"changed": list(changed)}
    present = _counted(_in_time(reader, _counting(conditions), binds, deadline))
    if present.ids is None:
        return None
    found = enabled.with_changes(map(str, changed), present)
    return found if found.chunk_count <= most else None


def drifted(enabled: EnabledSet, chunk_count: int, *, most: int) -> EnabledSet | None:
    """Return a set that is too large to be listed after documents of that many chunks changed; None
    where that may matter."""
    drift = enabled.drift + chunk_count
    is_known = drift <= min(_MAX_DRIFT * enabled.chunk_count, enabled.chunk_count - most)
    return replace(enabled, drift=drift) if is_known else None


def count_enabled(
    reader: Reader, scope: Scope, versions: Versions, *, most: int, deadline: Deadline
) -> EnabledSet:
    """Count the documents that count for a user, with the ids of their jobs when they have at most
    `most` chunks. The session is one of `Database.read`. Raises DatabaseUnavailable when that is
    not done by `deadline`."""
    statement = _counting(scope.narrowing.documents)
    return _counted(_in_time(reader, statement, _binds(scope, versions, most), deadline))


def _counted(row: tuple[Any, ...]) -> EnabledSet:
    document_count, chunk_count, ids, documents, counts = row
    return EnabledSet(document_count, chunk_count, ids, documents=documents, counts=counts)


def list_chunks(
    reader: Reader, scope: Scope, versions: Versions, *, most: int, deadline: Deadline
) -> EnabledSet:
    """List the chunks that count and meet the query's conditions on their text; `ids` is None when
    there are more than `most`. The session is one of `Database.read`. Raises DatabaseUnavailable
    when that is not done by `deadline`: each chunk is checked against all conditions."""
    statement = _listing(f"{scope.narrowing.documents} {scope.narrowing.chunks}")
    documents, chunks, ids = _in_time(reader, statement, _binds(scope, versions, most), deadline)
    return EnabledSet(documents, chunks, ids, of_chunks=True)


def _in_time(
    reader: Reader, statement: TextClause, binds: Mapping[str, Any], deadline: Deadline
) -> tuple[Any, ...]:
    """Return the statement's only row. Raises DatabaseUnavailable after `deadline`."""
    limit = {"statement_timeout": deadline.milliseconds}
    try:
        (row,) = fetch_under(reader, limit, statement, binds, tuple_row)
    except QueryCanceled as error:
        raise DatabaseUnavailable from error
    return row


@lru_cache(maxsize=256)
def _counting(conditions: str) -> TextClause:
    listed = ", ".join(
        f"""CASE WHEN COALESCE(sum(d.chunk_count), 0) <= :most
                 THEN CAST(COALESCE(array_agg({column}), '{{}}') AS text) END"""
        for column in ("d.current_job_id", "d.id", "d.chunk_count")
    )
    return text(
        f"""
        SELECT count(*), COALESCE(sum(d.chunk_count), 0), {listed}
        FROM documents d {SELECTION_JOINS}
        WHERE d.collection_id = :collection_id AND d.current_job_id IS NOT NULL
          AND {SELECTION_WHERE} {conditions}
        """
    )


@lru_cache(maxsize=256)
def _listing(conditions: str) -> TextClause:
    return text(
        f"""
        SELECT count(DISTINCT document_id), count(*),
               CASE WHEN count(*) <= :most THEN CAST(COALESCE(array_agg(id), '{{}}') AS text) END
        FROM (
            SELECT c.id, c.document_id
            FROM document_chunks c
            JOIN documents d ON d.current_job_id = c.job_id {SELECTION_JOINS}
            WHERE d.collection_id = :collection_id AND {SELECTION_WHERE} {conditions}
            LIMIT :most + 1
        ) fitting
        """
    )


def _binds(scope: Scope, versions: Versions, most: int) -> dict[str, object]:
    binds = selection_binds(scope.user, scope.conversation_id) | scope.narrowing.binds
    return binds | {"collection_id": versions.collection_id, "most": most}
