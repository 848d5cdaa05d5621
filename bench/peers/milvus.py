"""Milvus Lite, embedded, with its own hybrid search."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from bench.corpus import Corpus, Question
from bench.corpus.profiles import RESULTS, Profile
from bench.peers.peer import LEG_LIMIT, Peer, enabled_documents, visible_chunks
from portal.text.terms.analyser import query_terms

_COLLECTION, _EXACT = "passages", "exact"
_BATCH = 1000
_MAX_TERMS_BYTES = 65_535
# Milvus Lite 3 is written in Python: with 50,000 chunks it takes minutes and gigabytes to fill and
# to open.
_MAX_SIZE = 10_000


@cache
def _condition(profile: Profile) -> str:
    documents = enabled_documents(profile)
    return "" if documents is None else f"document in {documents}"


class MilvusCollection:
    """A collection with an index of vectors and one of words; another compares all vectors."""

    name, kind = "Milvus Lite", "hybrid"

    def __init__(self, client: Any, ef_search: int) -> None:
        self._client, self._ef_search = client, ef_search

    def search(self, profile: Profile, question: Question) -> list[int]:
        return self._search(_COLLECTION, profile, question, {"ef": self._ef_search})

    def exact(self, profile: Profile, question: Question) -> list[int]:
        return self._search(_EXACT, profile, question, {})

    def _search(
        self, collection: str, profile: Profile, question: Question, options: dict[str, int]
    ) -> list[int]:
        from pymilvus import AnnSearchRequest, WeightedRanker

        words = " ".join(query_terms(question.text))
        by_vector = {"metric_type": "COSINE", "params": options}
        legs = [
            AnnSearchRequest(data, field, params, limit=LEG_LIMIT, expr=_condition(profile))
            for data, field, params in (
                ([question.vector], "vector", by_vector),
                ([words], "sparse", {"metric_type": "BM25"}),
            )
        ]
        found = self._client.hybrid_search(
            collection, legs, WeightedRanker(0.7, 0.3), limit=RESULTS, output_fields=["id"]
        )
        return [int(hit["id"]) for hit in found[0]]


@contextmanager
def milvus(corpus: Corpus, data_dir: Path) -> Iterator[list[Peer]]:
    """Yield collections with the portal's HNSW parameters, kept for the next run."""
    if corpus.size > _MAX_SIZE:
        yield []
        return
    from pymilvus import MilvusClient

    settings = corpus.services.settings.search.hnsw
    hnsw = {"M": settings.m, "efConstruction": settings.ef_construction}
    client = MilvusClient(str(data_dir / f"milvus-{corpus.size}.db"))
    try:
        wanted = int(corpus.allowed(corpus.profile("100 %")).sum())
        for name, kind, options in ((_COLLECTION, "HNSW", hnsw), (_EXACT, "FLAT", {})):
            if not _holds(client, name, wanted):
                _fill(corpus, client, name, kind, options)
            client.load_collection(name)
        yield [MilvusCollection(client, max(settings.ef_search, LEG_LIMIT))]
    finally:
        client.close()


def _holds(client: Any, name: str, wanted: int) -> bool:
    if not client.has_collection(name):
        return False
    return int(client.get_collection_stats(name)["row_count"]) == wanted


def _fill(corpus: Corpus, client: Any, name: str, index_type: str, options: dict[str, int]) -> None:
    from pymilvus import DataType, Function, FunctionType

    if client.has_collection(name):
        client.drop_collection(name)
    schema = client.create_schema(auto_id=False)
    schema.add_field("id", DataType.INT64, is_primary=True)
    schema.add_field("document", DataType.INT64)
    # Of its analysers, this one splits the portal's terms least.
    schema.add_field(
        "terms",
        DataType.VARCHAR,
        max_length=_MAX_TERMS_BYTES,
        enable_analyzer=True,
        analyzer_params={"tokenizer": "standard"},
    )
    schema.add_field("vector", DataType.FLOAT_VECTOR, dim=corpus.vectors.shape[1])
    schema.add_field("sparse", DataType.SPARSE_FLOAT_VECTOR)
    schema.add_function(
        Function(
            name="bm25",
            input_field_names=["terms"],
            output_field_names=["sparse"],
            function_type=FunctionType.BM25,
        )
    )
    indexes = client.prepare_index_params()
    indexes.add_index("vector", index_type=index_type, metric_type="COSINE", params=options)
    indexes.add_index("sparse", index_type="SPARSE_INVERTED_INDEX", metric_type="BM25")
    indexes.add_index("document", index_type="INVERTED")
    client.create_collection(name, schema=schema, index_params=indexes)
    rows: list[dict[str, Any]] = []
    for row in visible_chunks(corpus):
        vector = corpus.vectors[row.place]
        rows.append(
            {"id": row.place, "document": row.document, "terms": row.terms, "vector": vector}
        )
        if len(rows) == _BATCH:
            client.insert(name, rows)
            rows = []
    if rows:
        client.insert(name, rows)
    client.flush(name)
