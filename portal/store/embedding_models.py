"""The registry of embedding models: each has a partition of its own with a typed index, so that
vectors of two models never mix and each index has one dimension."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import func, select, text, update
from sqlalchemy.orm import Session

from portal.settings import HnswSettings
from portal.store.models import CollectionRow, EmbeddingModelRow

# pgvector indexes halfvec up to this many dimensions.
MAX_INDEXED_DIMENSIONS = 4000
# A row must fit a page of 8 kB when its vector is stored inline (STORAGE PLAIN).
_MAX_INLINE_DIMENSIONS = 1900
_REGISTRY_LOCK = 7_316_002


@dataclass(frozen=True, slots=True)
class RegisteredModel:
    id: int
    name: str
    dimensions: int

    @property
    def partition(self) -> str:
        """Name of the partition; made of our own number, so it may stand in SQL."""
        return f"chunk_embeddings_m{self.id}"

    @property
    def indexed_vector(self) -> str:
        """The expression that the partition's index is built on."""
        return f"CAST(embedding AS halfvec({self.dimensions}))"


def ensure_model(
    session: Session, *, name: str, provider: str, dimensions: int, hnsw: HnswSettings
) -> RegisteredModel:
    """The model's registration, made with its partition and index where it was missing.

    Raises ValueError when the name is registered with other dimensions.
    """
    session.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _REGISTRY_LOCK})
    row = session.scalar(select(EmbeddingModelRow).where(EmbeddingModelRow.name == name))
    if row is None:
        row = EmbeddingModelRow(name=name, provider=provider, dimensions=dimensions)
        session.add(row)
        session.flush()
        _make_partition(session, _registered(row), hnsw)
        _activate_if_first(session, row)
    elif row.dimensions != dimensions:
        raise ValueError(f"{name} is registered with {row.dimensions} dimensions")
    return _registered(row)


def _registered(row: EmbeddingModelRow) -> RegisteredModel:
    return RegisteredModel(id=row.id, name=row.name, dimensions=row.dimensions)


def _make_partition(session: Session, model: RegisteredModel, hnsw: HnswSettings) -> None:
    storage = "PLAIN" if model.dimensions <= _MAX_INLINE_DIMENSIONS else "EXTERNAL"
    # Nothing here comes from outside: ids and dimensions are integers, settings are bounded.
    name, dimensions = model.partition, model.dimensions
    check = f"ck_{name}_dimensions CHECK (vector_dims(embedding) = {dimensions})"
    statements = [
        f"CREATE TABLE {name} PARTITION OF chunk_embeddings FOR VALUES IN ({model.id})",
        f"ALTER TABLE {name} ADD CONSTRAINT {check}",
        f"ALTER TABLE {name} ALTER COLUMN embedding SET STORAGE {storage}",
    ]
    if model.dimensions <= MAX_INDEXED_DIMENSIONS:
        statements.append(
            f"CREATE INDEX ix_{name}_hnsw ON {name} USING hnsw"
            f" (({model.indexed_vector}) halfvec_cosine_ops)"
            f" WITH (m = {int(hnsw.m)}, ef_construction = {int(hnsw.ef_construction)})"
        )
    for statement in statements:
        session.execute(text(statement))


def _activate_if_first(session: Session, row: EmbeddingModelRow) -> None:
    """The first model ever serves the portal's documents; later ones wait to be switched to."""
    session.execute(
        update(CollectionRow)
        .where(CollectionRow.name == "portal", CollectionRow.embedding_model_id.is_(None))
        .values(embedding_model_id=row.id)
    )
    serving = session.scalar(
        select(CollectionRow.embedding_model_id).where(CollectionRow.name == "portal")
    )
    if serving == row.id:
        row.status = "active"
        row.activated_at = session.scalar(select(func.now()))


def find_model(session: Session, name: str) -> RegisteredModel | None:
    row = session.scalar(select(EmbeddingModelRow).where(EmbeddingModelRow.name == name))
    return _registered(row) if row else None
