"""What the vector store guarantees beyond Chroma's behaviour."""

from __future__ import annotations

import asyncio
import threading
from typing import Any
from uuid import RFC_4122, UUID

import numpy as np
import pytest
from langchain_core.documents import Document
from sqlalchemy import text

from portal.integrations.langchain import PostgresVectorStore
from portal.services.collections.records import Collections
from portal.store.ordered_ids import ids_in_order
from portal.store.session import Database
from tests.factories.uploads import run_apart
from tests.integration.collections.langchain.conftest import MakeStore
from tests.integration.collections.langchain.embeddings import WordEmbeddings


def _rows(database: Database, statement: str, **binds: Any) -> list[Any]:
    with database.begin() as session:
        return list(session.execute(text(statement), binds))


def _document_of(database: Database, external_id: str) -> UUID:
    query = "SELECT document_id FROM document_chunks WHERE external_id = :id"
    return UUID(str(_rows(database, query, id=external_id)[0][0]))


def _trash(database: Database, document_id: UUID) -> None:
    with database.begin() as session:
        session.execute(
            text("UPDATE documents SET deleted_at = now() WHERE id = :id"), {"id": document_id}
        )


# --- where it is kept -----------------------------------------------------------------------------


def test_records_are_chunks_with_vectors_and_json(
    store: PostgresVectorStore, database: Database
) -> None:
    metadata = {"kind": "note", "nested": {"deep": [1, 2.5, None, {"x": True}]}, "none": None}
    store.add_texts(["Annual leave"], [metadata], ["one"])
    (row,) = _rows(
        database,
        """
        SELECT c.content, c.metadata, l.name, l.distance, e.embedding, pg_typeof(e.embedding),
               pg_typeof(c.metadata)
        FROM document_chunks c JOIN collections l ON l.id = c.collection_id
        JOIN chunk_embeddings e ON e.chunk_id = c.id
        """,
    )
    assert row[0] == "Annual leave"
    assert row[1] == metadata
    assert row[2:4] == ("notes", "cosine")
    assert row[5:] == ("vector", "jsonb")
    (found,) = store.get_by_ids(["one"])
    assert found == Document("Annual leave", id="one", metadata=metadata)


def test_a_caller_s_metadata_is_left_as_it_is(store: PostgresVectorStore) -> None:
    document = Document("text", metadata={"a": 1})
    store.add_documents([document])
    assert document.metadata == {"a": 1}
    assert store.similarity_search("text")[0].metadata == {"a": 1}


@pytest.mark.parametrize("dimensions", [1, 7, 2001, 4001, 16000])
def test_any_dimension(make_store: MakeStore, dimensions: int) -> None:
    l2 = {"hnsw:space": "l2"}  # One-dimensional vectors all have the same cosine.
    store = make_store(f"of-{dimensions}", collection_metadata=l2, compared_one_by_one=1)
    vectors = np.eye(3, dimensions, dtype=np.float32) + 0.25
    store.add_texts(["a", "b", "c"], ids=list("abc"), embeddings=vectors)
    found = store.similarity_search(vectors[min(1, dimensions - 1)], k=1)
    assert found[0].id == ("b" if dimensions > 1 else "a")
    with pytest.raises(ValueError, match=f"dimension of {dimensions}, got 3"):
        store.similarity_search_by_vector([1.0, 2.0, 3.0])


def test_the_portal_s_own_collection_is_out_of_reach(
    make_store: MakeStore, database: Database
) -> None:
    for create in (True, False):
        with pytest.raises(ValueError, match="portal"):
            make_store("portal", create_collection_if_not_exists=create)
    assert _rows(database, "SELECT name FROM collections") == [("portal",)]


def test_collections_do_not_mix(make_store: MakeStore) -> None:
    one, other = make_store("one"), make_store("other")
    one.add_texts(["mine"], ids=["same"])
    other.add_texts(["yours"], ids=["same"])
    assert one.get()["documents"] == ["mine"]
    other.delete_collection()
    assert [found.page_content for found in one.similarity_search("yours", k=9)] == ["mine"]


def test_deleting_a_collection_leaves_nothing(make_store: MakeStore, database: Database) -> None:
    tables = ("documents", "jobs", "document_chunks", "chunk_embeddings", "embedding_models")
    counted = "SELECT " + ", ".join(f"(SELECT count(*) FROM {table})" for table in tables)
    before = _rows(database, counted)
    store = make_store("passing")
    store.add_texts(["a", "b"], [{"resource_hash": "r"}] * 2)
    assert _rows(database, counted) != before
    store.delete_collection()
    assert _rows(database, counted) == before
    with pytest.raises(ValueError, match="reset_collection"):
        store.get()
    store.reset_collection()
    assert store.count() == 0


def test_what_others_deleted_is_reported(make_store: MakeStore) -> None:
    mine, theirs = make_store("shared"), make_store("shared")
    mine.add_texts(["x"])
    theirs.delete_collection()
    for call in (mine.get, mine.count, lambda: mine.add_texts(["y"])):
        with pytest.raises(ValueError, match="does not exist"):
            call()


# --- constructors ---------------------------------------------------------------------------------


def test_arguments_that_locate_chromas_data_are_ignored_with_a_warning(
    make_store: MakeStore,
) -> None:
    with pytest.warns(UserWarning, match="persist_directory, host, client") as warned:
        store = make_store("warned", persist_directory="/nowhere", client=object(), host="chroma")
    assert "conftest" in warned[0].filename
    store.add_texts(["works"])
    assert store.count() == 1


@pytest.mark.parametrize(
    ("metadata", "nearest"),
    [(None, "long"), ({"note": "x"}, "long"), ({"hnsw:space": "l2"}, "short")],
)
def test_default_order_is_by_cosine(
    make_store: MakeStore, metadata: dict[str, str] | None, nearest: str
) -> None:
    store = make_store("default", collection_metadata=metadata)
    # Seen from [1, 0], the long one has cosine .995 and the short one 0; by l2 the short is nearer.
    store.add_texts(["long", "short"], embeddings=[[20.0, 2.0], [0.0, 0.1]])
    found = store.similarity_search_by_vector([1.0, 0.0], k=2)
    assert found[0].page_content == nearest
    assert make_store("default").similarity_search_by_vector([1.0, 0.0], k=1) == found[:1]


def test_a_collection_keeps_its_distance(make_store: MakeStore) -> None:
    first = make_store("kept", collection_configuration={"hnsw": {"space": "ip"}})
    again = make_store("kept", collection_metadata={"hnsw:space": "cosine"})
    assert first._collection.configuration["hnsw"]["space"] == "ip"
    assert again._collection.configuration["hnsw"]["space"] == "ip"
    with pytest.raises(ValueError, match="hnsw:space"):
        make_store("kept", collection_metadata={"hnsw:space": "manhattan"})


def test_a_collection_must_be_there_where_none_is_to_be_made(make_store: MakeStore) -> None:
    with pytest.raises(ValueError, match="does not exist"):
        make_store("missing", create_collection_if_not_exists=False)
    make_store("missing").add_texts(["x"])
    assert make_store("missing", create_collection_if_not_exists=False).count() == 1


def test_relevance_is_the_caller_s_to_tell(make_store: MakeStore) -> None:
    store = make_store("own", relevance_score_fn=lambda distance: 1 / (1 + distance))
    store.add_texts(["leave"])
    ((_document, score),) = store.similarity_search_with_relevance_scores("leave")
    assert score == pytest.approx(1)


def test_from_texts_and_documents(make_store: MakeStore, database: Database) -> None:
    made = PostgresVectorStore.from_texts(
        ["a", "b"], WordEmbeddings(), [{"n": 1}, {}], ["1", "2"], collection_name="made",
        connection=database,
    )  # fmt: skip
    assert made.get()["metadatas"] == [{"n": 1}, None]
    documents = [Document("c", id="3"), Document("d")]
    more = PostgresVectorStore.from_documents(
        documents, WordEmbeddings(), collection_name="made", connection=database
    )
    assert more.get()["ids"][:3] == ["1", "2", "3"]
    assert more.count() == 4


# --- documents and their trash --------------------------------------------------------------------


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


def test_another_collection_s_document_is_not_deleted(
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


# --- ids, batches, hostile input ------------------------------------------------------------------


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


@pytest.mark.parametrize("bad", ["", "nul\0", "half \ud800", 7, "x" * 3000])
def test_ids_that_cannot_be(store: PostgresVectorStore, bad: Any) -> None:
    with pytest.raises(ValueError, match="ID"):
        store._collection.add(ids=[bad], documents=["text"])


def test_nul_and_halves_of_characters_are_replaced(store: PostgresVectorStore) -> None:
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


def test_hostile_words_are_only_words(store: PostgresVectorStore, database: Database) -> None:
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


@pytest.mark.parametrize(
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
def test_filters_that_mean_nothing_are_refused(store: PostgresVectorStore, where: Any) -> None:
    store.add_texts(["x"], [{"a": 1}])
    with pytest.raises(ValueError):  # noqa: PT011 - each for its own reason.
        store.similarity_search("x", filter=where)
    with pytest.raises(ValueError):  # noqa: PT011
        store.delete(where=where)
    assert store.count() == 1


def test_types_are_strict(store: PostgresVectorStore) -> None:
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


def test_writers_at_once_double_nothing(make_store: MakeStore) -> None:
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


# --- asynchronous ---------------------------------------------------------------------------------


class _SlowModel(WordEmbeddings):
    """Embed only asynchronously."""

    def embed_query(self, text: str) -> list[float]:
        raise AssertionError("held up the loop")

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        raise AssertionError("held up the loop")

    async def aembed_query(self, text: str) -> list[float]:
        return super().embed_query(text)

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        return [super(_SlowModel, self).embed_query(text) for text in texts]


def test_asynchronous_twins(make_store: MakeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store = make_store("async", embedding_function=_SlowModel())
    asked_on: set[threading.Thread] = set()
    nearest = Collections.nearest

    def noted(*arguments: Any) -> Any:
        asked_on.add(threading.current_thread())
        return nearest(*arguments)

    monkeypatch.setattr(Collections, "nearest", noted)

    async def use() -> None:
        assert await store.aadd_texts(["leave one", "leave two"], ids=["1", "2"]) == ["1", "2"]
        await store.aadd_documents([Document("laptops", id="3")])
        assert (await store.asimilarity_search("laptops", k=1))[0].id == "3"
        assert (await store.asimilarity_search_with_score("laptops", k=1))[0][1] < 1e-6
        assert (await store.asimilarity_search_with_vectors("laptops", k=1))[0][1].shape == (64,)
        assert len(await store.amax_marginal_relevance_search("leave", k=2)) == 2
        assert len(await store.asimilarity_search_with_relevance_scores("laptops", k=1)) == 1
        assert (await store.ahybrid_search("laptops", k=1))[0][0].id == "3"
        assert (await store.as_retriever(k=1).ainvoke("laptops"))[0].id == "3"
        vector = await _SlowModel().aembed_query("laptops")
        assert (await store.asimilarity_search_by_vector(vector, k=1))[0].id == "3"
        scored = store.asimilarity_search_by_vector_with_relevance_scores
        assert (await scored(vector, k=1))[0][0].id == "3"
        assert (await store.aget(ids=["3"]))["documents"] == ["laptops"]
        assert (await store.aget_by_ids(["3", "1"]))[0].id == "3"
        assert await store.acount() == 3
        await store.aupdate_document("1", Document("bicycles", metadata={"new": 1}))
        assert (await store.asimilarity_search("bicycles", k=1))[0].metadata == {"new": 1}
        await store.adelete(["3"])
        assert not await store.adelete_document("nobody's")
        await store.areset_collection()
        assert await store.acount() == 0
        await store.adelete_collection()

        assert asked_on
        assert threading.current_thread() not in asked_on

    run_apart(lambda: asyncio.run(use()))
