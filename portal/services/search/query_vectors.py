"""Query vectors supplied by the caller instead of text."""

from __future__ import annotations

from collections.abc import Sequence

from portal.domain.embedding import Vector
from portal.embeddings.validation import validated
from portal.errors import N_, InvalidEmbedding, InvalidQueryVector
from portal.store.embedding_models.registry import RegisteredModel


def checked(given: Sequence[float], model: RegisteredModel) -> Vector:
    """Return the vector (dimensions,) at unit length. Raises InvalidQueryVector, naming both
    dimensions where they differ."""
    if len(given) != model.dimensions:
        raise InvalidQueryVector(
            reason=N_(
                "it has %(got)s dimensions, and “%(name)s”, the model that serves, has %(wanted)s",
                got=len(given),
                name=model.name,
                wanted=model.dimensions,
            )
        )
    try:
        (vector,) = validated([given], dimensions=model.dimensions, count=1)
    except InvalidEmbedding as error:
        raise InvalidQueryVector(**error.params) from error
    unit: Vector = vector
    return unit
