"""Open a Chroma collection, with a native BM25 index if Chroma has one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import structlog

from portal.domain.search.semantic import SemanticChunk
from portal.integrations.chroma.bm25 import (
    PortalBm25,
    bm25_schema,
    register,
    searchable_key,
    sparse_keys,
)
from portal.integrations.chroma.client import Client, chroma

NO_BM25_INDEX = "no_bm25_index"
BM25_UNAVAILABLE = "bm25_unavailable"

# Words in the errors of a Chroma without such an index: on a single machine it refuses the schema
# (1.5), and before 1.1 it has no schemas.
_UNSUPPORTED = ("not enabled", "not supported", "not implemented", "unexpected keyword")
_MAX_REASON_LENGTH = 300

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class OpenCollection:
    """A collection, the key of its searchable sparse index (or why there is none), and the metadata
    keys that Chroma uses itself."""

    collection: Any
    sparse_key: str | None
    why_no_sparse: str | None
    hidden_keys: frozenset[str]


def open_collection(
    client: Client, name: str, *, hybrid: bool, function: PortalBm25
) -> OpenCollection:
    """Open a collection, creating it with cosine distance if missing. With `hybrid`, first try to
    create it with a BM25 index: the version does not tell whether that works, since one and the
    same package supports it on a distributed server but not in a directory."""
    reason = None
    if hybrid:
        try:
            made = client.get_or_create_collection(
                name, schema=bm25_schema(function), embedding_function=None
            )
        except Exception as error:  # noqa: BLE001 - without words, meaning answers
            reason = _reason(error, name)
        else:
            return _as_open(made, NO_BM25_INDEX)
    made = client.get_or_create_collection(
        name, embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
    )
    return _as_open(made, reason or NO_BM25_INDEX)


def _as_open(collection: Any, reason: str) -> OpenCollection:
    key = searchable_key(collection)
    hidden = frozenset(sparse_keys(collection))
    return OpenCollection(collection, key, None if key else reason, hidden)


def _reason(error: Exception, name: str) -> str:
    message = " ".join(str(error).split())[:_MAX_REASON_LENGTH] or type(error).__name__
    if not any(word in message for word in _UNSUPPORTED) and not isinstance(error, AttributeError):
        log.error("chroma_bm25_index_failed", collection=name, exc_info=error)
    return f"{BM25_UNAVAILABLE}: {message}"


def is_missing(error: Exception) -> bool:
    return isinstance(error, chroma().errors.NotFoundError)


@contextmanager
def translate_chroma_errors() -> Iterator[None]:
    """Raise ValueError instead of Chroma's errors for values that it cannot store."""
    errors = chroma().errors
    refused = (
        errors.InvalidArgumentError,
        errors.InvalidDimensionException,
        errors.DuplicateIDError,
        OverflowError,
        TypeError,
    )
    try:
        yield
    except refused as error:
        raise ValueError(str(error)) from error


def chunks_of(
    result: Mapping[str, Any], hidden_keys: frozenset[str], query_index: int | None = None
) -> list[SemanticChunk]:
    """Convert a result of Chroma, which has a list per field. In a nested result, which has lists
    per query, convert those of the query at `query_index`."""

    def values(field: str) -> Sequence[Any]:
        listed = result.get(field)
        if query_index is not None and listed is not None:
            listed = listed[query_index]
        return [None] * len(ids) if listed is None else listed

    ids: Sequence[str] = result["ids"] if query_index is None else result["ids"][query_index]
    fields = zip(ids, values("documents"), values("metadatas"), values("embeddings"), strict=True)
    return [
        SemanticChunk(
            key,
            document or "",
            {name: one for name, one in (metadata or {}).items() if name not in hidden_keys},
            None if vector is None else np.asarray(vector, dtype=np.float32),
        )
        for key, document, metadata, vector in fields
    ]


def ensure_registered() -> None:
    """Register our function before Chroma opens a collection; versions without sparse functions do
    not need it."""
    try:
        register()
    except (ImportError, AttributeError):
        log.debug("chroma_knows_no_sparse_functions")
