"""LanceDB, embedded, with its own hybrid search."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from bench.corpus import Corpus, Question
from bench.corpus.profiles import RESULTS, Profile
from bench.peers.peer import Peer, enabled_documents, visible_chunks
from portal.text.terms.analyser import query_terms

_TABLE = "passages"


@cache
def _condition(profile: Profile) -> str | None:
    documents = enabled_documents(profile)
    return None if documents is None else f"document IN ({','.join(map(str, documents))})"


class LanceTable:
    """A table with an index of vectors, one of words and one of the documents."""

    name, kind = "LanceDB", "hybrid"

    def __init__(self, table: Any, reranker: Any, ef_search: int) -> None:
        self._table, self._reranker, self._ef_search = table, reranker, ef_search

    def search(self, profile: Profile, question: Question) -> list[int]:
        return self._search(profile, question, is_exact=False)

    def exact(self, profile: Profile, question: Question) -> list[int]:
        return self._search(profile, question, is_exact=True)

    def _search(self, profile: Profile, question: Question, *, is_exact: bool) -> list[int]:
        query = self._table.search(query_type="hybrid").vector(question.vector)
        query = query.text(" ".join(query_terms(question.text))).ef(self._ef_search)
        if is_exact:
            query = query.bypass_vector_index()
        if (condition := _condition(profile)) is not None:
            query = query.where(condition)
        found = query.rerank(self._reranker).limit(RESULTS).select(["id"]).to_arrow()
        return list(found.column("id").to_pylist())


@contextmanager
def lance(corpus: Corpus, data_dir: Path) -> Iterator[list[Peer]]:
    """Yield a table that weighs both legs as the portal does, kept for the next run."""
    os.environ.setdefault("LANCEDB_LOG", "error")  # It logs a warning for each search.
    import lancedb
    from lancedb.rerankers import LinearCombinationReranker

    settings = corpus.services.settings.search.hnsw
    database = lancedb.connect(str(data_dir / f"lance-{corpus.size}"))
    wanted = int(corpus.allowed(corpus.profile("100 %")).sum())
    try:
        table = database.open_table(_TABLE)
    except ValueError:
        table = None
    if table is None or table.count_rows() != wanted or len(table.list_indices()) != 3:
        table = _fill(corpus, database)
    yield [LanceTable(table, LinearCombinationReranker(weight=0.7), settings.ef_search)]


def _fill(corpus: Corpus, database: Any) -> Any:
    import pyarrow as pa

    rows = list(visible_chunks(corpus))
    vectors = pa.array(corpus.vectors[[row.place for row in rows]].reshape(-1))
    table = database.create_table(
        _TABLE,
        pa.table(
            {
                "id": [row.place for row in rows],
                "document": [row.document for row in rows],
                "content": [row.content for row in rows],
                "terms": [row.terms for row in rows],
                "vector": pa.FixedSizeListArray.from_arrays(vectors, corpus.vectors.shape[1]),
            }
        ),
        mode="overwrite",
    )
    settings = corpus.services.settings.search.hnsw
    table.create_index(
        metric="cosine",
        vector_column_name="vector",
        index_type="IVF_HNSW_SQ",
        num_partitions=1,
        m=settings.m,
        ef_construction=settings.ef_construction,
    )
    # The terms are those of the portal's analyser, separated by spaces.
    table.create_fts_index(
        "terms",
        base_tokenizer="whitespace",
        lower_case=False,
        stem=False,
        remove_stop_words=False,
        ascii_folding=False,
    )
    table.create_scalar_index("document")
    return table
