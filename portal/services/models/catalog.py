"""The catalog of embedding models: names, registration and loading, and embedding for all
models."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import structlog
from pydantic import ValidationError

from portal.domain.embedding import Embedder, ModelSource, Vector
from portal.embeddings import PROVIDERS, create_embedder
from portal.embeddings.calibration.eventual import CALIBRATION_TIMEOUT_S
from portal.embeddings.layer import fix_length
from portal.embeddings.loaded import LoadedModel, LoadedModels
from portal.errors import Conflict, EmbedderUnavailable, InvalidEmbedding, InvalidInput, NoSuchModel
from portal.services import Services
from portal.services.models import directory_check
from portal.services.transactions import in_transaction
from portal.settings import EmbeddingSettings
from portal.store.documents.ingestion import embedded_texts
from portal.store.embedding_models import lifecycle, registry
from portal.store.embedding_models.registry import RegisteredModel
from portal.store.session import Session

log = structlog.get_logger(__name__)

_LOADED = LoadedModels()

# Vectors of the same texts by the id of their model; None if an inactive model failed.
ModelVectors = dict[int, Vector | None]


def loaded(
    services: Services, registered: RegisteredModel, *, is_urgent: bool = False
) -> LoadedModel:
    """Return the model of a registration, loading it if it is not in memory. When a user waits
    (`is_urgent`) its calibration may be the neutral one for some seconds. Raises
    EmbedderUnavailable, with the remedy, when this machine cannot load it."""
    if _is_configured(services, registered):
        found = LoadedModel(services.embedder, services.calibration)
    else:
        settings = settings_for(services, registered.source)
        found = _LOADED.get(
            settings,
            services.settings.data_dir / "cache",
            services.redis,
            timeout_s=0.0 if is_urgent else CALIBRATION_TIMEOUT_S,
        )
    # An endpoint may return vectors of another length than when the model was built.
    fix_length(found.embedder, registered.dimensions)
    found.calibration.adopt(registered.calibration)
    return found


def peek(services: Services, registered: RegisteredModel) -> Embedder | None:
    """Return the model of a registration if it is in memory, without loading or waiting."""
    if _is_configured(services, registered):
        return services.embedder
    settings = settings_for(services, registered.source)
    found = _LOADED.peek(settings, services.settings.data_dir / "cache")
    return found.embedder if found is not None else None


def _is_configured(services: Services, registered: RegisteredModel) -> bool:
    """Return whether the settings name this model, so that it is in memory already."""
    embedder, configured = services.embedder, services.settings.embedding
    if registered.name != embedder.name or directory_check.is_refused(registered, configured):
        return False
    # It is the only provider that returns any requested length under one name.
    return configured.provider != "hashing" or embedder.dimensions == registered.dimensions


def language_axis(services: Services, registered: RegisteredModel) -> Vector | None:
    """Return the model's direction of language (dimensions,), None while that is not known."""
    try:
        axis = loaded(services, registered).calibration.language_axis
    except EmbedderUnavailable:
        return None
    return axis if axis is not None and len(axis) == registered.dimensions else None


def source_of(
    settings: EmbeddingSettings, embedder: Embedder, *, dimensions: int | None = None
) -> ModelSource:
    """Return how to load the model of these settings again. `dimensions`, if they are known, save a
    request to an endpoint."""
    options: dict[str, Any] = {}
    if settings.provider == "sentence-transformers" and settings.model:
        path = Path(settings.model).expanduser()
        options = {"model": str(path.resolve()) if path.is_dir() else settings.model}
    elif settings.provider == "openai":
        options = {
            "model": settings.model_name,
            "dimensions": settings.dimensions,
            "api_base": settings.api_base,
        }
    length = dimensions or embedder.dimensions
    return ModelSource(settings.provider, embedder.name, length, options)


def settings_for(services: Services, source: ModelSource) -> EmbeddingSettings:
    """Return the settings that load this model from its provider, under this name."""
    configured, options = services.settings.embedding, source.options
    asked = source.dimensions if source.provider == "hashing" else options.get("dimensions")
    api_base = options.get("api_base", configured.api_base)
    return configured.model_copy(
        update={
            "provider": source.provider,
            "model": options.get("model", source.name),
            "dimensions": asked,
            "api_base": api_base,
            # The key belongs to the endpoint that it was set for, and is sent to no other.
            "api_key": configured.api_key if api_base == configured.api_base else None,
        }
    )


def named_settings(services: Services, spec: str) -> EmbeddingSettings:
    """Return the settings of a model that a user names: `provider`, `provider:model`,
    `provider:model@dimensions`, or the directory of a sentence-transformers model. Raises
    NoSuchModel when it is none of these, InvalidInput."""
    configured = services.settings.embedding
    if spec and Path(spec).expanduser().is_dir():
        spec = f"sentence-transformers:{spec}"
    provider, _, name = spec.partition(":")
    if provider not in PROVIDERS:
        if spec.startswith(("/", "~", "./", "../")):
            raise InvalidInput("there is no directory “%(path)s”", path=spec)
        raise NoSuchModel(name=spec)
    if not name and provider == configured.provider:
        return configured
    model, _, asked = name.rpartition("@")
    has_dimensions = bool(model) and asked.isdecimal()
    values = configured.model_dump() | {
        "provider": provider,
        "model": (model if has_dimensions else name) or None,
        "dimensions": int(asked) if has_dimensions else None,
    }
    try:
        return EmbeddingSettings(**values)
    except ValidationError as error:
        raise InvalidInput("a vector has 8 to 16000 dimensions") from error


def require(session: Session, name: str) -> RegisteredModel:
    """Return a registered model by name. Raises NoSuchModel."""
    model = registry.find_model(session, name)
    if model is None:
        raise NoSuchModel(name=name)
    return model


find = in_transaction(require)


def ensure_serving(services: Services) -> RegisteredModel:
    """Return the active model. If there is none, or it was chosen by earlier settings and has
    embedded nothing, register and activate the configured one."""
    with services.database.read() as session:
        active = registry.find_active(session)
        if active is not None and not _is_replaceable(session, services, active):
            return active
    source = source_of(services.settings.embedding, services.embedder)
    return services.database.with_lock_retries(lambda session: _adopt(session, services, source))


def _is_replaceable(session: Session, services: Services, active: RegisteredModel) -> bool:
    name = services.embedder.name
    if active.name == name or registry.find_model(session, name) is not None:
        return False
    return lifecycle.is_untried(session, active)


def _adopt(session: Session, services: Services, source: ModelSource) -> RegisteredModel:
    registry.lock_registry(session)
    active = registry.find_active(session)
    if active is not None and _is_replaceable(session, services, active):
        lifecycle.drop_model(session, active)
    axis = services.calibration.language_axis
    registry.ensure_model(session, source, services.settings.search, axis=axis)
    serving = registry.find_active(session)
    if serving is None:
        # It was registered to be built while no model was active.
        serving = require(session, source.name)
        lifecycle.activate_model(session, serving)
    return serving


def refresh_registration(services: Services) -> RegisteredModel:
    """Ensure an active model, and record how to load the configured model now if it is registered:
    a directory may have moved, an endpoint may have a new address."""
    active = ensure_serving(services)
    configured = services.settings.embedding
    with services.database.begin() as session:
        known = registry.find_model(session, services.embedder.name)
    if known is not None:
        is_remote = configured.provider == "openai"
        length = known.dimensions if is_remote else None
        source = source_of(configured, services.embedder, dimensions=length)
        _refresh(services, known, source)
    else:
        log.warning(
            "configured_model_does_not_serve",
            configured=services.embedder.name,
            serving=active.name,
            remedy="portal reindex --model, then portal models switch",
        )
    return active


def _refresh(services: Services, known: RegisteredModel, source: ModelSource) -> None:
    try:
        directory_check.require_same(services, known, source, services.embedder)
        if source.dimensions != known.dimensions:
            raise _dimensions_conflict(known.name, known.dimensions)
    except Conflict as error:
        # The portal keeps the model that its vectors are from.
        log.warning("configured_model_is_another", reason=error.reason)
        source = directory_check.with_refused(known, source)
    with services.database.begin() as session:
        registry.ensure_model(session, source, services.settings.search)


def register(services: Services, spec: str) -> RegisteredModel:
    """Register the model that `spec` names, to be built: a registered name, or what
    `named_settings` accepts. Raises NoSuchModel, InvalidInput, EmbedderUnavailable with the remedy,
    Conflict."""
    with services.database.begin() as session:
        known = registry.find_model(session, spec)
    if known is not None:
        return known
    settings = named_settings(services, spec)
    embedder = create_embedder(settings)
    source = source_of(settings, embedder)
    with services.database.begin() as session:
        known = registry.find_model(session, source.name)
    if known is not None:
        if directory_check.is_unchanged(known, source):
            return known
        directory_check.require_same(services, known, source, embedder)

    def add(session: Session) -> RegisteredModel:
        try:
            return registry.ensure_model(session, source, services.settings.search)
        except ValueError as error:
            registered = require(session, source.name).dimensions
            raise _dimensions_conflict(source.name, registered) from error

    return services.database.with_lock_retries(add)


def embed_for_all(
    services: Services,
    texts: Sequence[str],
    known: ModelVectors | None = None,
    *,
    document_id: UUID,
) -> ModelVectors:
    """Return vectors (len(texts), dimensions) from every registered model, by its id.

    A document added while a model is built, or kept for a rollback, needs vectors from all of them.
    Those that are `known` are kept. Texts that also occur in another document that the document's
    owner may see are not embedded again.

    The value is None for an inactive model that fails; its next build fills the gap. Raises
    EmbedderUnavailable or InvalidEmbedding when the active one fails.
    """
    active = ensure_serving(services)
    with services.database.read() as session:
        kept = registry.list_models(session)
    vectors = {
        id_: vectors
        for id_, vectors in (known or {}).items()
        if vectors is not None or id_ != active.id
    }
    for model in kept:
        if model.id in vectors:
            continue
        try:
            vectors[model.id] = _embed(services, model, texts, document_id)
        except (EmbedderUnavailable, InvalidEmbedding) as error:
            if model.id == active.id:
                raise
            log.warning("model_left_behind", model=model.name, code=error.code)
            vectors[model.id] = None
    return vectors


def _embed(
    services: Services, model: RegisteredModel, texts: Sequence[str], document_id: UUID
) -> Vector:
    different = list(dict.fromkeys(texts))
    with services.database.read() as session:
        found = embedded_texts.find_vectors(
            session, model.id, document_id=document_id, texts=different
        )
    new = [one for one in different if one not in found]
    if new:
        embedded = loaded(services, model).embedder.embed_chunks(new)
        if len(new) == len(texts):
            return embedded
        found |= dict(zip(new, embedded, strict=True))
    return np.array([found[text] for text in texts])


def built_elsewhere(name: str) -> Conflict:
    """Return the error for a model that another process builds."""
    return Conflict(
        "“%(name)s” is being built; wait for it to finish, or stop the build", name=name
    )


def _dimensions_conflict(name: str, dimensions: int) -> Conflict:
    return Conflict(
        "“%(name)s” is registered with %(dimensions)s dimensions; drop it first",
        name=name,
        dimensions=dimensions,
    )
