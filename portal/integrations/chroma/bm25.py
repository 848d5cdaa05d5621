"""Fill Chroma's sparse index with the terms of the portal's analyser, so that Chinese is found.

Distributed Chroma and Chroma Cloud (1.1 and later) store sparse vectors in the metadata of records.
They compute a vector when a record is written, with the function in the collection's schema.
Chroma's own function splits words at spaces only. A weight is the term-frequency part of BM25;
Chroma adds the inverse document frequency (`bm25=True`).

Chroma on a single machine has no such index, so the tests use a stand-in for the server.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from portal.integrations.chroma.client import chroma
from portal.text.terms.analyser import index_terms, query_terms

SPARSE_KEY = "portal_bm25"
"""The metadata key of a record's sparse vector; it is never shown."""

MEAN_LENGTH = 256.0
"""Assumed number of terms in an average chunk: stored vectors cannot follow the true mean."""

_INDEX_BITS = 31


class PortalBm25:
    """A `chromadb.api.types.SparseEmbeddingFunction`; `k1` and `b` are BM25's."""

    def __init__(self, k1: float = 1.2, b: float = 0.75) -> None:
        self.k1, self.b = k1, b

    def __call__(self, input: Sequence[str]) -> list[Any]:
        """Return the vectors of documents."""
        return [self._vector(Counter(index_terms(text).split())) for text in input]

    def embed_query(self, input: Sequence[str]) -> list[Any]:
        """Return the vectors of queries, in which every term has weight 1."""
        return [_sparse({_index(term): 1.0 for term in query_terms(text)}) for text in input]

    def _vector(self, counts: Counter[str]) -> Any:
        norm = self.k1 * (1 - self.b + self.b * counts.total() / MEAN_LENGTH)
        return _sparse({_index(term): n * (self.k1 + 1) / (n + norm) for term, n in counts.items()})

    @staticmethod
    def name() -> str:
        return "portal_bm25"

    @staticmethod
    def build_from_config(config: Mapping[str, Any]) -> PortalBm25:
        return PortalBm25(config["k1"], config["b"])

    def get_config(self) -> dict[str, Any]:
        return {"k1": self.k1, "b": self.b}


def bm25_schema(function: PortalBm25) -> Any:
    """Return a schema with a sparse index and a dense one with cosine distance. Fails in versions
    of Chroma without schemas."""
    chromadb = chroma()
    register()
    schema = chromadb.Schema()
    schema.create_index(chromadb.VectorIndexConfig(space="cosine"))
    sparse = chromadb.SparseVectorIndexConfig(
        source_key=chromadb.K.DOCUMENT, embedding_function=function, bm25=True
    )
    schema.create_index(sparse, key=SPARSE_KEY)
    return schema


def register() -> None:
    """Register the function by its name, so that Chroma can open collections that use it."""
    chroma().utils.embedding_functions.register_sparse_embedding_function(PortalBm25)


def sparse_keys(collection: Any) -> list[str]:
    """Return the metadata keys of a collection's enabled sparse indexes."""
    keyed = getattr(getattr(collection, "schema", None), "keys", None) or {}
    indexes = {
        key: value.sparse_vector.sparse_vector_index
        for key, value in keyed.items()
        if value.sparse_vector is not None and value.sparse_vector.sparse_vector_index is not None
    }
    return [key for key, index in indexes.items() if index.enabled]


def searchable_key(collection: Any) -> str | None:
    """Return the key of the sparse index to search: ours, else one whose function Chroma can load
    here, else None."""
    usable = [
        key
        for key in sparse_keys(collection)
        if collection.schema.keys[key].sparse_vector.sparse_vector_index.config.embedding_function
    ]
    return SPARSE_KEY if SPARSE_KEY in usable else next(iter(usable), None)


def _index(term: str) -> int:
    digest = hashlib.blake2b(term.encode(), digest_size=4).digest()
    return int.from_bytes(digest, "big") >> (32 - _INDEX_BITS)


def _sparse(weights: Mapping[int, float]) -> Any:
    ordered: Iterable[tuple[int, float]] = sorted(weights.items())
    indices, values = zip(*ordered, strict=True) if weights else ((), ())
    return chroma().base_types.SparseVector(indices=list(indices), values=list(values))
