"""The active model, the other registered models, and switching between them.

Searches use the active model until one transaction makes another one active; every process reads
for each search which one it is. The vectors of the previous model are kept, and new uploads get
theirs too, until it is dropped, so that a rollback loses nothing.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import structlog

from portal.domain.people import User
from portal.embeddings.validation import is_path
from portal.errors import Conflict, InvalidInput
from portal.services import Services, audit
from portal.services.audit import AuditEvent, Subject, SubjectKind
from portal.services.models import catalog
from portal.store.embedding_models import builds as build_store
from portal.store.embedding_models import lifecycle, registry
from portal.store.embedding_models.builds import BuildState
from portal.store.embedding_models.lifecycle import Coverage, Size
from portal.store.embedding_models.registry import RegisteredModel
from portal.store.session import Session

log = structlog.get_logger(__name__)

# Longer than the names that hubs and endpoints give their models.
_MAX_NAME_LENGTH = 200


@dataclass(frozen=True, slots=True)
class ModelSummary:
    """A model as an administrator sees it. `is_previous` marks the one that a rollback returns
    to."""

    model: RegisteredModel
    coverage: Coverage
    size: Size
    build: BuildState
    is_previous: bool


@dataclass(frozen=True, slots=True)
class Switched:
    """The result of a switch: the active model, the previous one, and how long it took."""

    model: RegisteredModel
    before: RegisteredModel | None
    duration_s: float


def list_models(services: Services) -> list[ModelSummary]:
    """Return all models, oldest first."""
    with services.database.begin() as session:
        previous = lifecycle.find_previous(session)
        return [
            ModelSummary(
                model=model,
                coverage=lifecycle.coverage(session, model),
                size=lifecycle.read_size(session, model),
                build=build_store.read_build(session, model),
                is_previous=previous is not None and previous.id == model.id,
            )
            for model in registry.list_models(session)
        ]


def request_build(services: Services, spec: str) -> RegisteredModel:
    """Register a model and queue its build. For users without access to the machine: directories
    are refused. Raises as `register`, InvalidInput."""
    name = spec.partition(":")[2] or spec
    with services.database.begin() as session:
        known = registry.find_model(session, spec) is not None
    if not known and (len(name) > _MAX_NAME_LENGTH or is_path(name)):
        raise InvalidInput("“%(name)s” cannot be built from this page", name=spec)
    model = catalog.register(services, spec)
    with services.database.begin() as session:
        build_store.note_progress(session, model, "queued")
        build_store.enqueue_build(session, model)
    return model


def switch(
    services: Services, name: str, *, force: bool = False, actor: User | None = None
) -> Switched:
    """Make another model active from the next search on, in one transaction. Raises NoSuchModel;
    Conflict when it is active already or, unless `force` is given, chunks have no vector from it
    yet: search by meaning would not find them."""
    if not force:
        # Count everything first, before the lock that others wait for.
        with services.database.begin() as session:
            _require_vectors(session, catalog.require(session, name))
    return _switch(services, name, force=force, actor=actor)


def rollback(services: Services, *, force: bool = False, actor: User | None = None) -> Switched:
    """Return to the previously active model at once. Raises Conflict as `switch`, and when there is
    none."""
    with services.database.begin() as session:
        previous = lifecycle.find_previous(session)
    if previous is None:
        raise Conflict("there is no previous model to roll back to")
    return _switch(services, previous.name, force=force, actor=actor)


def _switch(services: Services, name: str, *, force: bool, actor: User | None) -> Switched:
    started = time.monotonic()
    with services.database.begin() as session:
        registry.lock_registry(session)
        before = registry.find_active(session)
        model = catalog.require(session, name)
        if before is not None and before.id == model.id:
            raise Conflict("“%(name)s” is already active", name=name)
        if not force and not model.is_complete:
            _require_vectors(session, model)
        lifecycle.activate_model(session, model)
        serving = catalog.require(session, name)
        audit.record(
            session,
            AuditEvent.MODEL_SWITCHED,
            actor,
            Subject(SubjectKind.MODEL, model.id, name),
            before=before.name if before else None,
        )
    log.info("model_switched", model=name, before=before.name if before else None)
    return Switched(serving, before, time.monotonic() - started)


def _require_vectors(session: Session, model: RegisteredModel) -> None:
    missing = lifecycle.coverage(session, model).missing
    if missing or model.status == "building":
        raise Conflict(
            "%(missing)s passages have not been embedded by “%(name)s” yet; finish building "
            "it first",
            missing=missing,
            name=model.name,
        )


def drop(services: Services, name: str, *, actor: User | None = None) -> None:
    """Delete a model with all its vectors. Raises NoSuchModel; Conflict when it is active or being
    built."""
    model = catalog.find(services, name)
    with build_store.building(services.database.engine, model) as connection:
        if connection is None:
            raise catalog.built_elsewhere(name)

        def erase(session: Session) -> None:
            registry.lock_registry(session)
            active = registry.find_active(session)
            if active is not None and active.name == name:
                raise Conflict("“%(name)s” is active; switch to another model first", name=name)
            dropped = catalog.require(session, name)
            lifecycle.drop_model(session, dropped)
            subject = Subject(SubjectKind.MODEL, dropped.id, name)
            audit.record(session, AuditEvent.MODEL_DROPPED, actor, subject)

        services.database.with_lock_retries(erase)
    log.info("model_dropped", model=name)
