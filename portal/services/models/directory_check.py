"""Detection of a model directory that was moved, as opposed to another model of the same name.

Models in directories are identified by the directory's name. Vectors of two models must not mix
under it, so a directory is checked against the stored vectors.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from portal.domain.embedding import Embedder, ModelSource
from portal.errors import Conflict
from portal.services import Services
from portal.settings import EmbeddingSettings
from portal.store.embedding_models import samples
from portal.store.embedding_models.registry import RegisteredModel

# The same weights on another machine, or in another batch, differ by rounding.
MIN_SIMILARITY = 0.99
_SAMPLED_CHUNKS = 5
_IN_DIRECTORIES = "sentence-transformers"
# The option of a registration with the directory that was found to hold another model.
_REFUSED = "refused"


def require_same(
    services: Services, registered: RegisteredModel, source: ModelSource, embedder: Embedder
) -> None:
    """Raise Conflict if `source` would load another model than the one that the stored vectors are
    from. Also raises EmbedderUnavailable, InvalidEmbedding."""
    before, now = registered.options.get("model"), source.options.get("model")
    has_moved = registered.provider != source.provider or before != now
    if source.provider != _IN_DIRECTORIES or not has_moved:
        return
    if source.dimensions != registered.dimensions:
        return
    with services.database.begin() as session:
        texts, kept = samples.sample_embedded(session, registered, limit=_SAMPLED_CHUNKS)
    if not texts:
        return
    vectors = embedder.embed_chunks(texts)
    # The median, because programs may have supplied some of the vectors.
    if float(np.median((vectors * kept).sum(axis=1))) >= MIN_SIMILARITY:
        return
    raise Conflict(
        "“%(name)s” is the model in %(before)s, and the one in %(now)s gives other vectors; "
        "give its directory another name",
        name=source.name,
        before=before,
        now=now,
    )


def is_unchanged(registered: RegisteredModel, source: ModelSource) -> bool:
    """Return whether `source` is the one that is registered already."""
    options = {name: value for name, value in registered.options.items() if name != _REFUSED}
    same = (registered.provider, registered.dimensions, options)
    return same == (source.provider, source.dimensions, source.options)


def with_refused(registered: RegisteredModel, source: ModelSource) -> ModelSource:
    """Return the registration's source with the directory that must not be loaded for it."""
    options = dict(registered.options)
    if source.provider == _IN_DIRECTORIES:
        options[_REFUSED] = source.options.get("model")
    return ModelSource(registered.provider, registered.name, registered.dimensions, options)


def is_refused(registered: RegisteredModel, configured: EmbeddingSettings) -> bool:
    """Return whether the configured directory was found to hold another model of the same name."""
    refused = registered.options.get(_REFUSED)
    if refused is None or configured.provider != _IN_DIRECTORIES or not configured.model:
        return False
    return bool(str(Path(configured.model).expanduser().resolve()) == refused)
