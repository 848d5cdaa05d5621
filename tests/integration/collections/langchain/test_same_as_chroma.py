"""The same calls on `langchain_chroma.Chroma` and on the portal's store give the same results in
the same order, with scores that differ by less than 1e-5."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding

from portal.integrations.langchain import PostgresVectorStore
from portal.store.session import Database

pytestmark = pytest.mark.chroma
chroma = pytest.importorskip(
    "langchain_chroma", reason="needs the extra `chroma` (./run setup --chroma)"
)

TOLERANCE = 1e-5
COUNT = 60
MODEL = DeterministicFakeEmbedding(size=32)
TEXTS = [
    f"passage {number} about {'leave' if number % 3 else 'laptops'}" for number in range(COUNT)
]
METADATAS: list[dict[str, Any]] = [
    {
        "number": n,
        "half": n / 2,
        "even": n % 2 == 0,
        "kind": f"k{n % 5}",
        "tags": [f"t{n % 7}", "all"],
    }
    | ({"rare": "yes"} if n % 11 == 0 else {})
    for n in range(COUNT)
]
IDS = [f"id-{number}" for number in range(COUNT)]


@dataclass(frozen=True)
class Pair:
    """Two stores with the same documents."""

    chroma: Any
    ours: PostgresVectorStore

    def both(self, call: Callable[[Any], Any]) -> tuple[Any, Any]:
        return call(self.chroma), call(self.ours)


def _pair(database: Database, **arguments: Any) -> Pair:
    name = f"compared-{uuid4().hex}"
    return Pair(
        chroma.Chroma(name, MODEL, **arguments),
        PostgresVectorStore(name, MODEL, connection=database, **arguments),
    )


@pytest.fixture(params=["cosine", "l2", "ip"])
def pair(request: pytest.FixtureRequest, database: Database) -> Pair:
    made = _pair(database, collection_metadata={"hnsw:space": request.param})
    made.both(lambda store: store.add_texts(TEXTS, METADATAS, IDS))
    # Not deleted: Chroma 1.5.9 attaches lists of a deleted collection's metadata to later records.
    return made


def _assert_same(both: tuple[Any, Any], of: Any) -> None:
    """Compare two results, numbers within the tolerance; a failure names `of`."""
    theirs, ours = both
    if isinstance(theirs, float | np.floating):
        assert ours == pytest.approx(theirs, abs=TOLERANCE, rel=TOLERANCE), of
    elif isinstance(theirs, np.ndarray):
        np.testing.assert_allclose(ours, theirs, atol=TOLERANCE, err_msg=str(of))
    elif isinstance(theirs, list | tuple):
        assert len(theirs) == len(ours), of
        for pair in zip(theirs, ours, strict=True):
            _assert_same(pair, of)
    elif isinstance(theirs, dict):
        assert set(theirs) == set(ours), of
        for key, value in theirs.items():
            _assert_same((value, ours[key]), (of, key))
    else:
        assert theirs == ours, of


CALLS: dict[str, Callable[[Any], Any]] = {
    "similarity_search": lambda s: s.similarity_search("passage 3"),
    "k": lambda s: s.similarity_search("passage 3", k=COUNT + 5),
    "with_score": lambda s: s.similarity_search_with_score("passage 7", k=9),
    "by_vector": lambda s: s.similarity_search_by_vector(MODEL.embed_query("x"), k=5),
    "by_vector_with_scores": lambda s: s.similarity_search_by_vector_with_relevance_scores(
        MODEL.embed_query("y"), k=5
    ),
    "with_relevance_scores": lambda s: s.similarity_search_with_relevance_scores("passage 9", k=6),
    "with_vectors": lambda s: s.similarity_search_with_vectors("passage 4", k=3),
    "mmr": lambda s: s.max_marginal_relevance_search("passage 5", k=4, fetch_k=12),
    "mmr_diverse": lambda s: s.max_marginal_relevance_search("q", k=5, fetch_k=20, lambda_mult=0.1),
    "mmr_by_vector": lambda s: s.max_marginal_relevance_search_by_vector(
        MODEL.embed_query("z"), k=3
    ),
    "retriever": lambda s: s.as_retriever(search_kwargs={"k": 7}).invoke("passage 1"),
    "retriever_mmr": lambda s: s.as_retriever(search_type="mmr").invoke("passage 1"),
    "get": lambda s: s.get(),
    "get_page": lambda s: s.get(limit=5, offset=50),
    "get_ids": lambda s: s.get(ids=["id-9", "id-2", "nothing"]),
    "get_where": lambda s: s.get(where={"kind": "k2"}, where_document={"$contains": "leave"}),
    "get_embeddings": lambda s: s.get(limit=4, include=["embeddings"]),
    "peek": lambda s: s._collection.peek(3),
    "count": lambda s: s._collection.count(),
    "query": lambda s: s._collection.query(
        query_embeddings=[MODEL.embed_query("a"), MODEL.embed_query("b")], n_results=3
    ),
    "metadata": lambda s: s._collection.metadata,
}

FILTERS: list[dict[str, Any]] = [
    {"kind": "k1"},
    {"number": 7},
    {"half": 3.5},
    {"even": True},
    {"kind": {"$ne": "k1"}},
    {"rare": {"$eq": "yes"}},
    {"rare": {"$ne": "yes"}},
    {"number": {"$gt": 50}},
    {"number": {"$gte": 50}},
    {"half": {"$lt": 4.5}},
    {"half": {"$lte": 4.5}},
    {"number": {"$lt": 20.0}},  # Chroma 1.5.9 would truncate 20.5 beside integers.
    {"number": {"$in": [1, 2, 3, 99]}},
    {"kind": {"$nin": ["k1", "k2"]}},
    {"tags": {"$contains": "t3"}},
    {"tags": {"$not_contains": "t3"}},
    {"$and": [{"kind": "k1"}, {"even": True}]},
    {"$or": [{"kind": "k1"}, {"number": {"$lt": 5}}]},
    {"$and": [{"$or": [{"kind": "k1"}, {"kind": "k2"}]}, {"rare": {"$ne": "yes"}}]},
    {"number": "7"},
    {"even": 1},
    {"missing": 1},
    {"missing": {"$ne": 1}},
]

TEXT_FILTERS: list[dict[str, Any]] = [
    {"$contains": "laptops"},
    {"$contains": "LAPTOPS"},
    {"$not_contains": "laptops"},
    {"$and": [{"$contains": "leave"}, {"$not_contains": "1"}]},
    {"$or": [{"$contains": " 7 "}, {"$contains": " 8 "}]},
    {"$contains": "%"},
    {"$contains": "_"},
]


@pytest.mark.filterwarnings("ignore:Relevance scores must be between")
def test_the_same_answers(pair: Pair) -> None:
    for name, call in CALLS.items():
        _assert_same(pair.both(call), name)


def test_filters_find_the_same_as_chroma(pair: Pair) -> None:
    for where in FILTERS:
        found = pair.both(partial(_search, filter=where))
        _assert_same(found, where)
        _assert_same(pair.both(lambda store, wanted=where: store.get(where=wanted)), where)
    for where in TEXT_FILTERS:
        _assert_same(pair.both(partial(_search, where_document=where)), where)


def _search(store: Any, **conditions: Any) -> Any:
    return store.similarity_search_with_score("passage 8", 9, **conditions)


def test_changes_leave_the_same_as_in_chroma(pair: Pair) -> None:
    def change(store: Any) -> None:
        store.delete(ids=["id-1", "nothing"])
        store.delete(where={"kind": "k4"})
        store.update_document("id-2", Document("changed", metadata={"number": -1}))
        store.update_documents(["id-5"], [Document("too", metadata={"new": "field"})])
        store.add_texts(["another"], [{"kind": "k0"}], ids=["id-1"])
        store.add_documents([Document("last", id="last")])
        store._collection.add(
            ids=["id-3"], documents=["ignored"], embeddings=[MODEL.embed_query("q")]
        )

    pair.both(change)
    _assert_same(pair.both(CALLS["get"]), "what is there")
    _assert_same(pair.both(_search), "what is found")


REFUSED: list[Callable[[Any], Any]] = [
    lambda s: s.similarity_search("x", k=0),
    lambda s: s.similarity_search_by_vector([1.0, 2.0]),
    lambda s: s.add_texts(["a", "b"], ids=["same", "same"]),
    lambda s: s.add_texts(["a", "b"], ids=["one"]),
    lambda s: s.add_texts(["a"], ids=["i"], metadatas=[{1: "x"}]),
    lambda s: s._collection.add(ids=["n"], embeddings=[[float("nan")] * 32]),
    lambda s: s.get(where={"a": {"$like": "x"}}),
    lambda s: s.get(where={"a": None}),
    lambda s: s.get(where={"a": {"$gt": "0", "x": 1}}),
    lambda s: s.get(where_document={"$contains": ""}),
    lambda s: s.get(include=["everything"]),
    lambda s: s.delete(),
    lambda s: s.delete(where={}),
]


def test_the_same_calls_are_refused_as_by_chroma(pair: Pair) -> None:
    for number, call in enumerate(REFUSED):
        for store in (pair.chroma, pair.ours):
            with pytest.raises(Exception) as refused:  # noqa: PT011 - Chroma raises various ones.
                call(store)
        assert isinstance(refused.value, ValueError), number
    _assert_same(pair.both(CALLS["get"]), "what is there")


def test_empty_collection_answers_the_same_as_chroma(database: Database) -> None:
    made = _pair(database, collection_configuration={"hnsw": {"space": "ip"}})
    for name in ("similarity_search", "with_relevance_scores", "mmr", "get", "count"):
        _assert_same(made.both(CALLS[name]), name)
    _assert_same(made.both(lambda s: s._collection.configuration["hnsw"]["space"]), "space")


def test_zero_vectors_score_the_same_as_in_chroma(database: Database) -> None:
    vectors = [[3.0, 4.0], [0.0, 0.0], [-1.0, 1.5]]
    for space in ("cosine", "l2", "ip"):
        made = _pair(database, collection_metadata={"hnsw:space": space})
        made.both(
            lambda s: s._collection.add(ids=list("abc"), embeddings=vectors, documents=list("xyz"))
        )
        found = made.both(
            lambda s: s.similarity_search_by_vector_with_relevance_scores([1.0, 2.0], k=3)
        )
        _assert_same(found, space)


def test_constructors_give_the_same_store_as_chroma(database: Database) -> None:
    documents = [Document(text, metadata={"n": n}) for n, text in enumerate(TEXTS[:5])]
    for space in ("cosine", "l2"):
        metadata = {"hnsw:space": space, "about": "constructors"}
        name = f"constructed-{space}-{uuid4().hex}"
        theirs = chroma.Chroma.from_documents(
            documents, MODEL, ids=IDS[:5], collection_name=name, collection_metadata=metadata
        )
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ours = PostgresVectorStore.from_documents(
                documents, MODEL, ids=IDS[:5], collection_name=name, collection_metadata=metadata,
                connection=database,
            )  # fmt: skip
        for name in ("get", "metadata", "with_score"):
            _assert_same((CALLS[name](theirs), CALLS[name](ours)), name)
