"""Validation of models and their vectors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from portal.domain.embedding import Embedder, StatementReader, Vector
from portal.errors import N_, EmbedderUnavailable, InvalidEmbedding

# Float32 rounding of a 4,000-dimensional sum stays far below this.
_MIN_NORM = 1e-6


def is_path(model: str) -> bool:
    """Return whether a model is named by a path, whether that exists or not. Names on the hub are
    ``owner/model``."""
    return model.startswith((".", "~", "/")) or Path(model).exists()


def reading(embedder: Embedder | StatementReader) -> StatementReader:
    """Return a model that reads statements. Raises EmbedderUnavailable if it gives only vectors."""
    if not isinstance(embedder, StatementReader):
        raise EmbedderUnavailable("the model gives only vectors")
    return embedder


def validated(vectors: npt.ArrayLike, *, dimensions: int, count: int) -> Vector:
    """Return the vectors as (count, dimensions) float32 of unit length.

    Raises InvalidEmbedding when the shape differs, a number is not finite, or a length is zero.
    """
    try:
        array = np.asarray(vectors, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidEmbedding("it is not a list of equally long lists of numbers") from error
    if count == 0 and array.size == 0:
        return np.empty((0, dimensions), dtype=np.float32)
    require_shape(array.shape, dimensions=dimensions, count=count)
    if not np.isfinite(array).all():
        raise InvalidEmbedding("some of its numbers are not finite")
    with np.errstate(over="ignore"):
        norms = np.linalg.norm(array, axis=1, keepdims=True)
    if not np.isfinite(norms).all():
        raise InvalidEmbedding("its numbers are too large")
    if (norms < _MIN_NORM).any():
        raise InvalidEmbedding("its length is zero, so it has no direction")
    unit: Vector = (array / norms).astype(np.float32)
    return unit


def require_shape(shape: tuple[int, ...], *, dimensions: int, count: int, of: str = "") -> None:
    """Raise InvalidEmbedding when vectors are not (count, dimensions); `of` names their model."""
    if shape != (count, dimensions):
        reason = N_(
            "expected %(count)s × %(dimensions)s numbers, got %(got)s",
            count=count,
            dimensions=dimensions,
            got=" × ".join(map(str, shape)) or N_("a single number"),
        )
        if of:
            reason = N_("“%(name)s”: %(reason)s", name=of, reason=reason)
        raise InvalidEmbedding(reason)
