"""Chroma, local and persistent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from bench.corpus import Corpus, Question, best_first
from bench.corpus.profiles import RESULTS, Profile
from bench.peers.peer import ChunkRow, Peer, operator_filter, visible_chunks


class ChromaCollection:
    """A local, persistent collection; without a server Chroma searches by vectors only."""

    name, kind = "Chroma", "vector"

    def __init__(self, collection: Any, corpus: Corpus) -> None:
        self._collection = collection
        self._corpus = corpus

    def search(self, profile: Profile, question: Question) -> list[int]:
        found = self._collection.query(
            query_embeddings=[question.vector], n_results=RESULTS, where=operator_filter(profile)
        )
        return [int(id_) for id_ in found["ids"][0]]

    def exact(self, profile: Profile, question: Question) -> list[int]:
        cosines = self._corpus.vectors @ question.vector
        allowed = np.where(self._corpus.allowed(profile), cosines, -np.inf)
        return best_first(allowed, RESULTS).tolist()


@contextmanager
def chroma(corpus: Corpus, data_dir: Path) -> Iterator[list[Peer]]:
    """Yield a collection with the portal's HNSW parameters, kept for the next run."""
    import chromadb
    from chromadb.config import Settings

    settings = corpus.services.settings.search.hnsw
    client: Any = chromadb.PersistentClient(
        str(data_dir / f"chroma-{corpus.size}"), Settings(anonymized_telemetry=False)
    )
    collection = client.get_or_create_collection(
        "passages",
        configuration={
            "hnsw": {
                "space": "cosine",
                "max_neighbors": settings.m,
                "ef_construction": settings.ef_construction,
                "ef_search": settings.ef_search,
            }
        },
    )
    wanted = int(corpus.allowed(corpus.profile("100 %")).sum())
    if collection.count() != wanted:
        _fill_chroma(corpus, collection, batch=client.get_max_batch_size())
    try:
        yield [ChromaCollection(collection, corpus)]
    finally:
        client.close()


def _fill_chroma(corpus: Corpus, collection: Any, *, batch: int) -> None:
    rows: list[ChunkRow] = []

    def flush() -> None:
        collection.upsert(
            ids=[str(row.place) for row in rows],
            embeddings=corpus.vectors[[row.place for row in rows]],
            documents=[row.content for row in rows],
            metadatas=[{"document": row.document} for row in rows],
        )
        rows.clear()

    for row in visible_chunks(corpus):
        rows.append(row)
        if len(rows) == min(batch, 2000):
            flush()
    if rows:
        flush()
