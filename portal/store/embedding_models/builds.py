"""Builds of a model's partition beside the active one, and their progress."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from sqlalchemy import Connection, Engine, Update, func, select, text, update
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from portal.domain import locks
from portal.domain.documents import Failure
from portal.domain.embedding import Vector
from portal.settings import SearchSettings
from portal.store.documents.ingestion import queue
from portal.store.documents.selection import PORTAL_COLLECTION
from portal.store.documents.texts import chunks as chunk_store
from portal.store.embedding_models import language_axis
from portal.store.embedding_models.lifecycle import IS_MISSING, PORTAL_CHUNKS, read_size
from portal.store.embedding_models.registry import RegisteredModel, list_models, lock_registry
from portal.store.embedding_models.vector_index import (
    build_aside,
    described,
    is_current,
    options,
    replace,
    shape_for,
    standing_indexes,
    wants_index,
)
from portal.store.models import EmbeddingModelRow
from portal.store.session import Database

BUILD_QUEUE = "models"
BUILD_TASK = "build_model"

_NIL = UUID(int=0)


@dataclass(frozen=True, slots=True)
class MissingChunk:
    id: UUID
    document_id: UUID
    job_id: UUID
    text: str


@dataclass(frozen=True, slots=True)
class BuildState:
    """The progress of a model's build, as last recorded. `stage` is None without a build."""

    stage: str | None
    done: int
    total: int
    failure: Failure | None
    comparison: dict[str, Any] | None

    @property
    def is_under_way(self) -> bool:
        return self.stage not in {None, "failed"}


def missing_chunks(
    session: Session, model: RegisteredModel, *, after: UUID | None, limit: int
) -> list[MissingChunk]:
    """Return the next chunks without a vector, by id, beginning after the id `after`: beginning at
    the start each time would scan everything that is done already."""
    query = f"""
        SELECT c.id, c.document_id, c.job_id, concat_ws(E'\\n', c.context, c.content)
        FROM {PORTAL_CHUNKS}
        WHERE c.id > :after AND {IS_MISSING.format(partition=model.partition)}
        ORDER BY c.id LIMIT :limit
    """
    binds = {"collection": PORTAL_COLLECTION, "after": after or _NIL, "limit": limit}
    return [MissingChunk(*row) for row in session.execute(text(query), binds)]


def add_missing(
    session: Session, model: RegisteredModel, chunks: Sequence[MissingChunk], vectors: Vector
) -> int:
    """Store vectors (len(chunks), dimensions) of those chunks that still exist and have no vector
    yet; return how many."""
    # Locked until the transaction ends, so that none is deleted in between.
    query = f"""
        SELECT c.id FROM document_chunks c
        WHERE c.id = ANY(:ids) AND {IS_MISSING.format(partition=model.partition)}
        ORDER BY c.id FOR KEY SHARE OF c
    """
    left = set(session.scalars(text(query), {"ids": [chunk.id for chunk in chunks]}))
    places = [place for place, chunk in enumerate(chunks) if chunk.id in left]
    by_job: dict[tuple[UUID, UUID], list[int]] = {}
    for place in places:
        by_job.setdefault((chunks[place].document_id, chunks[place].job_id), []).append(place)
    for (document_id, job_id), own in by_job.items():
        chunk_store.add_embeddings(
            session,
            model_id=model.id,
            document_id=document_id,
            job_id=job_id,
            chunk_ids=[chunks[place].id for place in own],
            vectors=vectors[own],
        )
    return len(places)


@contextmanager
def building(engine: Engine, model: RegisteredModel) -> Iterator[Connection | None]:
    """Open a connection without transactions, as concurrent index builds need, that holds the lock
    to build this model; yield None when another process holds it. The server releases the lock when
    the process dies for any reason."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        key = {"lock": locks.MODEL_BUILD, "model": model.id}
        held = connection.execute(text("SELECT pg_try_advisory_lock(:lock, :model)"), key).scalar()
        try:
            yield connection if held else None
        finally:
            if held:
                # A server that is gone has released it already.
                with suppress(DBAPIError):
                    connection.execute(text("SELECT pg_advisory_unlock(:lock, :model)"), key)


def update_index(
    database: Database,
    connection: Connection,
    model: RegisteredModel,
    search: SearchSettings,
    *,
    axis: Vector | None = None,
) -> None:
    """Bring the partition's index in line with the settings and, if the model's direction of
    language is known, shorten its vectors along this `axis` (dimensions,). A new index is built
    concurrently and replaces the old one in one transaction. `connection` has no transactions."""
    if not wants_index(search):
        for index in standing_indexes(connection, model.partition):
            connection.execute(text(f"DROP INDEX CONCURRENTLY IF EXISTS {index.name}"))
        return
    with database.begin() as session:
        lock_registry(session)
        axis_name = model.shape.axis
        if axis is not None:
            axis_name = language_axis.ensure(session, model.id, axis, standing=axis_name)
        shape = shape_for(search, model.dimensions, axis_name)
        size = read_size(session, model)
    if (
        shape == model.shape
        and size.index is not None
        and is_current(size.index, model.partition, shape, search, size.vectors)
    ):
        return
    name = build_aside(
        connection, model.partition, shape, model.dimensions, search, rows=size.vectors
    )

    def put_in_place(session: Session) -> None:
        lock_registry(session)
        replace(session, model.partition, name, shape.method)
        # Searches read this to know what to order by, so it changes with the index.
        session.execute(
            _update(model).values(
                index_method=shape.method, vector_type=shape.vector_type, index_axis=shape.axis
            )
        )

    database.with_lock_retries(put_in_place)


@dataclass(frozen=True, slots=True)
class IndexState:
    """The state of a model's vector index. `missing`: searches compare all of its vectors.
    `differs`: it is in use but does not match the settings; `has` and `wanted` describe both in
    words. `off`: the settings ask for none."""

    state: Literal["ok", "missing", "differs", "off"]
    has: str = ""
    wanted: str = ""


def index_state(session: Session, model: RegisteredModel, search: SearchSettings) -> IndexState:
    """Compare a model's index with the settings."""
    shape = shape_for(search, model.dimensions, model.shape.axis)
    rows = _estimate_rows(session, model) if shape.method == "ivfflat" else 0
    wanted = described(shape, options(shape, search, rows))
    usable = [index for index in standing_indexes(session, model.partition) if index.is_valid]
    if not wants_index(search):
        wanted = "no index"
        if not usable:
            return IndexState("off", "", wanted)
        return IndexState("differs", described(model.shape, usable[0].options), wanted)
    if not usable:
        # An IVFFlat index is built once there are vectors, from which it computes its lists.
        has_vectors = session.scalar(text(f"SELECT EXISTS (SELECT FROM {model.partition})"))
        return IndexState("missing" if has_vectors else "ok", "", wanted)
    has = described(model.shape, usable[0].options)
    is_same = shape == model.shape and is_current(usable[0], model.partition, shape, search, rows)
    return IndexState("ok" if is_same else "differs", has, wanted)


def _estimate_rows(session: Session, model: RegisteredModel) -> int:
    """Estimate the number of vectors; count them where no statistics have been gathered yet."""
    estimate = f"""
        SELECT CASE WHEN reltuples < 0 THEN (SELECT count(*) FROM {model.partition})
                    ELSE CAST(reltuples AS bigint) END
        FROM pg_class WHERE oid = to_regclass(:partition)
    """
    return session.scalar(text(estimate), {"partition": model.partition}) or 0


@dataclass(frozen=True, slots=True)
class MissingCheck:
    """Whether some of the checked chunks have no vector; `last` is the id of the last chunk, None
    at the end."""

    is_some: bool
    last: UUID | None


def check_missing(
    session: Session, model: RegisteredModel, *, after: UUID | None, limit: int
) -> MissingCheck:
    """Check whether any of the next `limit` chunks, by id, has no vector by a model."""
    query = f"""
        SELECT count(*) AS checked, (array_agg(c.id ORDER BY c.id DESC))[1] AS last,
               COALESCE(bool_or(e.chunk_id IS NULL), FALSE) AS is_some
        FROM (SELECT c.id FROM {PORTAL_CHUNKS} WHERE c.id > :after ORDER BY c.id LIMIT :limit) c
        LEFT JOIN {model.partition} e ON e.chunk_id = c.id
    """
    binds = {"collection": PORTAL_COLLECTION, "after": after or _NIL, "limit": limit}
    row = session.execute(text(query), binds).one()
    return MissingCheck(row.is_some, row.last if row.checked == limit else None)


def has_failed_lately(session: Session, model: RegisteredModel, *, within_s: float) -> bool:
    """Return whether the last build of a model failed, within the last `within_s` seconds."""
    query = (
        "SELECT stage = 'failed' AND noted_at > now() - make_interval(secs => :within_s)"
        " FROM embedding_models WHERE id = :id"
    )
    return bool(session.scalar(text(query), {"id": model.id, "within_s": within_s}))


def set_status(session: Session, model: RegisteredModel, status: str) -> None:
    session.execute(_update(model).values(status=status))


def note_progress(
    session: Session,
    model: RegisteredModel,
    stage: str | None,
    *,
    done: int = 0,
    total: int = 0,
    failure: Failure | None = None,
) -> None:
    session.execute(
        _update(model).values(
            stage=stage,
            done_count=done,
            total_count=total,
            error=failure.as_json() if failure else None,
            noted_at=func.now(),
        )
    )


def note_comparison(session: Session, model: RegisteredModel, comparison: dict[str, Any]) -> None:
    session.execute(_update(model).values(comparison=comparison))


def read_build(session: Session, model: RegisteredModel) -> BuildState:
    row = session.get_one(EmbeddingModelRow, model.id, populate_existing=True)
    failure = Failure.stored(row.error)
    return BuildState(row.stage, row.done_count, row.total_count, failure, row.comparison)


def is_queued(
    session: Session, model: RegisteredModel, statuses: Sequence[str] = ("todo", "doing")
) -> bool:
    """Return whether the queue has a build of this model, by default waiting or running."""
    query = """
        SELECT EXISTS (
            SELECT 1 FROM procrastinate_jobs
            WHERE CAST(status AS text) = ANY(:statuses) AND task_name = :task
              AND args->>'name' = :name
        )
    """
    binds = {"statuses": list(statuses), "task": BUILD_TASK, "name": model.name}
    return bool(session.scalar(text(query), binds))


def enqueue_build(session: Session, model: RegisteredModel) -> None:
    """Queue a slice of work on a model, once. Waiting documents go first, and slices of one model
    never run concurrently."""
    if not is_queued(session, model, ["todo"]):
        queue.defer(
            session,
            BUILD_QUEUE,
            BUILD_TASK,
            {"name": model.name},
            priority=queue.LOWEST_PRIORITY,
            lock=f"{BUILD_TASK}:{model.id}",
        )


def unfinished_without_queue_entry(session: Session) -> list[RegisteredModel]:
    """Return the models whose build has begun and has no queue entry."""
    stages = ["queued", "embedding", "indexing", "comparing"]
    begun = set(
        session.scalars(select(EmbeddingModelRow.id).where(EmbeddingModelRow.stage.in_(stages)))
    )
    return [
        model
        for model in list_models(session)
        if model.id in begun and not is_queued(session, model)
    ]


def _update(model: RegisteredModel) -> Update:
    return update(EmbeddingModelRow).where(EmbeddingModelRow.id == model.id)
