"""Hybrid search, and search through a vector index in large collections."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import structlog
from sqlalchemy import text
from structlog.testing import capture_logs

from portal.domain.vector_collections import RecordFilter
from portal.integrations.langchain import PostgresVectorStore
from portal.store import config
from portal.store.binary_parameters import VectorParameter
from portal.store.collections import by_vector
from portal.store.collections import rows as collection_store
from portal.store.embedding_models.vector_index import standing_indexes
from portal.store.search.keywords import index as keyword_index
from portal.store.session import Database
from tests.integration.collections.langchain.conftest import MakeStore, WordEmbeddings

_TEXTS = {
    "leave": "Annual leave is twenty four days a year",
    "sick": "Sick leave needs a note from a doctor",
    "canteen": "The canteen opens at noon",
    "laptop": "Laptops are lent by the service desk, form PO-4711",
}


@pytest.fixture
def filled(store: PostgresVectorStore) -> PostgresVectorStore:
    store.add_texts(_TEXTS.values(), [{"kind": key} for key in _TEXTS], list(_TEXTS))
    return store


def _set(database: Database, **values: float) -> None:
    with database.begin() as session:
        for key, value in values.items():
            config.write(session, key=key, value=value, updated_by=None)


def _cosines(question: str) -> dict[str, float]:
    model = WordEmbeddings()
    asked = np.array(model.embed_query(question))
    return {
        key: float(asked @ own / np.linalg.norm(asked) / np.linalg.norm(own))
        for key, words in _TEXTS.items()
        for own in [np.array(model.embed_query(words))]
    }


def test_scores_are_the_weighted_sum(filled: PostgresVectorStore) -> None:
    question = "annual leave"
    vector = WordEmbeddings().embed_query(question)
    found = filled.hybrid_search(vector, question, 4)
    assert found[0][0].id == "leave"
    scores = {document.id: score for document, score in found}
    assert list(scores.values()) == sorted(scores.values(), reverse=True)
    cosines = _cosines(question)
    # The best keyword hit gets the full keyword weight, a chunk without the words none of it.
    assert scores["leave"] == pytest.approx(0.7 * cosines["leave"] + 0.3, abs=1e-5)
    assert scores["canteen"] == pytest.approx(0.7 * cosines["canteen"], abs=1e-5)
    words = (scores["sick"] - 0.7 * cosines["sick"]) / 0.3
    assert 0 < words < 1


def test_weights_come_from_dynamic_config(filled: PostgresVectorStore, database: Database) -> None:
    vector = WordEmbeddings().embed_query("the canteen opens at noon")
    _set(database, semantic_weight=0.0, bm25_weight=1.0)
    (best, score), *_ = filled.hybrid_search(vector, "PO-4711", 1)
    assert (best.id, score) == ("laptop", pytest.approx(1.0))
    _set(database, semantic_weight=1.0, bm25_weight=0.0)
    (best, score), *_ = filled.hybrid_search(vector, "PO-4711", 1)
    assert (best.id, score) == ("canteen", pytest.approx(1.0, abs=1e-5))


def test_search_without_pg_textsearch_uses_vectors_only(
    filled: PostgresVectorStore, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyword_index, "_notice", keyword_index._Notice())
    monkeypatch.setattr(keyword_index, "log", structlog.get_logger("fresh"))
    with database.begin() as session:
        session.execute(text("DROP EXTENSION IF EXISTS pg_textsearch CASCADE"))
    with capture_logs() as logs:
        for _ in range(2):
            found = filled.hybrid_search(WordEmbeddings().embed_query("canteen"), "leave", 4)
    (warning,) = [log for log in logs if log["log_level"] == "warning"]
    assert warning["event"].startswith("hybrid search is semantic only")
    assert warning["reason"] == "no pg_textsearch"
    cosines = _cosines("canteen")
    assert [document.id for document, _score in found] == sorted(
        cosines, key=lambda key: -cosines[key]
    )
    assert found[0][1] == pytest.approx(cosines["canteen"], abs=1e-5)


def test_hybrid_search_obeys_filters(filled: PostgresVectorStore) -> None:
    found = filled.hybrid_search("annual leave", k=4, filter={"kind": {"$in": ["sick", "laptop"]}})
    assert {document.id for document, _score in found} == {"sick", "laptop"}
    found = filled.hybrid_search("leave", k=4, where_document={"$contains": "doctor"})
    assert [document.id for document, _score in found] == ["sick"]


def test_hybrid_search_of_an_empty_store_finds_nothing(store: PostgresVectorStore) -> None:
    assert store.hybrid_search([1.0] * 64, "anything") == []
    with pytest.raises(ValueError, match="query_text"):
        store.hybrid_search([1.0] * 64)


def test_query_may_be_given_as_a_vector(filled: PostgresVectorStore) -> None:
    vector = WordEmbeddings().embed_query("canteen noon")
    assert filled.similarity_search(vector, 1)[0].id == "canteen"
    assert filled.similarity_search(np.array(vector), 2) == filled.similarity_search(
        "canteen noon", 2
    )


# --- the index ------------------------------------------------------------------------------------

COUNT = 1200
SIZE = 24


def _many(make_store: MakeStore, space: str, **arguments: Any) -> PostgresVectorStore:
    store = make_store(f"many-{space}", collection_metadata={"hnsw:space": space}, **arguments)
    vectors = np.random.default_rng(7).normal(size=(COUNT, SIZE))
    store.add_texts(
        [f"text {n}" for n in range(COUNT)],
        [{"n": n, "rare": n % 100 == 0} for n in range(COUNT)],
        [str(n) for n in range(COUNT)],
        embeddings=vectors,
    )
    return store


@pytest.mark.parametrize("space", ["cosine", "l2", "ip"])
def test_large_collection_is_searched_by_an_index(
    make_store: MakeStore, database: Database, space: str
) -> None:
    store = _many(make_store, space, compared_one_by_one=500)
    questions = np.random.default_rng(8).normal(size=(5, SIZE))
    with database.begin() as session:
        collection = collection_store.find(session, name=store.name)
        assert collection is not None
        assert collection.model is not None
        assert collection.index_shape is not None
        (index,) = standing_indexes(session, collection.model.partition)
        session.execute(text(f"ANALYZE {collection.model.partition}"))
        session.execute(text("SET LOCAL enable_sort = off"))
        question = VectorParameter(questions[0].astype(np.float32))
        binds: dict[str, Any] = {"query_vector": question, "candidates": 10}
        statement = by_vector.index_statement(
            collection, collection.index_shape, RecordFilter(), binds
        )
        plan = "\n".join(session.scalars(text(f"EXPLAIN {statement}"), binds))
    assert index.method == "hnsw"
    assert f"Index Scan using {index.name}" in plan

    exact = make_store(store.name)
    for question in questions:
        by_index = store.similarity_search_by_vector_with_relevance_scores(question, k=10)
        by_all = exact.similarity_search_by_vector_with_relevance_scores(question, k=10)
        scores = {document.id: score for document, score in by_all}
        shared = [one for one in by_index if one[0].id in scores]
        assert len(shared) >= 9
        for document, score in shared:
            assert score == pytest.approx(scores[document.id], abs=1e-6)


def test_a_narrow_filter_over_an_index_finds_all(make_store: MakeStore) -> None:
    store = _many(make_store, "cosine", compared_one_by_one=500)
    question = np.random.default_rng(9).normal(size=SIZE)
    rare = store.similarity_search_by_vector(question, k=20, filter={"rare": True})
    assert {document.id for document in rare} == {str(n) for n in range(0, COUNT, 100)}
    assert store.similarity_search_by_vector(question, k=3, filter={"n": 77})[0].id == "77"


def test_few_records_behind_a_filter_are_compared_one_by_one(make_store: MakeStore) -> None:
    store = _many(make_store, "cosine", compared_one_by_one=500)
    vectors = np.random.default_rng(7).normal(size=(COUNT, SIZE))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    filters: list[tuple[dict[str, Any], range]] = [
        ({"n": {"$lt": 400}}, range(400)),
        ({"$and": [{"rare": False}, {"n": {"$gte": 1100}}]}, range(1101, COUNT)),
        ({"rare": True}, range(0, COUNT, 100)),
    ]
    for question in np.random.default_rng(9).normal(size=(10, SIZE)):
        for where, meant in filters:
            cosines = vectors[list(meant)] @ question
            nearest = [str(meant[place]) for place in np.argsort(-cosines)[:10]]
            found = store.similarity_search_by_vector(question, k=10, filter=where)
            assert [document.id for document in found] == nearest, where


def test_hybrid_search_finds_the_same_with_and_without_the_index(make_store: MakeStore) -> None:
    looks_up = _many(make_store, "cosine")
    walks = make_store(looks_up.name, compared_one_by_one=20)
    asked = np.random.default_rng(7).normal(size=(COUNT, SIZE))[77]
    for where in (None, {"rare": True}, {"n": {"$gte": 50}}, {"n": 77}):
        scored = {}
        for store in (looks_up, walks):
            found = store.hybrid_search(asked, "text 77 700", 5, filter=where)
            scored[store] = [(document.id, score) for document, score in found]
        ids = [key for key, _score in scored[looks_up]]
        assert [key for key, _score in scored[walks]] == ids
        assert ids[0] == "77" or where == {"rare": True}
        for (_, one), (_, other) in zip(scored[looks_up], scored[walks], strict=True):
            # Document lengths are slightly less exact in the index.
            assert one == pytest.approx(other, abs=0.01)


def test_small_collection_has_no_index(filled: PostgresVectorStore, database: Database) -> None:
    with database.begin() as session:
        collection = collection_store.find(session, name=filled.name)
        assert collection is not None
        assert collection.model is not None
        assert standing_indexes(session, collection.model.partition) == []
