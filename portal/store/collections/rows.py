"""Store collections of programs. Each has its own partition of vectors, created with the
first vector, which sets their length."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast
from uuid import UUID

from sqlalchemy import delete, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from portal.domain.vector_collections import Distance
from portal.settings import SearchSettings
from portal.store.documents.selection import PORTAL_COLLECTION
from portal.store.embedding_models.registry import (
    COLLECTION_PROVIDER,
    RegisteredModel,
    make_partition,
    registered,
)
from portal.store.embedding_models.vector_index import (
    MAX_HALFVEC_DIMENSIONS,
    MAX_VECTOR_DIMENSIONS,
    IndexShape,
    create_statement,
    standing_indexes,
    wants_index,
)
from portal.store.models import CollectionRow, EmbeddingModelRow


@dataclass(frozen=True, slots=True)
class VectorCollection:
    """A program's collection; `model` registers its vectors, None before the first one."""

    id: UUID
    name: str
    distance: Distance
    metadata: Mapping[str, Any] = field(default_factory=dict)
    model: RegisteredModel | None = None

    @property
    def index_shape(self) -> IndexShape | None:
        """Return the index for its vectors, in full precision if pgvector can index that; None if
        they are too long."""
        if self.model is None or self.model.dimensions > MAX_HALFVEC_DIMENSIONS:
            return None
        is_short = self.model.dimensions <= MAX_VECTOR_DIMENSIONS
        return IndexShape("hnsw", "vector" if is_short else "halfvec", self.distance)


def find(session: Session, *, name: str) -> VectorCollection | None:
    """Return a program's collection by name; the portal's own does not count."""
    return _one(session, CollectionRow.name == name)


def find_by_id(session: Session, collection_id: UUID) -> VectorCollection | None:
    return _one(session, CollectionRow.id == collection_id)


def _one(session: Session, condition: Any) -> VectorCollection | None:
    row = session.execute(
        select(CollectionRow, EmbeddingModelRow)
        .outerjoin(EmbeddingModelRow, EmbeddingModelRow.id == CollectionRow.embedding_model_id)
        .where(condition, CollectionRow.name != PORTAL_COLLECTION)
        .execution_options(populate_existing=True)
    ).one_or_none()
    if row is None:
        return None
    collection = row[0]
    model: EmbeddingModelRow | None = row[1]
    return VectorCollection(
        id=collection.id,
        name=collection.name,
        distance=cast("Distance", collection.distance),
        metadata=dict(collection.attributes),
        model=None if model is None else registered(model),
    )


def list_names(session: Session) -> list[str]:
    """Return the names of programs' collections, in order."""
    names = select(CollectionRow.name).where(CollectionRow.name != PORTAL_COLLECTION)
    return list(session.scalars(names.order_by(CollectionRow.name)))


def add(session: Session, *, name: str, distance: Distance, metadata: Mapping[str, Any]) -> None:
    """Create a collection unless the name exists."""
    session.execute(
        insert(CollectionRow)
        .values(name=name, distance=distance, attributes=dict(metadata))
        .on_conflict_do_nothing(index_elements=[CollectionRow.name])
    )


def lock_for_writing(session: Session, collection_id: UUID) -> VectorCollection | None:
    """Return the collection, locked against other writers until the transaction ends: two writers
    of the same ids would duplicate them or deadlock."""
    held = session.scalar(
        select(CollectionRow.id)
        .where(CollectionRow.id == collection_id)
        .with_for_update(key_share=True)
    )
    return find_by_id(session, held) if held else None


def give_partition(session: Session, collection: VectorCollection, dimensions: int) -> None:
    """Create the table for a collection's vectors, all of this length."""
    row = EmbeddingModelRow(
        name=f"{COLLECTION_PROVIDER}:{collection.id}",
        provider=COLLECTION_PROVIDER,
        dimensions=dimensions,
        options={},
        status="ready",
        index_method="hnsw",
        vector_type="vector" if dimensions <= MAX_VECTOR_DIMENSIONS else "halfvec",
    )
    session.add(row)
    session.flush()
    session.refresh(row)
    make_partition(session, registered(row))
    session.execute(
        update(CollectionRow)
        .where(CollectionRow.id == collection.id)
        .values(embedding_model_id=row.id)
    )


def drop(session: Session, collection: VectorCollection) -> None:
    """Delete a collection with all its records."""
    if collection.model is not None:
        session.execute(text(f"DROP TABLE {collection.model.partition}"))
    session.execute(delete(CollectionRow).where(CollectionRow.id == collection.id))
    if collection.model is not None:
        session.execute(
            delete(EmbeddingModelRow).where(EmbeddingModelRow.id == collection.model.id)
        )


def is_larger_than(session: Session, model: RegisteredModel, count: int) -> bool:
    """Return whether there are more vectors than `count`, without counting further."""
    query = text(f"SELECT count(*) FROM (SELECT FROM {model.partition} LIMIT :max_count) counted")
    return (session.scalar(query, {"max_count": count + 1}) or 0) > count


def needs_index(session: Session, collection: VectorCollection, max_count: int) -> bool:
    """Return whether a collection of over `max_count` vectors lacks an index it could have."""
    model = collection.model
    return (
        model is not None
        and collection.index_shape is not None
        and is_larger_than(session, model, max_count)
        and not standing_indexes(session, model.partition)
    )


def ensure_index(session: Session, collection: VectorCollection, search: SearchSettings) -> None:
    """Create the collection's index if it can have one and has none, locking out writers."""
    shape, model = collection.index_shape, collection.model
    if shape is None or model is None or not wants_index(search):
        return
    if standing_indexes(session, model.partition):
        return
    session.execute(text(create_statement(model.partition, shape, model.dimensions, search)))
