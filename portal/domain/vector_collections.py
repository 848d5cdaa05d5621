"""Programs' collections, besides the portal's own: texts with vectors and metadata.

Their documents have no owner: no page and no search of the portal shows them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from portal.domain.embedding import Vector
from portal.domain.search.metadata_filter import MetadataFilter

Distance = Literal["cosine", "l2", "ip"]
"""``cosine``: 1 - cosine; ``l2``: the square of the Euclidean distance; ``ip``: 1 - dot product.
The lower, the nearer."""

DISTANCES: tuple[Distance, ...] = ("cosine", "l2", "ip")


@dataclass(frozen=True, slots=True)
class NewRecord:
    """A record to store under `id`. `vector` is (dimensions,) float32; None keeps the stored one.
    Records with the same `document` belong to one document; with None, a record has its own."""

    id: str
    content: str
    metadata: Mapping[str, Any]
    vector: Vector | None
    document: str | None = None


@dataclass(frozen=True, slots=True)
class RecordChange:
    """Changes of a record; None changes nothing. A metadata value of None removes its key."""

    id: str
    content: str | None = None
    metadata: Mapping[str, Any] | None = None
    vector: Vector | None = None


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A stored record; `vector` if requested, `distance` if it was found by one, `score` (higher is
    better) if words counted too."""

    id: str
    content: str
    metadata: dict[str, Any]
    vector: Vector | None = None
    distance: float | None = None
    score: float | None = None


@dataclass(frozen=True, slots=True)
class TextCondition:
    """The text contains these words, letter by letter, or does not."""

    words: str
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class TextConditions:
    """All of the conditions hold, or at least one."""

    parts: tuple[TextCondition | TextConditions, ...]
    any_suffices: bool = False


TextFilter = TextCondition | TextConditions


@dataclass(frozen=True, slots=True)
class RecordFilter:
    """A filter of records; all given parts must match."""

    ids: tuple[str, ...] | None = None
    metadata: MetadataFilter | None = None
    text: TextFilter | None = None

    @property
    def is_empty(self) -> bool:
        return self == RecordFilter()


@dataclass(frozen=True, slots=True)
class Page:
    """A slice of the records in order of first insertion."""

    limit: int | None = None
    offset: int = 0
    with_vectors: bool = field(default=False, kw_only=True)
