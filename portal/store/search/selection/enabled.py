"""The documents and chunks that a user has switched on, collected from the database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any
from uuid import UUID

from psycopg.errors import QueryCanceled
from sqlalchemy import TextClause, text

from portal.domain.deadlines import Deadline
from portal.errors import DatabaseUnavailable
from portal.store.documents.selection import SELECTION_JOINS, SELECTION_WHERE, selection_binds
from portal.store.search.selection.changes import documents_since
from portal.store.search.selection.job_slots import MAX_CHANGED, MAX_JOBS, RECORD, JobSlots
from portal.store.search.selection.row_cache import listed
from portal.store.search.selection.scope import Scope, Versions
from portal.store.statements import Reader, fetch_under

_ENTRY_BYTES = 500
# Counts that may be off by more than this share are taken again.
_MAX_DRIFT = 0.02


@dataclass(frozen=True, slots=True)
class EnabledSet:
    """The number of documents and chunks that are enabled for a user. `ids` lists them as a
    PostgreSQL array, of jobs or, with `of_chunks`, of chunks. It is None if there are more chunks
    than the limit: then `slots` has the jobs, from the second search on. `documents` lists the
    documents of jobs in their order, and `counts` their numbers of chunks. `drift` is how many
    chunks the counts may be off by: they choose a plan, and a few chunks more or less do not
    matter."""

    document_count: int
    chunk_count: int
    ids: str | None
    of_chunks: bool = False
    documents: str | None = None
    counts: str | None = None
    drift: int = 0
    slots: JobSlots | None = None

    def is_same(self, other: EnabledSet) -> bool:
        """Return whether both list the same ids, in any order."""
        if self.ids is None or other.ids is None:
            return False
        return set(listed(self.ids)) == set(listed(other.ids))

    @property
    def lacks_slots(self) -> bool:
        """Return whether this is a large set without slots: most users search more than once."""
        return self.ids is None and self.slots is None and self.document_count <= MAX_JOBS

    def with_changes(self, changed: Iterable[str], present: EnabledSet) -> EnabledSet:
        """Return the set after documents changed, of which those in `present` are now enabled."""
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
        slots = self.slots.size_bytes if self.slots else 0
        return _ENTRY_BYTES + slots + sum(len(one or "") for one in listed)


def _array(values: Iterable[str]) -> str:
    return f"{{{','.join(values)}}}"


@dataclass(frozen=True, slots=True)
class EnabledQuery:
    """Reads what is enabled in a scope, with ids if there are at most `max_chunks` chunks. The
    reader must be from `Database`. Raises DatabaseUnavailable after `deadline`."""

    reader: Reader
    scope: Scope
    versions: Versions
    max_chunks: int
    deadline: Deadline

    def count(self) -> EnabledSet:
        """Count the documents, with the ids of their jobs."""
        return self._count(self.scope.narrowing.documents)

    def list_chunks(self) -> EnabledSet:
        """List the chunks that match the query's conditions on chunks. Each is checked against all
        of them."""
        narrowing = self.scope.narrowing
        statement = _listing(f"{narrowing.documents} {narrowing.chunks}")
        ((documents, chunks, ids),) = self._fetch(statement)
        return EnabledSet(documents, chunks, ids, of_chunks=True)

    def follow(self, before: Versions, enabled: EnabledSet) -> EnabledSet | None:
        """Return a set of earlier versions with the changes since, and with slots if it is large;
        None if it has to be counted again."""
        changed = documents_since(self.reader, self.scope, before, self.versions)
        if changed is None:
            return None
        if enabled.ids is None:
            found = drifted(enabled, sum(changed.values()), max_chunks=self.max_chunks)
            return found and replace(found, slots=self._slots(found, changed))
        conditions = f"{self.scope.narrowing.documents} AND d.id = ANY(:changed)"
        present = self._count(conditions, changed=list(changed))
        if present.ids is None:
            return None
        found = enabled.with_changes(map(str, changed), present)
        return found if found.chunk_count <= self.max_chunks else None

    def _count(self, conditions: str, **binds: object) -> EnabledSet:
        (row,) = self._fetch(_counting(conditions), **binds)
        document_count, chunk_count, ids, documents, counts = row
        return EnabledSet(document_count, chunk_count, ids, documents=documents, counts=counts)

    def _slots(self, enabled: EnabledSet, changed: Mapping[UUID, int]) -> JobSlots | None:
        """Return the slots of a large set after documents changed; None if they are not used."""
        slots, narrowing = enabled.slots, self.scope.narrowing
        if narrowing.chunks or enabled.document_count > MAX_JOBS:
            return None
        if slots is None or len(slots.changed) + len(changed) > MAX_CHANGED:
            (row,) = self._fetch(_collecting(narrowing.documents))
            return JobSlots.of(*row)
        if changed and slots.bits:
            rows = self._fetch(_changing(narrowing.documents), changed=[*changed])
            present = {document: (job, counts) for document, job, counts in rows}
            slots = slots.with_changes(changed, present)
        return slots

    def _fetch(self, statement: TextClause, **binds: object) -> list[tuple[Any, ...]]:
        binds |= selection_binds(self.scope.user, self.scope.conversation_id)
        binds |= self.scope.narrowing.binds
        binds |= {"collection_id": self.versions.collection_id, "max_chunks": self.max_chunks}
        limit = {"statement_timeout": self.deadline.milliseconds}
        try:
            return fetch_under(self.reader, limit, statement, binds)
        except QueryCanceled as error:
            raise DatabaseUnavailable from error


def drifted(enabled: EnabledSet, chunk_count: int, *, max_chunks: int) -> EnabledSet | None:
    """Return a set that is too large to be listed, with its counts marked as off by up to
    `chunk_count` more chunks; None when they are too far off and have to be taken again."""
    drift = enabled.drift + chunk_count
    is_known = drift <= min(_MAX_DRIFT * enabled.chunk_count, enabled.chunk_count - max_chunks)
    return replace(enabled, drift=drift) if is_known else None


@lru_cache(maxsize=256)
def _counting(conditions: str) -> TextClause:
    listed = ", ".join(
        f"""CASE WHEN COALESCE(sum(d.chunk_count), 0) <= :max_chunks
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


def _states(conditions: str) -> str:
    """Return a statement for the current jobs of documents, and whether they are enabled."""
    return f"""
        SELECT d.id, d.current_job_id AS job_id, ({SELECTION_WHERE} {conditions}) IS TRUE AS counts
        FROM documents d {SELECTION_JOINS}
        WHERE d.collection_id = :collection_id AND d.current_job_id IS NOT NULL
    """


@lru_cache(maxsize=256)
def _collecting(conditions: str) -> TextClause:
    columns = ", ".join(
        f"COALESCE(string_agg({RECORD}, '') FILTER (WHERE {which}), '')"
        for which in ("counts", "NOT counts")
    )
    return text(f"SELECT {columns} FROM ({_states(conditions)} LIMIT {MAX_JOBS + 1}) states")


@lru_cache(maxsize=256)
def _changing(conditions: str) -> TextClause:
    return text(f"{_states(conditions)} AND d.id = ANY(:changed)")


@lru_cache(maxsize=256)
def _listing(conditions: str) -> TextClause:
    return text(
        f"""
        SELECT count(DISTINCT document_id), count(*),
               CASE WHEN count(*) <= :max_chunks
                    THEN CAST(COALESCE(array_agg(id), '{{}}') AS text) END
        FROM (
            SELECT c.id, c.document_id
            FROM document_chunks c
            JOIN documents d ON d.current_job_id = c.job_id {SELECTION_JOINS}
            WHERE d.collection_id = :collection_id AND {SELECTION_WHERE} {conditions}
            LIMIT :max_chunks + 1
        ) fitting
        """
    )
