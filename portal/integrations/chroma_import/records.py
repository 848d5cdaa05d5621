"""Convert Chroma records to the store's types."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import numpy as np

from portal.domain.vector_collections import NewRecord, StoredRecord
from portal.errors import InvalidInput
from portal.integrations.chroma_import.reading import ChromaRecord
from portal.integrations.values import checked_ids, clean_metadata, document_name, vector_of
from portal.services.collections.checks import common_length
from portal.text.characters.storable import storable

NO_TEXT = "no text: replaced by an empty text"
REPLACED = "NUL or an unpaired surrogate: replaced by a space or “?”"
NOT_FINITE = "NaN or infinity in the metadata: replaced by null"
URI = "a URI, which is not kept"
NO_VECTOR = "no vector"

VECTOR_TOLERANCE = 1e-6
"""Relative to the largest number in a vector. With cosine distance Chroma stores vectors at unit
length, and the last digits differ between its log and its index."""


class Unusable(ValueError):
    """A record that cannot be stored."""


def to_record(found: ChromaRecord, document_key: str | None) -> tuple[NewRecord, list[str]]:
    """Return the record to store and notes on what had to change. Raises Unusable."""
    notes = []
    text, metadata = found.document or "", dict(found.metadata or {})
    if found.document is None:
        notes.append(NO_TEXT)
    kept_text, kept = storable(text), _storable(metadata)
    if (kept_text, kept) != (text, metadata):
        notes.append(REPLACED)
    finite = _finite(kept)
    if finite != kept:
        notes.append(NOT_FINITE)
    if found.uri is not None:
        notes.append(URI)
    if found.vector is None:
        raise Unusable(NO_VECTOR)
    try:
        checked_ids([found.id])
        vector = vector_of(found.vector)
        common_length([vector])
        cleaned = clean_metadata(finite)
    except InvalidInput as error:
        raise Unusable(error.reason) from error
    except ValueError as error:
        raise Unusable(str(error)) from error
    name = document_name(cleaned, document_key)
    return NewRecord(found.id, kept_text, cleaned, vector, name), notes


def clean(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return metadata with unstorable values replaced."""
    return clean_metadata(_finite(_storable(metadata or {})))


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, Mapping):
        return {_storable(key): _storable(one) for key, one in value.items()}
    return [_storable(element) for element in value] if isinstance(value, list) else value


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    return [_finite(element) for element in value] if isinstance(value, list) else value


def is_same(record: NewRecord, stored: StoredRecord) -> bool:
    """Return whether the stored record equals the imported one."""
    return (
        stored.content == record.content
        and _equal(stored.metadata, dict(record.metadata))
        and _are_near(stored.vector, record.vector)
    )


def _equal(one: Any, other: Any) -> bool:
    """Compare stored with imported values; true is not 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_equal, one, other))
    if isinstance(other, float) and isinstance(one, int) and not isinstance(one, bool):
        # jsonb writes out all digits of 1e23, so it is read as the integer 10**23, which differs
        # from the float 1e23.
        return one == Decimal(repr(other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _are_near(one: Any, other: Any) -> bool:
    if one is None or other is None or one.shape != other.shape:
        return False
    largest = float(np.abs(other).max())
    return bool(np.abs(one - other).max() <= VECTOR_TOLERANCE * largest)
