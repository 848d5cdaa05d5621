"""Which way the records of a program's collection that are nearest to a vector are looked for.

The sessions must be those of `Database.read`.
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
from portal.store.search.enabled_sets import EnabledSet
from portal.store.session import Session

COMPARED_ONE_BY_ONE = 5_000
"""Up to so many records that could be found a search compares all; above it asks an index, which
may miss a few."""

NEVER_INDEXED = 2**62
"""In its place: no index is made, nor are records counted for one."""

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Ways:
    """How an index is asked, and up to how many records none is."""

    search: SearchSettings
    compared_one_by_one: int = COMPARED_ONE_BY_ONE


@dataclass(frozen=True, slots=True)
class Meant:
    """A filter, and the chunks that it lets through where they were looked up: by name when they
    are few enough to be compared."""

    wanted: RecordFilter
    chunks: EnabledSet | None = None

    @property
    def named(self) -> str | None:
        """The chunks as a PostgreSQL array."""
        return None if self.chunks is None else self.chunks.ids


def look_up(
    session: Session, ways: Ways, collection: VectorCollection, wanted: RecordFilter
) -> Meant:
    """What a filter lets through. Narrow ones are found at once by the index over metadata, while
    an index over vectors would offer thousands of records that they refuse."""
    most = ways.compared_one_by_one
    chunks = reads.name_chunks(session, collection, wanted, most=most)
    return Meant(wanted, chunks)


def nearest(
    session: Session,
    ways: Ways,
    collection: VectorCollection,
    question: Vector,
    meant: Meant,
    *,
    limit: int | None,
    read: Callable[[Session, Nearest], list[Found]],
) -> list[Found]:
    """What `read` makes of the nearest: by comparing all of a few, by the index of many.

    Raises InvalidInput for a vector of another length.
    """
    if collection.model is None:
        return []
    require_dimensions(collection.model, len(question))
    shape = collection.index_shape
    if limit is not None and shape is not None and _are_many(session, ways, collection, meant):
        by_index = by_vector.by_index(
            collection, shape, question, wanted=meant.wanted, limit=limit, search=ways.search
        )
        found = read(session, by_index)
        if len(found) >= limit:
            return found
    compared = by_vector.by_comparing(
        collection, question, wanted=meant.wanted, limit=limit, named=meant.named
    )
    return read(session, compared)


def _are_many(session: Session, ways: Ways, collection: VectorCollection, meant: Meant) -> bool:
    return (
        meant.named is None
        and collection.model is not None
        and collection_store.is_larger_than(session, collection.model, ways.compared_one_by_one)
    )
