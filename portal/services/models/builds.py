"""Builds of a model's vectors beside the active ones, in batches that can be interrupted.

The partition itself is the record of progress: a resumed build begins with the first chunk that has
no vector.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

import structlog

from portal.database.cancelling import Cancelled, cancelled_when
from portal.domain.documents import Failure
from portal.errors import Conflict, NoSuchModel, PortalError
from portal.services import Services
from portal.services.models import catalog, comparison
from portal.store.embedding_models import builds as build_store
from portal.store.embedding_models import lifecycle, registry
from portal.store.embedding_models.registry import RegisteredModel

log = structlog.get_logger(__name__)

# After this long a worker yields to other jobs.
SLICE_S = 20.0
# A permanent failure, such as a wrong key, is not retried more often.
FAILED_AGAIN_AFTER_S = 600.0

Stage = Literal["embedding", "indexing", "comparing"]


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a build: `done` of `total` chunks have a vector."""

    stage: Stage
    done: int
    total: int


class Paused(Exception):
    """The build stopped between two batches, or while its index was built; stored vectors are
    kept."""


def build(
    services: Services,
    name: str,
    *,
    batch_size: int | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    should_quit: Callable[[], bool] = lambda: False,
) -> Generator[Progress]:
    """Bring a model up to date while searches continue: embed every chunk, `batch_size` at a time,
    each batch whole or not at all; then build its index; then compare it to the active model. Safe
    to repeat.

    Raises NoSuchModel, Conflict when it is being built elsewhere, Paused when `should_stop` returns
    True between two batches or `should_quit` does while the index is built, EmbedderUnavailable and
    InvalidEmbedding.
    """
    model = catalog.find(services, name)
    with build_store.building(services.database.engine, model) as connection:
        if connection is None:
            raise catalog.built_elsewhere(name)
        try:
            yield from _fill(services, model, batch_size, should_stop)
            yield Progress("indexing", *_note(services, model, "indexing"))
            with cancelled_when(connection, should_quit):
                build_store.update_index(
                    services.database,
                    connection,
                    model,
                    services.settings.search,
                    axis=catalog.language_axis(services, model),
                )
            yield Progress("comparing", *_note(services, model, "comparing"))
            comparison.compare_with_serving(services, model)
        except Cancelled as error:
            raise Paused from error
        except PortalError as error:
            _note(services, model, "failed", Failure.of(error))
            raise
        except (GeneratorExit, KeyboardInterrupt):
            # It was cancelled, so no worker may resume it.
            _note(services, model, None)
            raise
        finish(services, model)


def build_slice(services: Services, name: str, *, should_stop: Callable[[], bool]) -> None:
    """Build for some seconds, and queue the rest: a worker has documents to ingest as well."""
    ends_at = time.monotonic() + SLICE_S
    try:
        for _ in build(
            services,
            name,
            should_stop=lambda: should_stop() or time.monotonic() > ends_at,
            should_quit=should_stop,
        ):
            pass
    except Paused:
        with services.database.begin() as session:
            build_store.enqueue_build(session, catalog.find(services, name))
    except NoSuchModel:
        log.info("model_gone", model=name)
    except Conflict:
        log.info("model_built_elsewhere", model=name)
    except PortalError as error:
        # Recorded with the model, where administrators see it.
        log.warning("model_build_failed", model=name, code=error.code)


def requeue_lost(services: Services) -> None:
    """Queue interrupted builds whose worker or queue entry is gone. Also queue the active model if
    chunks lost their vectors, or if its index was dropped, differs from the settings, or was built
    before the model's direction of language was known; but not within `FAILED_AGAIN_AFTER_S` of a
    failed build."""
    with services.database.begin() as session:
        for model in build_store.unfinished_without_queue_entry(session):
            log.warning("model_build_requeued", model=model.name)
            build_store.enqueue_build(session, model)
        serving = registry.find_active(session)
        if serving is None or build_store.is_queued(session, serving):
            return
        if build_store.has_failed_lately(session, serving, within_s=FAILED_AGAIN_AFTER_S):
            return
        if services.vector_rounds.find_missing(session, serving):
            log.warning("chunks have no vectors; embedding them", model=serving.name)
            build_store.enqueue_build(session, serving)
            return
        index = build_store.index_state(session, serving, services.settings.search)
        if index.state == "missing":
            log.warning("vector index is missing; building it", model=serving.name)
        elif index.state == "differs":
            log.warning(
                "vector index differs from settings; replacing it",
                model=serving.name,
                has=index.has,
                wanted=index.wanted,
            )
        elif (
            index.state == "ok"
            and serving.shape.axis is None
            and catalog.language_axis(services, serving) is not None
        ):
            log.info("vector_index_across_languages_queued", model=serving.name)
        else:
            return
        build_store.enqueue_build(session, serving)


def _fill(
    services: Services,
    model: RegisteredModel,
    batch_size: int | None,
    should_stop: Callable[[], bool],
) -> Iterator[Progress]:
    """Embed chunks until none is missing."""
    # Several passes, because chunks may be added behind the position of the first.
    size = batch_size or services.settings.embedding.batch_size
    done, total = _note(services, model, "embedding")
    yield Progress("embedding", done, total)
    while done < total:
        after: UUID | None = None
        while added := fill_batch(services, model, after=after, size=size, should_stop=should_stop):
            after, count = added
            done = min(total, done + count)
            with services.database.begin() as session:
                build_store.note_progress(session, model, "embedding", done=done, total=total)
            yield Progress("embedding", done, total)
        done, total = _note(services, model, "embedding")


def fill_batch(
    services: Services,
    model: RegisteredModel,
    *,
    after: UUID | None,
    size: int,
    should_stop: Callable[[], bool] = lambda: False,
) -> tuple[UUID, int] | None:
    """Embed the next chunks after an id, all or none; return the last one's id and the number of
    vectors added, None at the end. Raises Paused, EmbedderUnavailable, InvalidEmbedding."""
    with services.database.begin() as session:
        chunks = build_store.missing_chunks(session, model, after=after, limit=size)
    if not chunks:
        return None
    if should_stop():
        raise Paused
    # Embedding is slow and must not hold a transaction open.
    embedder = catalog.loaded(services, model).embedder
    vectors = embedder.embed_chunks([chunk.text for chunk in chunks])
    with services.database.begin() as session:
        added = build_store.add_missing(session, model, chunks, vectors)
    return chunks[-1].id, added


def _note(
    services: Services, model: RegisteredModel, stage: str | None, failure: Failure | None = None
) -> tuple[int, int]:
    """Record the stage of a build, and how many of the chunks have a vector."""
    with services.database.begin() as session:
        coverage = lifecycle.coverage(session, model)
        done, total = coverage.chunks - coverage.missing, coverage.chunks
        build_store.note_progress(session, model, stage, done=done, total=total, failure=failure)
    return done, total


def finish(services: Services, model: RegisteredModel) -> None:
    """Mark a model as complete if every chunk has a vector."""
    with services.database.begin() as session:
        # Held during the count: chunks added from now on are recorded after it.
        registry.lock_registry(session)
        known = registry.find_model(session, model.name)
        if known is None:
            return
        coverage = lifecycle.coverage(session, known)
        registry.set_complete(session, known, is_complete=not coverage.missing)
        done = coverage.chunks - coverage.missing
        build_store.note_progress(session, known, None, done=done, total=coverage.chunks)
        if known.status == "building":
            build_store.set_status(session, known, "ready")
