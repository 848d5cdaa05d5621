"""Check records of programs' collections before they are stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from portal.domain.embedding import Vector
from portal.errors import InvalidInput
from portal.store.embedding_models.registry import RegisteredModel
from portal.store.embedding_models.vector_index import MAX_VECTOR_DIMENSIONS

MAX_DIMENSIONS = 16_000
_MAX_HALF = 65_504.0  # The largest number of half precision.


def require_distinct(ids: Sequence[str]) -> None:
    doubled = [one for one, times in Counter(ids).items() if times > 1]
    if doubled:
        raise InvalidInput(
            "expected ids to be unique, found duplicates of %(ids)s", ids=str(doubled[:5])
        )


def common_length(vectors: Sequence[Vector]) -> int | None:
    """Return the common length of vectors, None if there are none. Raises InvalidInput."""
    if not vectors:
        return None
    lengths = {len(vector) for vector in vectors}
    if len(lengths) > 1 or not 0 < max(lengths) <= MAX_DIMENSIONS:
        raise InvalidInput("embeddings have one length, of 1 to %(max)s", max=MAX_DIMENSIONS)
    together = np.stack(vectors)
    if not np.isfinite(together).all():
        raise InvalidInput("embeddings must not hold NaN or infinity")
    (length,) = lengths
    if length > MAX_VECTOR_DIMENSIONS and np.abs(together).max() > _MAX_HALF:
        # Long embeddings are indexed in half precision.
        raise InvalidInput("long embeddings hold numbers up to %(max)s", max=f"{_MAX_HALF:g}")
    return length


def require_dimensions(model: RegisteredModel, dimensions: int) -> None:
    if model.dimensions != dimensions:
        raise InvalidInput(
            "collection expecting embedding with dimension of %(wanted)s, got %(got)s",
            wanted=model.dimensions,
            got=dimensions,
        )
