"""Store chunks in a Chroma collection. Needs the extra `chroma`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, Literal, TypeVar

import structlog

from portal.domain.embedding import Vector
from portal.domain.search.bm25 import Bm25Parameters
from portal.domain.search.semantic import SemanticChunk, SemanticHit
from portal.domain.vector_collections import Page
from portal.integrations.chroma.bm25 import PortalBm25
from portal.integrations.chroma.client import Client, chroma
from portal.integrations.chroma.collection import (
    OpenCollection,
    chunks_of,
    ensure_registered,
    is_missing,
    open_collection,
    translate_chroma_errors,
)
from portal.integrations.chroma.words import LocalWordIndex
from portal.integrations.chunk_store import CONTENT_TYPE, found, nearest_first, similarities
from portal.text.terms.analyser import query_terms

LexicalLeg = Literal["native", "own"]

_WITH_VECTORS = ["documents", "metadatas", "embeddings"]
_WITHOUT = ["documents", "metadatas"]
_MAX_WHOLE_NUMBER = 2**63

Result = TypeVar("Result")

log = structlog.get_logger(__name__)


class ChromaChunks:
    """A collection, created if missing. With `hybrid`, it is created with a native BM25 index if
    possible; if `lexical` is ``own``, words are otherwise ranked in this process."""

    def __init__(
        self,
        client: Client,
        collection: str,
        *,
        hybrid: bool,
        lexical: LexicalLeg,
        parameters: Bm25Parameters,
    ) -> None:
        chroma()
        self._client = client
        self._collection = collection
        self._hybrid = hybrid
        self._function = PortalBm25(parameters.k1, parameters.b)
        self._own = LocalWordIndex(client, parameters) if lexical == "own" else None
        self._max_batch_size = int(client.get_max_batch_size())
        ensure_registered()
        self._there = self._open()

    @property
    def name(self) -> str:
        return f"chroma:{self._collection}"

    # --- searching ------------------------------------------------------------------------------

    def why_no_sparse(self) -> str | None:
        return None if self._own else self._there.why_no_sparse

    def dense(
        self, query_vector: Vector, limit: int, content_type: str | None
    ) -> list[SemanticHit]:
        def near(there: OpenCollection) -> list[SemanticChunk]:
            result = there.collection.query(
                query_embeddings=[query_vector.tolist()],
                n_results=limit,
                where=_of_type(content_type),
                include=_WITH_VECTORS,
            )
            return chunks_of(result, there.hidden_keys, query_index=0)

        return nearest_first(self._on_collection(near), query_vector)

    def sparse(self, query_text: str, limit: int, content_type: str | None) -> list[SemanticHit]:
        if not query_terms(query_text):
            return []

        def by_words(there: OpenCollection) -> list[SemanticChunk]:
            if there.sparse_key is not None:
                return self._native(there, query_text, limit, content_type)
            if self._own is None:
                raise LookupError("the collection has no BM25 index")
            return self._own.best(there, query_text, limit, content_type)

        return [found(chunk) for chunk in self._on_collection(by_words)]

    def similarities(self, query_vector: Vector, ids: Sequence[str]) -> Mapping[str, float]:
        return similarities(self.get(ids, Page(with_vectors=True)), query_vector)

    def _native(
        self, there: OpenCollection, query_text: str, limit: int, content_type: str | None
    ) -> list[SemanticChunk]:
        chromadb = chroma()
        key = chromadb.K
        # Knn has its own limit, which defaults to sixteen.
        search = chromadb.Search(
            where=_of_type(content_type),
            rank=chromadb.Knn(query=query_text, key=there.sparse_key, limit=limit),
            limit=limit,
        ).select(key.DOCUMENT, key.METADATA, key.SCORE)
        return chunks_of(there.collection.search(search), there.hidden_keys, query_index=0)

    # --- storing --------------------------------------------------------------------------------

    def upsert(self, chunks: Sequence[SemanticChunk]) -> None:
        """Write in batches of Chroma's maximum size; each is stored completely or not at all."""
        for chunk in chunks:
            _check(chunk, self._there.hidden_keys)
        for batch in _batches(chunks, self._max_batch_size):
            self._on_collection(partial(self._write, batch))

    def get(self, ids: Sequence[str] | None, page: Page) -> list[SemanticChunk]:
        include = _WITH_VECTORS if page.with_vectors else _WITHOUT

        def read(there: OpenCollection) -> list[SemanticChunk]:
            if ids is None:
                result = there.collection.get(limit=page.limit, offset=page.offset, include=include)
                return chunks_of(result, there.hidden_keys)
            return [
                chunk
                for batch in _batches(ids, self._max_batch_size)
                for chunk in chunks_of(
                    there.collection.get(ids=list(batch), include=include), there.hidden_keys
                )
            ]

        return self._on_collection(read)

    def delete(self, ids: Sequence[str]) -> int:
        return sum(
            self._on_collection(partial(self._erase, batch))
            for batch in _batches(ids, self._max_batch_size)
        )

    def count(self) -> int:
        return int(self._on_collection(lambda there: there.collection.count()))

    # --- inside ---------------------------------------------------------------------------------

    def _open(self) -> OpenCollection:
        there = open_collection(
            self._client, self._collection, hybrid=self._hybrid, function=self._function
        )
        own = "own" if self._own and self._hybrid else None
        log.info(
            "chroma_collection_opened",
            collection=self._collection,
            words="native" if there.sparse_key else own,
        )
        return there

    def _on_collection(self, action: Callable[[OpenCollection], Result]) -> Result:
        """Run `action` on the collection, which is created again if another program dropped it."""
        try:
            return action(self._there)
        except Exception as error:
            if not is_missing(error):
                raise
        self._there = self._open()
        return action(self._there)

    def _write(self, batch: Sequence[SemanticChunk], there: OpenCollection) -> None:
        with self._in_step(there, written=batch), translate_chroma_errors():
            there.collection.upsert(
                ids=[chunk.id for chunk in batch],
                embeddings=[chunk.vector for chunk in batch],
                documents=[chunk.content or "" for chunk in batch],
                metadatas=_replacing(there, batch),
            )

    def _erase(self, batch: Sequence[str], there: OpenCollection) -> int:
        # Look up the ids first, since Chroma's own count includes unknown ones.
        known = list(there.collection.get(ids=list(batch), include=[])["ids"])
        if known:
            with self._in_step(there, erased=known):
                there.collection.delete(ids=known)
        return len(known)

    def _in_step(
        self,
        there: OpenCollection,
        written: Sequence[SemanticChunk] = (),
        erased: Sequence[str] = (),
    ) -> AbstractContextManager[None]:
        return self._own.writing(there, written, erased) if self._own else nullcontext()


def _of_type(content_type: str | None) -> dict[str, Any] | None:
    return None if content_type is None else {CONTENT_TYPE: content_type}


def _replacing(
    there: OpenCollection, batch: Sequence[SemanticChunk]
) -> list[dict[str, Any] | None]:
    """Return metadata that replaces the stored metadata: Chroma merges the two, and removes keys
    whose value is None."""
    result = there.collection.get(ids=[chunk.id for chunk in batch], include=["metadatas"])
    stood = dict(zip(result["ids"], result["metadatas"], strict=True))
    return [
        {
            name: chunk.metadata.get(name)
            for name in {**(stood.get(chunk.id) or {}), **chunk.metadata}
            if name not in there.hidden_keys
        }
        or None
        for chunk in batch
    ]


def _check(chunk: SemanticChunk, hidden_keys: frozenset[str]) -> None:
    """Raise ValueError for metadata that Chroma would change."""
    for name, value in chunk.metadata.items():
        if name in hidden_keys:
            raise ValueError(f"metadata must not hold {name}: Chroma keeps words there")
        for element in value if isinstance(value, list) else [value]:
            if isinstance(element, int) and not -_MAX_WHOLE_NUMBER <= element < _MAX_WHOLE_NUMBER:
                raise ValueError("Chroma keeps whole numbers of up to 64 bits")


def _batches(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    return (items[start : start + size] for start in range(0, len(items), size))
