"""Records of a store: documents, ids, batches, hostile input."""

from __future__ import annotations

import threading
from typing import Any
from uuid import RFC_4122, UUID

import numpy as np
import pytest
from langchain_core.documents import Document
from sqlalchemy import text

from portal.integrations.langchain import PostgresVectorStore
from portal.store.ordered_ids import ids_in_order
from portal.store.session import Database
from tests.factories.cases import for_each
from tests.integration.collections.langchain.conftest import MakeStore, WordEmbeddings, _rows


def _document_of(database: Database, external_id: str) -> UUID:
    query = "SELECT document_id FROM document_chunks WHERE external_id = :id"
    return UUID(str(_rows(database, query, id=external_id)[0][0]))


def _trash(database: Database, document_id: UUID) -> None:
    with database.begin() as session:
        session.execute(
            text("UPDATE documents SET deleted_at = now() WHERE id = :id"), {"id": document_id}
        )


def test_the_trash_is_not_searched(store: PostgresVectorStore, database: Database) -> None:
    store.add_texts(["leave one", "leave two"], ids=["1", "2"])
    _trash(database, _document_of(database, "1"))
    assert [one.id for one in store.similarity_search("leave one", k=9)] == ["2"]
    assert [one.id for one, _score in store.hybrid_search("leave one", k=9)] == ["2"]
    assert store.get()["ids"] == ["2"]
    assert store.get_by_ids(["1", "2"])[0].id == "2"
    assert store.count() == 1


def test_records_of_a_resource_are_one_document(
    store: PostgresVectorStore, database: Database
) -> None:
    hashes = [{"resource_hash": "r"}, {"resource_hash": "r"}, {"resource_hash": "s"}, {}]
    store.add_texts(list("abcd"), hashes, list("abcd"))
    documents = [_document_of(database, one) for one in "abcd"]
    assert documents[0] == documents[1]
    assert len(set(documents)) == 3
    counts = "SELECT chunk_count FROM documents WHERE id = :id"
    assert _rows(database, counts, id=documents[0]) == [(2,)]
    _trash(database, documents[0])
    assert store.get()["ids"] == ["c", "d"]
    assert store.delete_document(documents[0])
    assert not store.delete_document(documents[0])
    assert store.delete_document("s")
    assert store.delete_document(str(documents[3]))
    assert not store.delete_document("nobody's")
    assert _rows(database, "SELECT id FROM document_chunks") == []


def test_document_of_another_collection_is_not_deleted(
    make_store: MakeStore, database: Database
) -> None:
    make_store("theirs").add_texts(["x"], ids=["x"])
    assert not make_store("mine").delete_document(_document_of(database, "x"))
    assert make_store("theirs").count() == 1


def test_writing_to_a_trashed_document_recreates_it(
    store: PostgresVectorStore, database: Database
) -> None:
    resource = [{"resource_hash": "r"}]
    store.add_texts(["old one", "old two"], resource * 2, ["1", "2"])
    _trash(database, _document_of(database, "1"))
    store.add_texts(["new"], resource, ["3"])
    assert store.get()["documents"] == ["new"]


def test_moving_a_record_leaves_no_empty_document(
    store: PostgresVectorStore, database: Database
) -> None:
    store.add_texts(["x"], [{"resource_hash": "a"}], ["1"])
    store.add_texts(["x"], [{"resource_hash": "b"}], ["1"])
    assert _rows(database, "SELECT file_name, chunk_count FROM documents") == [("b", 1)]


def test_ids_are_kept_and_overwritten(store: PostgresVectorStore) -> None:
    assert store.add_texts(["first", "second"], [{"a": 1, "b": 2}, {}], ["x", "y"]) == ["x", "y"]
    store.add_documents([Document("third", id="x", metadata={"a": 3})])
    assert store.get_by_ids(["y", "missing", "x"]) == [
        Document("second", id="y"),
        Document("third", id="x", metadata={"a": 3}),
    ]
    assert store.get()["ids"] == ["x", "y"]
    made = store.add_documents([Document("one"), Document("two", id="own")])
    assert made[1] == "own"
    assert UUID(made[0]).version == 4


def test_a_batch_is_stored_whole_or_not_at_all(store: PostgresVectorStore) -> None:
    store.add_texts(["kept"], ids=["kept"])
    good = [1.0] * 64
    for bad in ([1.0], [float("nan")] * 64, [1e39] * 64, "words"):
        with pytest.raises(ValueError, match="embedding"):
            store.add_texts(["a", "b"], ids=["a", "b"], embeddings=[good, bad])
    with pytest.raises(ValueError, match="metadata"):
        store.add_texts(["a", "b"], [{}, {"when": object()}], ["a", "b"])
    with pytest.raises(ValueError, match="NaN"):
        store.add_texts(["a"], [{"x": float("inf")}])
    assert store.get()["ids"] == ["kept"]


@for_each("bad", ["", "nul\0", "half \ud800", 7, "x" * 3000])
def test_invalid_ids_are_refused(store: PostgresVectorStore, bad: Any) -> None:
    with pytest.raises(ValueError, match="ID"):
        store._collection.add(ids=[bad], documents=["text"])
    with pytest.raises(ValueError, match="ID"):
        store.add_texts(["text"], ids=[bad])


@pytest.mark.parametrize("count", [0, -1, 1.5, "3", True])
def test_invalid_numbers_of_results_are_refused(store: PostgresVectorStore, count: Any) -> None:
    store.add_texts(["Annual leave"])
    for search in (store.similarity_search, store.hybrid_search):
        with pytest.raises(ValueError, match="whole number"):
            search("leave", k=count)
    if count != 0:
        with pytest.raises(ValueError, match="whole number"):
            store.get(limit=count)


def test_more_results_than_there_are_records_may_be_asked_for(store: PostgresVectorStore) -> None:
    store.add_texts(["Annual leave"])
    for count in (10**9, 10**30):
        assert len(store.similarity_search("leave", k=count)) == 1
        assert len(store.hybrid_search("leave", k=count)) == 1
        assert store.get(limit=count)["documents"] == ["Annual leave"]
        assert store.get(offset=count)["documents"] == []


def test_nul_and_lone_surrogates_are_replaced(store: PostgresVectorStore) -> None:
    store.add_texts(["a\0b \ud83d"], [{"k\0": ["v\0", {"x": "\udc00"}]}], ["1"])
    (found,) = store.get_by_ids(["1"])
    assert found.page_content == "a b ?"
    assert found.metadata == {"k ": ["v ", {"x": "?"}]}
    assert store.similarity_search("a\0b \ud83d")[0].id == "1"


def test_a_long_text_is_stored_whole(store: PostgresVectorStore) -> None:
    words = " ".join(f"w{number}q" for number in range(300_000))
    store.add_texts([words, "short"], ids=["long", "short"], embeddings=np.eye(2))
    assert store.get_by_ids(["long"])[0].page_content == words
    assert store.hybrid_search([0.0, 1.0], "w7q", 1)[0][0].id in {"long", "short"}


def test_ids_of_chunks_are_in_order() -> None:
    made = [one for _batch in range(50) for one in ids_in_order(100)]
    assert made == sorted(set(made))
    assert {one.version for one in made} == {7}
    assert {one.variant for one in made} == {RFC_4122}


HOSTILE = "'; DROP TABLE users; -- \" $1 :id %s {x} \\"


def test_hostile_text_is_only_text(store: PostgresVectorStore, database: Database) -> None:
    store.add_texts([HOSTILE, "plain"], [{HOSTILE: HOSTILE}, {}], [HOSTILE, "plain"])
    assert store.get_by_ids([HOSTILE])[0].page_content == HOSTILE
    assert store.get(where={HOSTILE.replace(".", ""): HOSTILE})["ids"] == [HOSTILE]
    assert store.get(where_document={"$contains": HOSTILE})["ids"] == [HOSTILE]
    assert store.similarity_search(HOSTILE, k=1)[0].id == HOSTILE
    assert store.hybrid_search(HOSTILE, k=1)[0][0].id == HOSTILE
    PostgresVectorStore(HOSTILE, WordEmbeddings(), connection=database).add_texts(["x"])
    store.delete(where={HOSTILE: HOSTILE})
    assert store.get()["ids"] == ["plain"]
    assert _rows(database, "SELECT count(*) FROM users") is not None


@for_each(
    "where",
    [
        {"a": {"$like": "x"}},
        {"a": {"$gt": True}},
        {"a": {"$in": "abc"}},
        {"$and": {}},
        {"$where": "1=1"},
        {"a": {"$gt": float("nan")}},
        {"a": object()},
        [1],
        "a = 1",
    ],
)
def test_invalid_filters_are_refused(store: PostgresVectorStore, where: Any) -> None:
    store.add_texts(["x"], [{"a": 1}], ["one"])
    with pytest.raises(ValueError):  # noqa: PT011 - each for its own reason.
        store.similarity_search("x", filter=where)
    with pytest.raises(ValueError):  # noqa: PT011
        store.delete(where=where)
    assert store.count() == 1


def test_filters_distinguish_json_types(store: PostgresVectorStore) -> None:
    values = [1, 1.5, "1", True, None, [1, "1"], {"x": 1}]
    store.add_texts(
        [str(n) for n in range(len(values))], [{"v": v} for v in values], list("abcdefg")
    )
    assert store.get(where={"v": 1})["ids"] == ["a"]
    assert store.get(where={"v": "1"})["ids"] == ["c"]
    assert store.get(where={"v": True})["ids"] == ["d"]
    assert store.get(where={"v": {"$gte": 1}})["ids"] == ["a", "b"]
    assert store.get(where={"v": {"$in": [1, "1"]}})["ids"] == ["a", "c"]
    assert store.get(where={"v": {"$nin": [1, "1"]}})["ids"] == list("bdefg")


def test_a_dot_in_a_name_is_part_of_it(store: PostgresVectorStore) -> None:
    store.add_texts(["flat", "nested"], [{"a.b": 1}, {"a": {"b": 1}}], ["1", "2"])
    assert store.get(where={"a.b": 1})["ids"] == ["1"]
    assert store.get(where={"$or": [{"a.b": {"$gt": 0}}, {"x": 1}]})["ids"] == ["1"]
    assert store.get(where={"a": {"b": 1}})["ids"] == ["2"]


def test_a_mistyped_argument_is_refused(store: PostgresVectorStore) -> None:
    store.add_texts(["x"])
    for call in (store.similarity_search, store.similarity_search_with_score):
        with pytest.raises(TypeError, match="filters"):
            call("x", filters={"a": 1})


def test_concurrent_writers_create_no_duplicates(make_store: MakeStore) -> None:
    stores = [make_store("busy") for _ in range(4)]
    barrier = threading.Barrier(len(stores))
    failed: list[BaseException] = []

    def write(store: PostgresVectorStore, number: int) -> None:
        try:
            barrier.wait(timeout=30)
            resource = [{"resource_hash": "r", "by": number}] * 5
            store.add_texts([f"t{n}" for n in range(5)], resource, list("abcde"))
            store.add_texts(["own"], [{"resource_hash": "r"}], [f"own-{number}"])
        except BaseException as error:  # noqa: BLE001 - told below.
            failed.append(error)

    threads = [threading.Thread(target=write, args=pair[::-1]) for pair in enumerate(stores)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert not failed
    found = stores[0].get()
    assert sorted(found["ids"]) == sorted([*"abcde", *(f"own-{n}" for n in range(4))])
    assert len({m["by"] for m in found["metadatas"] if "by" in m}) == 1
