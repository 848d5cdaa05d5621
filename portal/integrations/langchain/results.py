"""Return records in the form of Chroma's client."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from portal.domain.vector_collections import StoredRecord

_INCLUDABLE = ("documents", "embeddings", "metadatas", "distances", "uris", "data")


def checked_include(include: Iterable[str]) -> tuple[str, ...]:
    """Check the fields that a caller requests. Raises ValueError for an unknown one."""
    included = tuple(include)
    for field in included:
        if field not in _INCLUDABLE:
            raise ValueError(f"include takes {', '.join(_INCLUDABLE)}; got {field}")
    return included


def as_result(
    found: Sequence[Sequence[StoredRecord]], included: tuple[str, ...], *, nested: bool
) -> dict[str, Any]:
    """Return a list per field, and with `nested` a list per query."""
    fields: dict[str, Callable[[Sequence[StoredRecord]], Any]] = {
        "ids": lambda records: [record.id for record in records],
        "embeddings": _matrix,
        "documents": lambda records: [record.content for record in records],
        "metadatas": lambda records: [record.metadata or None for record in records],
        "distances": lambda records: [record.distance for record in records],
    }
    names = ["ids", "embeddings", "documents", "metadatas", *(["distances"] if nested else [])]
    result: dict[str, Any] = {"included": list(included), "uris": None, "data": None}
    for name in names:
        is_wanted = name == "ids" or name in included
        values = [fields[name](records) for records in found] if is_wanted else None
        result[name] = values if nested or values is None else values[0]
    return result


def _matrix(records: Sequence[StoredRecord]) -> Any:
    vectors = [record.vector for record in records if record.vector is not None]
    return np.stack(vectors) if vectors else np.empty((0, 0), np.float32)
