"""The documents and chunks that a user has switched on, cached until something changes.

Collecting them takes milliseconds at ten thousand documents, about as long as a search. The result
is therefore cached in the process under versions, which triggers update in the same transaction
that toggles, trashes, publishes or changes the visibility of a document: the next search of any
process reads other versions and computes the set again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from threading import Lock
from typing import Any, cast

from cachetools import LRUCache
from psycopg.errors import QueryCanceled
from psycopg.rows import tuple_row
from sqlalchemy import TextClause, text

from portal.domain.deadlines import Deadline
from portal.errors import DatabaseUnavailable
from portal.store.documents.selection import SELECTION_JOINS, SELECTION_WHERE, selection_binds
from portal.store.search.scope import Scope, Versions
from portal.store.search.term_postings import KeptPostings, KeptWeights
from portal.store.search.visible_corpus import VisibleCorpora
from portal.store.statements import Reader, fetch_under

_CACHE_BYTES = 32 * 1024 * 1024
_ENTRY_BYTES = 500


@dataclass(frozen=True, slots=True)
class EnabledSet:
    """The number of documents and chunks that count for a user. `ids` lists them as a PostgreSQL
    array, of jobs or, with `of_chunks`, of chunks; None when there are more chunks than the
    limit."""

    document_count: int
    chunk_count: int
    ids: str | None
    of_chunks: bool = False

    def is_same(self, other: EnabledSet) -> bool:
        """Tell whether both list the same ids, in any order."""
        return self.ids is not None and other.ids is not None and _named(self) == _named(other)


def _named(enabled: EnabledSet) -> set[str]:
    return set((enabled.ids or "").strip("{}").split(","))


class EnabledSets:
    """A process's LRU caches of enabled sets, of the words of small ones, of what users may see,
    and of the weights of words. Thread-safe."""

    def __init__(self) -> None:
        self.postings = KeptPostings()
        self.visible = VisibleCorpora()
        self.shared_weights = KeptWeights()
        self._lock = Lock()
        self._kept: LRUCache[Hashable, tuple[Versions, EnabledSet]] = LRUCache(
            _CACHE_BYTES, getsizeof=lambda entry: _ENTRY_BYTES + len(entry[1].ids or "")
        )

    def find(
        self, reader: Reader, scope: Scope, versions: Versions, *, most: int, deadline: Deadline
    ) -> EnabledSet:
        """Return what counts in a scope, with ids when it has at most `most` chunks."""
        enabled = self.get(
            scope,
            versions,
            lambda: count_enabled(reader, scope, versions, most=most, deadline=deadline),
        )
        if not scope.narrowing.chunks or not enabled.document_count:
            return enabled
        # Conditions on chunks are evaluated chunk by chunk, and a query may have many.
        fitting = list_chunks(reader, scope, versions, most=most, deadline=deadline)
        # Too many to list: conditions on the text are then evaluated in the legs, except in a leg
        # that compares all of a listed set.
        return fitting if fitting.ids is not None else replace(enabled, ids=None)

    def get(
        self, scope: Scope, versions: Versions, compute: Callable[[], EnabledSet]
    ) -> EnabledSet:
        """Return the set of these versions, from the cache or computed."""
        key = scope.key()
        with self._lock:
            kept = self._kept.get(key)
        if kept is not None and kept[0] == versions:
            return kept[1]
        found = compute()
        with self._lock:
            # A set that alone exceeds the cache is not stored.
            if _ENTRY_BYTES + len(found.ids or "") <= _CACHE_BYTES:
                self._kept[key] = (versions, found)
        return found


def count_enabled(
    reader: Reader, scope: Scope, versions: Versions, *, most: int, deadline: Deadline
) -> EnabledSet:
    """Count the documents that count for a user, with the ids of their jobs when they have at most
    `most` chunks. The session is one of `Database.read`. Raises DatabaseUnavailable when that is
    not done by `deadline`."""
    statement = _counting(scope.narrowing.documents)
    row = _in_time(reader, statement, _binds(scope, versions, most), deadline)
    return EnabledSet(*row)


def list_chunks(
    reader: Reader, scope: Scope, versions: Versions, *, most: int, deadline: Deadline
) -> EnabledSet:
    """List the chunks that count and meet the query's conditions on their text; `ids` is None when
    there are more than `most`. The session is one of `Database.read`. Raises DatabaseUnavailable
    when that is not done by `deadline`: each chunk is checked against all conditions."""
    statement = _listing(f"{scope.narrowing.documents} {scope.narrowing.chunks}")
    row = _in_time(reader, statement, _binds(scope, versions, most), deadline)
    return EnabledSet(*row, of_chunks=True)


def _in_time(
    reader: Reader, statement: TextClause, binds: Mapping[str, Any], deadline: Deadline
) -> tuple[int, int, str | None]:
    """Return the statement's only row. Raises DatabaseUnavailable after `deadline`."""
    limit = {"statement_timeout": deadline.milliseconds}
    try:
        (row,) = fetch_under(reader, limit, statement, binds, tuple_row)
    except QueryCanceled as error:
        raise DatabaseUnavailable from error
    return cast("tuple[int, int, str | None]", row)


@lru_cache(maxsize=256)
def _counting(conditions: str) -> TextClause:
    return text(
        f"""
        SELECT count(*), COALESCE(sum(d.chunk_count), 0),
               CASE WHEN COALESCE(sum(d.chunk_count), 0) <= :most
                    THEN CAST(COALESCE(array_agg(d.current_job_id), '{{}}') AS text) END
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
