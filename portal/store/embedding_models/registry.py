"""The registry of embedding models. Each has its own partition with a typed index, so that vectors
of two models never mix and each index has one dimension."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, cast

from sqlalchemy import func, select, text, update
from sqlalchemy.orm import Session

from portal.domain import locks
from portal.domain.embedding import ModelSource, Vector
from portal.settings import SearchSettings
from portal.store.documents.selection import PORTAL_COLLECTION
from portal.store.embedding_models import language_axis
from portal.store.embedding_models.vector_index import IndexShape, create_statement, shape_for
from portal.store.models import CollectionRow, EmbeddingModelRow

Status = Literal["building", "ready", "active", "retired"]

# Vectors that programs supply with their own collection are registered under this name; the
# portal's documents are never embedded for them.
COLLECTION_PROVIDER = "collection"

_FOR_DOCUMENTS = EmbeddingModelRow.provider != COLLECTION_PROVIDER
_LISTED = select(EmbeddingModelRow).where(_FOR_DOCUMENTS).order_by(EmbeddingModelRow.id)
_ACTIVE = (
    select(EmbeddingModelRow)
    .join(CollectionRow, CollectionRow.embedding_model_id == EmbeddingModelRow.id)
    .where(CollectionRow.name == PORTAL_COLLECTION)
)
# A row must fit a page of 8 kB when its vector is stored inline (STORAGE PLAIN).
_MAX_INLINE_DIMENSIONS = 1900


@dataclass(frozen=True, slots=True)
class RegisteredModel:
    """A model with a partition of vectors. `shape` says how the partition's index is built, and so
    what a search must order by to use it. With `is_complete` no chunk lacks a vector; otherwise
    that is unknown."""

    id: int
    name: str
    dimensions: int
    provider: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    shape: IndexShape = field(default_factory=IndexShape)
    status: Status = "active"
    is_complete: bool = False
    activated_at: datetime | None = None
    retired_at: datetime | None = None
    calibration: Mapping[str, Any] | None = None

    @property
    def partition(self) -> str:
        """Return the partition's name, which is safe in SQL because it is made of an integer."""
        return f"chunk_embeddings_m{self.id}"

    @property
    def source(self) -> ModelSource:
        return ModelSource(self.provider, self.name, self.dimensions, dict(self.options))

    @property
    def candidate_factor(self) -> int:
        """Return how many times the wanted number of rows to read from the index: the order of
        binary vectors is approximate, and the best rows by `exact_distance` are the answer."""
        return self.shape.candidate_factor

    def order_expression(self, alias: str, bind: str) -> str:
        """Return the ascending ORDER BY expression that the index serves: `alias` is the
        partition's, `bind` a parameter with the query as a VectorParameter."""
        return self.shape.distance(f"{alias}.embedding", f":{bind}", self.dimensions)

    @staticmethod
    def exact_distance(alias: str, bind: str) -> str:
        """Return the cosine distance of the full vectors."""
        return f"({alias}.embedding <=> CAST(:{bind} AS vector))"


def lock_registry(session: Session, *, shared: bool = False) -> None:
    """Lock the registry until the transaction ends: shared for writers of vectors for all its
    models, exclusive for writers of the registry."""
    kind = "_shared" if shared else ""
    session.execute(
        text(f"SELECT pg_advisory_xact_lock{kind}(:key)"), {"key": locks.MODEL_REGISTRY}
    )


def ensure_model(
    session: Session, source: ModelSource, search: SearchSettings, *, axis: Vector | None = None
) -> RegisteredModel:
    """Return the model's registration, creating it with its partition and index if it is missing;
    `axis` (dimensions,) is its direction of language, if that is known. Raises ValueError when the
    name is registered with other dimensions."""
    lock_registry(session)
    row = session.scalar(select(EmbeddingModelRow).where(EmbeddingModelRow.name == source.name))
    if row is None:
        row = _add(session, source, search, axis)
    elif row.dimensions != source.dimensions:
        raise ValueError(f"{source.name} is registered with {row.dimensions} dimensions")
    elif dict(row.options) != source.options or row.provider != source.provider:
        # A directory that was moved, or an endpoint with a new address.
        row.provider, row.options = source.provider, source.options
        session.flush()
    return registered(row)


def _add(
    session: Session, source: ModelSource, search: SearchSettings, axis: Vector | None
) -> EmbeddingModelRow:
    shape = shape_for(search, source.dimensions)
    row = EmbeddingModelRow(
        name=source.name,
        provider=source.provider,
        dimensions=source.dimensions,
        options=source.options,
        index_method=shape.method,
        vector_type=shape.vector_type,
    )
    session.add(row)
    session.flush()
    make_partition(session, registered(row))
    _activate_if_first(session, row)
    if row.status == "active" and shape.method == "hnsw" and search.hnsw.enabled:
        # The first model serves from its first vector on. Other models get their index after their
        # rows, which is several times faster; IVFFlat needs rows to compute its centroids.
        if axis is not None:
            row.index_axis = language_axis.ensure(session, row.id, axis)
            session.flush()
        model = registered(row)
        session.execute(
            text(create_statement(model.partition, model.shape, model.dimensions, search))
        )
    return row


# The columns that `registered` reads, for a SELECT list in which the registry is m. Listed one by
# one: a statement prepared with all columns fails once a migration adds another.
REGISTERED_COLUMNS = """m.id, m.name, m.dimensions, m.provider, m.options, m.index_method,
    m.vector_type, m.index_axis, m.status, m.is_complete, m.activated_at, m.retired_at,
    m.calibration"""


def registered(row: Any) -> RegisteredModel:
    """Make a registration from a row of the registry, from any statement."""
    return RegisteredModel(
        id=row.id,
        name=row.name,
        dimensions=row.dimensions,
        provider=row.provider,
        options=dict(row.options),
        shape=IndexShape.of(row.index_method, row.vector_type, row.index_axis),
        status=cast("Status", row.status),
        is_complete=row.is_complete,
        activated_at=row.activated_at,
        retired_at=row.retired_at,
        calibration=row.calibration,
    )


def make_partition(session: Session, model: RegisteredModel) -> None:
    """Create the table for a model's vectors. Waits until no vectors of any model are being
    written."""
    storage = "PLAIN" if model.dimensions <= _MAX_INLINE_DIMENSIONS else "EXTERNAL"
    # Safe to format: ids and dimensions are integers.
    name, dimensions = model.partition, model.dimensions
    check = f"ck_{name}_dimensions CHECK (vector_dims(embedding) = {dimensions})"
    for statement in (
        f"CREATE TABLE {name} PARTITION OF chunk_embeddings FOR VALUES IN ({model.id})",
        f"ALTER TABLE {name} ADD CONSTRAINT {check}",
        f"ALTER TABLE {name} ALTER COLUMN embedding SET STORAGE {storage}",
    ):
        session.execute(text(statement))


def _activate_if_first(session: Session, row: EmbeddingModelRow) -> None:
    """Activate the first model ever for the portal's documents; later ones need a switch."""
    session.execute(
        update(CollectionRow)
        .where(CollectionRow.name == PORTAL_COLLECTION, CollectionRow.embedding_model_id.is_(None))
        .values(embedding_model_id=row.id)
    )
    serving = session.scalar(
        select(CollectionRow.embedding_model_id).where(CollectionRow.name == PORTAL_COLLECTION)
    )
    if serving == row.id:
        row.status = "active"
        row.activated_at = session.scalar(select(func.now()))
        row.is_complete = True  # No upload succeeds without a vector by it.
        session.flush()


def find_model(session: Session, name: str) -> RegisteredModel | None:
    row = session.scalar(
        select(EmbeddingModelRow).where(EmbeddingModelRow.name == name, _FOR_DOCUMENTS)
    )
    return registered(row) if row else None


def find_active(session: Session) -> RegisteredModel | None:
    """Return the active model of the portal's documents, None before the first is registered. Read
    it for each search: another process may have switched since."""
    row = session.scalar(_ACTIVE)
    return registered(row) if row else None


def list_models(session: Session) -> list[RegisteredModel]:
    """Return all models of the portal's documents, oldest first."""
    return [registered(row) for row in session.scalars(_LISTED)]


def set_complete(session: Session, model: RegisteredModel, *, is_complete: bool) -> None:
    """Record whether every chunk has a vector by this model. The caller must hold the registry's
    lock."""
    session.execute(
        update(EmbeddingModelRow)
        .where(EmbeddingModelRow.id == model.id, EmbeddingModelRow.is_complete != is_complete)
        .values(is_complete=is_complete)
    )


def hold_models(session: Session) -> list[RegisteredModel]:
    """Return all models; none is added, dropped or switched to before the transaction ends."""
    lock_registry(session, shared=True)
    return list_models(session)
