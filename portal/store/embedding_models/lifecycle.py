"""Activating another model, and dropping an inactive one, each in one short transaction."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import func, select, text, update
from sqlalchemy.orm import Session

from portal.store.documents.selection import PORTAL_COLLECTION
from portal.store.embedding_models import language_axis
from portal.store.embedding_models.registry import RegisteredModel, list_models
from portal.store.embedding_models.vector_index import StandingIndex, standing_indexes
from portal.store.models import CollectionRow, EmbeddingModelRow

# The chunks to embed, including those of documents in the trash, which may be restored, and of
# documents whose ingestion is not finished.
PORTAL_CHUNKS = """
    document_chunks c JOIN collections l ON l.id = c.collection_id AND l.name = :collection
"""
IS_MISSING = "NOT EXISTS (SELECT 1 FROM {partition} e WHERE e.chunk_id = c.id)"


@dataclass(frozen=True, slots=True)
class Coverage:
    """The number of chunks, and how many of them have no vector by a model."""

    chunks: int
    missing: int


def coverage(session: Session, model: RegisteredModel) -> Coverage:
    query = f"""
        SELECT count(*), count(*) FILTER (WHERE {IS_MISSING.format(partition=model.partition)})
        FROM {PORTAL_CHUNKS}
    """
    return Coverage(*session.execute(text(query), {"collection": PORTAL_COLLECTION}).one())


def activate_model(session: Session, model: RegisteredModel) -> None:
    """Activate a model from the next search on; the previous one is kept as it is."""
    session.execute(
        update(EmbeddingModelRow)
        .where(EmbeddingModelRow.status == "active", EmbeddingModelRow.id != model.id)
        .values(status="retired", retired_at=func.now())
    )
    session.execute(
        update(EmbeddingModelRow)
        .where(EmbeddingModelRow.id == model.id)
        .values(status="active", activated_at=func.now(), retired_at=None)
    )
    session.execute(
        update(CollectionRow)
        .where(CollectionRow.name == PORTAL_COLLECTION)
        .values(embedding_model_id=model.id)
    )


def find_previous(session: Session) -> RegisteredModel | None:
    """Return the model that was active before the current one, if it still exists."""
    retired = [model for model in list_models(session) if model.retired_at is not None]
    # By id too: two switches within one tick of the clock still have an order.
    return max(retired, key=lambda m: (m.retired_at or m.activated_at, m.id), default=None)


@dataclass(frozen=True, slots=True)
class Size:
    vectors: int
    size_bytes: int
    index: StandingIndex | None


def read_size(session: Session, model: RegisteredModel) -> Size:
    """Return the size of a model's partition, and of its index if that is usable."""
    query = f"SELECT count(*), pg_total_relation_size('{model.partition}') FROM {model.partition}"
    vectors, size_bytes = session.execute(text(query)).one()
    usable = [i for i in standing_indexes(session, model.partition) if i.is_valid]
    return Size(vectors, size_bytes, usable[0] if usable else None)


def drop_model(session: Session, model: RegisteredModel) -> None:
    """Delete a model and its vectors; if it was active, no model is."""
    session.execute(
        update(CollectionRow)
        .where(CollectionRow.embedding_model_id == model.id)
        .values(embedding_model_id=None)
    )
    session.execute(text(f"DROP TABLE {model.partition}"))
    language_axis.drop(session, model.id)
    session.delete(session.get_one(EmbeddingModelRow, model.id))
    session.flush()


def is_untried(session: Session, model: RegisteredModel) -> bool:
    """Return whether a model is active only because it was the first, and has embedded nothing
    yet."""
    switched_to = session.scalar(
        select(EmbeddingModelRow.activated_at > EmbeddingModelRow.created_at).where(
            EmbeddingModelRow.id == model.id
        )
    )
    has_vectors = session.scalar(text(f"SELECT EXISTS (SELECT 1 FROM {model.partition})"))
    return not switched_to and not has_vectors
