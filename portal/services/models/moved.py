"""Whether a directory that is called like a model that is kept holds that model, moved.

Models in directories are known by the directory's name. Vectors of two must not meet under it, so
the vectors that are kept say which model it is.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import structlog

from portal.domain.embedding import Embedder, ModelSource
from portal.errors import N_, Conflict
from portal.services import Services
from portal.settings import EmbeddingSettings
from portal.store.embedding_models import samples
from portal.store.embedding_models.registry import RegisteredModel

log = structlog.get_logger(__name__)

# The same weights on another machine, or in another batch, differ by rounding.
MIN_LIKENESS = 0.99
_SAMPLED_CHUNKS = 5
_IN_DIRECTORIES = "sentence-transformers"
# Among a registration's options: the directory that was found to hold another model.
_REFUSED = "refused"


def require_same(
    services: Services, registered: RegisteredModel, source: ModelSource, embedder: Embedder
) -> None:
    """Raises Conflict when `source` would load another model than the one whose vectors are kept;
    EmbedderUnavailable, InvalidEmbedding."""
    if not _has_moved(registered, source) or source.dimensions != registered.dimensions:
        return
    with services.database.begin() as session:
        texts, kept = samples.sample_chunks(session, registered, limit=_SAMPLED_CHUNKS)
    if not texts:
        return
    given = embedder.embed_chunks(texts)
    # Programs may have brought single vectors of their own along.
    if float(np.median((given * kept).sum(axis=1))) >= MIN_LIKENESS:
        return
    before, now = registered.options.get("model"), source.options.get("model")
    raise Conflict(
        reason=N_(
            "“%(name)s” is the model in %(before)s, and the one in %(now)s gives other vectors; "
            "give its directory another name",
            name=source.name,
            before=before,
            now=now,
        )
    )


def _has_moved(registered: RegisteredModel, source: ModelSource) -> bool:
    return source.provider == _IN_DIRECTORIES and (
        registered.provider != source.provider
        or registered.options.get("model") != source.options.get("model")
    )


def is_unchanged(registered: RegisteredModel, source: ModelSource) -> bool:
    """Whether `source` says nothing new of a registration."""
    options = {name: value for name, value in registered.options.items() if name != _REFUSED}
    same = (registered.provider, registered.dimensions, options)
    return same == (source.provider, source.dimensions, source.options)


def with_refused(registered: RegisteredModel, source: ModelSource) -> ModelSource:
    """The registration as it is, with the directory that is not to be loaded for it."""
    options = dict(registered.options)
    if source.provider == _IN_DIRECTORIES:
        options[_REFUSED] = source.options.get("model")
    return ModelSource(registered.provider, registered.name, registered.dimensions, options)


def is_refused(registered: RegisteredModel, configured: EmbeddingSettings) -> bool:
    """Whether the configured directory was found to hold another model of the same name."""
    refused = registered.options.get(_REFUSED)
    if refused is None or configured.provider != _IN_DIRECTORIES or not configured.model:
        return False
    return bool(str(Path(configured.model).expanduser().resolve()) == refused)
