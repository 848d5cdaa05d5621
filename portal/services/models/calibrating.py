"""Constants of confidence for models that come without: fitted to the stored chunks.

Until there are enough of these, another model's constants are borrowed, and explanations say so.
"""

from __future__ import annotations

import structlog

from portal.embeddings import corpus_fit
from portal.errors import EmbedderUnavailable, InvalidEmbedding
from portal.services import Services
from portal.services.models import catalog
from portal.store.embedding_models import registry, samples
from portal.store.embedding_models.registry import RegisteredModel

log = structlog.get_logger(__name__)

SAMPLED_CHUNKS = 2000
# Constants are fitted again when the chunks are this many times those they were made of.
_GROWTH = 4


def fit_if_due(services: Services) -> None:
    """Fit the model that serves, when it has no constants of its own and there is more to fit
    them to than before. Two counts when there is nothing to do."""
    with services.database.begin() as session:
        model = registry.find_active(session)
    if model is None:
        return
    try:
        fit_model(services, model)
    except (EmbedderUnavailable, InvalidEmbedding) as error:
        log.info("model_not_fitted", model=model.name, code=error.code)


def fit_model(services: Services, registered: RegisteredModel) -> bool:
    """Fit a model's constants to the stored chunks and keep them; whether that was done.

    It is not for models with constants of their own, nor with too few chunks, nor before these
    are `_GROWTH` times as many as last time. Raises EmbedderUnavailable, InvalidEmbedding.
    """
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
        samples.keep_constants(session, registered, constants | {"stored": stored})
    calibration.adopt(constants)
    log.info("model_fitted", model=registered.name, chunks=constants["passages"])
    return True
