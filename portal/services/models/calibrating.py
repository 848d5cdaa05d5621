"""Calibration of models that come without constants for confidence, on the stored chunks.

Until there are enough chunks, another model's constants are used, and explanations report it.
"""

from __future__ import annotations

import structlog

from portal.embeddings.calibration import corpus_fit
from portal.errors import EmbedderUnavailable, InvalidEmbedding
from portal.services import Services
from portal.services.models import catalog
from portal.store.embedding_models import registry, samples
from portal.store.embedding_models.registry import RegisteredModel

log = structlog.get_logger(__name__)

SAMPLED_CHUNKS = 2000
# Constants are fitted again when there are this many times the chunks of the last fit.
_GROWTH = 4


def fit_if_due(services: Services) -> None:
    """Fit the active model, if it comes without constants and enough chunks were added. Costs two
    counts otherwise."""
    with services.database.begin() as session:
        model = registry.find_active(session)
    if model is None:
        return
    try:
        fit_model(services, model)
    except (EmbedderUnavailable, InvalidEmbedding) as error:
        log.info("model_not_fitted", model=model.name, code=error.code)


def fit_model(services: Services, registered: RegisteredModel) -> bool:
    """Fit a model's constants to the stored chunks and store them; return whether that was done.
    Does nothing for models with their own constants, with too few chunks, or before there are
    `_GROWTH` times as many as last time. Raises EmbedderUnavailable, InvalidEmbedding."""
    calibration = catalog.loaded(services, registered).calibration
    if calibration.fitted or not calibration.ready:
        return False
    with services.database.begin() as session:
        stored = samples.count_chunks(session, registered)
        kept = samples.read_constants(session, registered) or {}
        if stored < max(corpus_fit.MIN_CHUNKS, _GROWTH * int(kept.get("stored", 0))):
            return False
        sampled = samples.sample_vectors(session, registered, limit=SAMPLED_CHUNKS)
    constants = corpus_fit.fit(calibration, sampled.vectors, sampled.languages)
    if constants is None:
        return False
    with services.database.begin() as session:
        samples.save_constants(session, registered, constants | {"stored": stored})
    calibration.adopt(constants)
    log.info("model_fitted", model=registered.name, chunks=constants["passages"])
    return True
