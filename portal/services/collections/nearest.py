"""Choose how to find the records of a program's collection that are nearest to a vector.

Sessions must be those of `Database.read`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from portal.domain.embedding import Vector
from portal.domain.vector_collections import RecordFilter
from portal.services.collections.checks import require_dimensions
from portal.settings import SearchSettings
from portal.store.collections import by_vector, reads
from portal.store.collections import rows as collection_store
from portal.store.collections.by_vector import Nearest
from portal.store.collections.rows import VectorCollection
from portal.store.search.selection.enabled import EnabledSet
from portal.store.session import Session

MAX_COMPARED_RECORDS = 5_000
"""Up to this many eligible records, a search compares them all; above, it asks an index, which may
miss a few."""

NEVER_INDEXED = 2**62
"""In place of MAX_COMPARED_RECORDS: no index is made, and no records are counted for one."""

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """How to query an index, and up to how many records to do without one."""

    search: SearchSettings
    compared_one_by_one: int = MAX_COMPARED_RECORDS


@dataclass(frozen=True, slots=True)
class ResolvedFilter:
    """A filter and, if they were looked up, the chunks that match it, with their ids if they are
    few enough to compare."""

    wanted: RecordFilter
    chunks: EnabledSet | None = None

    @property
    def named(self) -> str | None:
        """Return the chunk ids as a PostgreSQL array, if they are known."""
        return None if self.chunks is None else self.chunks.ids


def resolve_filter(
    session: Session, options: SearchOptions, collection: VectorCollection, wanted: RecordFilter
) -> ResolvedFilter:
    """Look up the chunks that match a filter. The metadata index finds those of a narrow filter at
    once; a vector index would offer thousands of records that the filter rejects."""
    chunks = reads.name_chunks(session, collection, wanted, max_count=options.compared_one_by_one)
    return ResolvedFilter(wanted, chunks)


def nearest(
    session: Session,
    options: SearchOptions,
    collection: VectorCollection,
    query_vector: Vector,
    resolved: ResolvedFilter,
    *,
    limit: int | None,
    read: Callable[[Session, Nearest], list[Found]],
) -> list[Found]:
    """Read the nearest with `read`: by comparing all if they are few, by the index otherwise.
    Raises InvalidInput for a vector of another length."""
    if collection.model is None:
        return []
    require_dimensions(collection.model, len(query_vector))
    shape = collection.index_shape
    if (
        limit is not None
        and shape is not None
        and _are_many(session, options, collection, resolved)
    ):
        by_index = by_vector.by_index(
            collection,
            shape,
            query_vector,
            wanted=resolved.wanted,
            limit=limit,
            search=options.search,
        )
        found = read(session, by_index)
        if len(found) >= limit:
            return found
    compared = by_vector.by_comparing(
        collection, query_vector, wanted=resolved.wanted, limit=limit, named=resolved.named
    )
    return read(session, compared)


def _are_many(
    session: Session, options: SearchOptions, collection: VectorCollection, resolved: ResolvedFilter
) -> bool:
    return (
        resolved.named is None
        and collection.model is not None
        and collection_store.is_larger_than(session, collection.model, options.compared_one_by_one)
    )
