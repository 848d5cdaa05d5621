"""Embedding of chunks that lack a vector from the active model, one batch per call."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import structlog

from portal.domain.people import User, require_admin
from portal.errors import EmbedderUnavailable, InvalidEmbedding, VectorStoreDisabled
from portal.services import Services
from portal.services.models import builds, catalog
from portal.store.embedding_models import builds as build_store
from portal.store.embedding_models import lifecycle
from portal.store.embedding_models.registry import RegisteredModel

log = structlog.get_logger(__name__)

# Small enough for the rate limits of providers.
DEFAULT_BATCH = 50
# The time of a batch of a small model on a busy machine; a full build takes longer.
TIMEOUT_S = 10.0
_PAUSE_S = 0.05


@dataclass(frozen=True, slots=True)
class Backfilled:
    """The result of a batch: how many chunks got vectors from `model`, how many still lack one."""

    model: str
    embedded: int
    remaining: int


def embed_batch(services: Services, user: User, *, batch_size: int) -> Backfilled:
    """Embed up to `batch_size` chunks that have no vector from the active model, and store all of
    these vectors or none.

    Raises Forbidden, VectorStoreDisabled, Conflict if another process is building the model for too
    long, and EmbedderUnavailable if the model returns no vectors, or invalid ones.
    """
    require_admin(user)
    if not services.settings.vector_store_enabled:
        raise VectorStoreDisabled
    model = catalog.ensure_serving(services)
    with _in_turn(services, model):
        embedded = _embed(services, model, batch_size)
        with services.database.begin() as session:
            remaining = lifecycle.coverage(session, model).missing
        if embedded and not remaining:
            builds.finish(services, model)
    log.info("batch_embedded", model=model.name, embedded=embedded, remaining=remaining)
    return Backfilled(model.name, embedded, remaining)


def _embed(services: Services, model: RegisteredModel, batch_size: int) -> int:
    try:
        batch = builds.fill_batch(services, model, after=None, size=batch_size)
    except InvalidEmbedding as error:
        raise EmbedderUnavailable(error.reason) from error
    return batch[1] if batch else 0


@contextmanager
def _in_turn(services: Services, model: RegisteredModel) -> Iterator[None]:
    """Wait for the lock to build a model. Raises Conflict when that takes too long."""
    # Nothing is held while waiting.
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        with build_store.building(services.database.engine, model) as connection:
            if connection is not None:
                yield
                return
        if time.monotonic() > deadline:
            raise catalog.built_elsewhere(model.name)
        time.sleep(_PAUSE_S)
