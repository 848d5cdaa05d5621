"""What a person has switched on, computed once and kept until something changes.

Going through the documents takes milliseconds at ten thousand of them, a search hardly more. What
was found is therefore kept in the process, under versions that triggers write in the very
transaction that toggles, trashes, publishes or changes who may see a document:
the next search of any process reads other versions and computes anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from threading import Lock
from typing import Any, cast
from uuid import UUID

from cachetools import LRUCache
from psycopg.errors import QueryCanceled
from psycopg.rows import tuple_row
from sqlalchemy import TextClause, text

from portal.domain.deadlines import Deadline
from portal.domain.people import User
from portal.errors import DatabaseUnavailable
from portal.store.documents.selection import SELECTION_JOINS, SELECTION_WHERE, selection_binds
from portal.store.search.query_filters import Narrowing
from portal.store.search.term_postings import KeptPostings, KeptWeights
from portal.store.search.tuning import Reader, fetch_under
from portal.store.search.visible_corpus import VisibleCorpora

_CACHE_BYTES = 32 * 1024 * 1024
_ENTRY_BYTES = 500


@dataclass(frozen=True, slots=True)
class Scope:
    """Who asks, in which conversation, and what they narrow the search to."""

    user: User
    conversation_id: UUID | None = None
    narrowing: Narrowing = field(default_factory=Narrowing)

    def key(self) -> Hashable:
        """What tells apart two scopes whose documents may differ; short, however long conditions
        are: what is kept under it is counted without it."""
        narrowing, user = self.narrowing, self.user
        binds = sorted((name, repr(value)) for name, value in narrowing.binds.items())
        conditions = repr((narrowing.documents, narrowing.chunks, binds))
        digest = hashlib.sha256(conditions.encode("utf-8", "surrogatepass")).digest()
        return user.id, user.is_admin, self.conversation_id, digest


@dataclass(frozen=True, slots=True)
class Versions:
    """What an enabled set depends on; equal versions mean an equal set.

    They are read before the set itself: a change in between then makes the set look older than it
    is, and the next search computes it anew.
    """

    collection_id: UUID
    documents: int
    defaults: int
    overrides: int


@dataclass(frozen=True, slots=True)
class EnabledSet:
    """How much counts for a person. `ids` names it as a PostgreSQL array, of jobs or, with
    `of_chunks`, of chunks; None when there are more chunks than were to be named."""

    document_count: int
    chunk_count: int
    ids: str | None
    of_chunks: bool = False

    def is_same(self, other: EnabledSet) -> bool:
        """Whether both name the same, in whatever order."""
        return self.ids is not None and other.ids is not None and _named(self) == _named(other)


def _named(enabled: EnabledSet) -> set[str]:
    return set((enabled.ids or "").strip("{}").split(","))


class EnabledSets:
    """A process's memory of enabled sets, least recently used go first, of the words of small
    ones, of what users may see, and of what words weigh. Safe between threads."""

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
        """Return what counts in a scope, named when it has at most `most` chunks."""
        enabled = self.get(
            scope,
            versions,
            lambda: count_enabled(reader, scope, versions, most=most, deadline=deadline),
        )
        if not scope.narrowing.chunks or not enabled.document_count:
            return enabled
        # Conditions on chunks are read one by one, and a query may bring many.
        fitting = list_chunks(reader, scope, versions, most=most, deadline=deadline)
        # Too many to name: conditions on the text then stand in the legs, which a leg that
        # compares all of what is named has not.
        return fitting if fitting.ids is not None else replace(enabled, ids=None)

    def get(
        self, scope: Scope, versions: Versions, compute: Callable[[], EnabledSet]
    ) -> EnabledSet:
        """Return the set of these versions: as kept, or computed now."""
        key = scope.key()
        with self._lock:
            kept = self._kept.get(key)
        if kept is not None and kept[0] == versions:
            return kept[1]
        found = compute()
        with self._lock:
            # One that alone is larger than the cache is not kept.
            if _ENTRY_BYTES + len(found.ids or "") <= _CACHE_BYTES:
                self._kept[key] = (versions, found)
        return found


def count_enabled(
    reader: Reader, scope: Scope, versions: Versions, *, most: int, deadline: Deadline
) -> EnabledSet:
    """The documents that count, named by their jobs when they have at most `most` chunks. The
    session is one of `Database.read`. Raises DatabaseUnavailable when that is not done by
    `deadline`."""
    statement = _counting(scope.narrowing.documents)
    row = _in_time(reader, statement, _binds(scope, versions, most), deadline)
    return EnabledSet(*row)


def list_chunks(
    reader: Reader, scope: Scope, versions: Versions, *, most: int, deadline: Deadline
) -> EnabledSet:
    """The chunks that count and fulfil what the question demands of their text; `ids` is None when
    there are more than `most`. The session is one of `Database.read`. Raises DatabaseUnavailable
    when that is not done by `deadline`: each passage is asked all of it."""
    statement = _listing(f"{scope.narrowing.documents} {scope.narrowing.chunks}")
    row = _in_time(reader, statement, _binds(scope, versions, most), deadline)
    return EnabledSet(*row, of_chunks=True)


def _in_time(
    reader: Reader, statement: TextClause, binds: Mapping[str, Any], deadline: Deadline
) -> tuple[int, int, str | None]:
    """The statement's only row. Raises DatabaseUnavailable after `deadline`."""
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
