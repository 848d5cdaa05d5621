"""Check the values that programs pass, and convert them to the store's types.

Text is stored as it is, except for NUL and lone surrogates, which PostgreSQL cannot store: a space
and a question mark replace them (`portal.text.characters.storable`), in texts and in metadata, and
a warning is logged. Ids must not contain them: records would not be found by the original id.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import structlog

from portal.domain.embedding import Vector
from portal.domain.search.metadata_filter import parse_filter
from portal.domain.search.text_filter import parse_text_filter
from portal.domain.vector_collections import RecordFilter
from portal.errors import InvalidInput, NotFound
from portal.text.characters.storable import storable

# Well below the maximum size of an entry in PostgreSQL's index.
MAX_ID_BYTES = 2000
MAX_NESTING = 32
# More records than a collection can have.
_MAX_COUNT = 2**31 - 1
DEFAULT_DOCUMENT_KEY = "resource_hash"
# As with Chroma, programs may filter by long lists, such as all sources of a folder by `$in`. These
# limits only keep one statement from overloading the server; the limits over HTTP are lower.
MAX_FILTER_VALUES = 10_000
MAX_FILTER_CONDITIONS = 1_000

log = structlog.get_logger(__name__)


@contextmanager
def translate_collection_errors(collection: str) -> Iterator[None]:
    """Raise ValueError for errors of a collection's caller, as vector stores do."""
    try:
        yield
    except InvalidInput as error:
        raise ValueError(error.reason) from error
    except NotFound as error:
        raise ValueError(f"collection [{collection}] does not exist") from error


def one_or_many(value: Any) -> list[Any]:
    """Return a list of ids, texts or metadata, of which one may be passed without a list."""
    return [value] if isinstance(value, str | Mapping) else list(value)


def checked_ids(ids: Any) -> list[str]:
    """Return ids that can be stored. Raises ValueError."""
    found = one_or_many(ids)
    for item in found:
        if not isinstance(item, str):
            raise ValueError(f"expected ID to be a str, got {item!r}")
        if not item or len(item.encode("utf-8", "replace")) > MAX_ID_BYTES:
            raise ValueError(f"an ID has 1 to {MAX_ID_BYTES} bytes")
        if item != storable(item):
            raise ValueError("an ID must not contain NUL or an unpaired surrogate")
    return found


def checked_count(value: Any, name: str, *, min_value: int, max_value: int | None = None) -> int:
    """Check a number of records to read or to skip. Raises ValueError."""
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_whole or value < min_value or (max_value is not None and value > max_value):
        allowed = f"{min_value} to {max_value}" if max_value else f"a whole number ≥ {min_value}"
        raise ValueError(f"{name} is {allowed}; got {value!r}")
    return min(int(value), _MAX_COUNT)


def clean_text(value: Any) -> str:
    """Return a text that can be stored. Raises ValueError for any other type."""
    if not isinstance(value, str):
        raise ValueError(f"expected a text, got {type(value).__name__}")
    cleaned = storable(value)
    if cleaned != value:
        log.warning("replaced NUL or an unpaired surrogate in a text", length=len(value))
    return cleaned


def clean_metadata(value: Any) -> dict[str, Any]:
    """Return metadata that can be stored: JSON of any nesting up to a limit. Raises ValueError."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ValueError(f"expected metadata to be a dict, got {type(value).__name__}")
    return {_key(key): _clean(one, MAX_NESTING) for key, one in value.items()}


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise ValueError(f"expected metadata key to be a str, got {key!r}")
    return clean_text(key)


def _clean(value: Any, nesting: int) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError("metadata must not hold NaN or infinity")
        return value
    if not nesting:
        raise ValueError(f"metadata is nested at most {MAX_NESTING} deep")
    if isinstance(value, list):
        return [_clean(element, nesting - 1) for element in value]
    if isinstance(value, dict):
        return {_key(key): _clean(one, nesting - 1) for key, one in value.items()}
    raise ValueError(
        "expected metadata value to be a str, int, float, bool, list, dict or None, "
        f"got {type(value).__name__}"
    )


def document_name(metadata: Mapping[str, Any], key: str | None) -> str | None:
    """Return the name of a record's document under `key`, or None if the record is its own."""
    name = metadata.get(key) if key else None
    return str(name) if isinstance(name, str | int) and name != "" else None


def vectors_of(embeddings: Any, count: int) -> list[Vector]:
    """Convert lists, arrays or a single vector to `count` float32 vectors. Raises ValueError."""
    found = list(embeddings)
    if found and np.ndim(found[0]) == 0:
        found = [found]
    if len(found) != count:
        raise ValueError(f"unequal lengths: {count} ids, {len(found)} embeddings")
    return [vector_of(item) for item in found]


def vector_of(embedding: Any) -> Vector:
    """Convert a vector to float32 (dimensions,). Raises ValueError if it is empty, not a list of
    numbers, or not finite."""
    try:
        # Numbers that are too large for float32 become infinite, and are refused below.
        with np.errstate(over="ignore"):
            vector = np.asarray(embedding, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise ValueError("an embedding is a list of numbers") from error
    if vector.ndim != 1 or not len(vector):
        raise ValueError("an embedding is a list of numbers")
    if not np.isfinite(vector).all():
        raise ValueError("embeddings must not hold NaN or infinity")
    return vector


def same_length(count: int, **fields: Sequence[Any] | None) -> None:
    """Raise ValueError for a field that does not have `count` values."""
    for name, values in fields.items():
        if values is not None and len(values) != count:
            raise ValueError(f"unequal lengths: {count} ids, {len(values)} {name}")


def record_filter(
    ids: Any = None,
    where: Mapping[str, Any] | None = None,
    where_document: Mapping[str, Any] | None = None,
) -> RecordFilter:
    """Return the filter for ids and conditions. Raises InvalidInput, ValueError."""
    return RecordFilter(
        ids=None if ids is None else tuple(checked_ids(ids)),
        metadata=parse_filter(
            where,
            dotted=False,
            max_members=MAX_FILTER_VALUES,
            max_values=MAX_FILTER_VALUES,
            max_conditions=MAX_FILTER_CONDITIONS,
        ),
        text=parse_text_filter(where_document),
    )
