"""Where a store keeps its records, and how it is opened."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document

from portal.integrations.langchain import PostgresVectorStore
from portal.services.collections.records import Collections
from portal.store.session import Database
from tests.factories.cases import for_each
from tests.factories.uploads import run_apart
from tests.integration.collections.langchain.conftest import MakeStore, WordEmbeddings, _rows


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


def test_metadata_of_the_caller_is_not_changed(store: PostgresVectorStore) -> None:
    document = Document("text", metadata={"a": 1})
    store.add_documents([document])
    assert document.metadata == {"a": 1}
    assert store.similarity_search("text")[0].metadata == {"a": 1}


@for_each("dimensions", [1, 7, 2001, 4001, 16000])
def test_vectors_of_any_dimension_are_stored_and_found(
    make_store: MakeStore, dimensions: int
) -> None:
    l2 = {"hnsw:space": "l2"}  # One-dimensional vectors all have the same cosine.
    store = make_store(f"of-{dimensions}", collection_metadata=l2, compared_one_by_one=1)
    vectors = np.eye(3, dimensions, dtype=np.float32) + 0.25
    store.add_texts(["a", "b", "c"], ids=list("abc"), embeddings=vectors)
    found = store.similarity_search(vectors[min(1, dimensions - 1)], k=1)
    assert found[0].id == ("b" if dimensions > 1 else "a")
    with pytest.raises(ValueError, match=f"dimension of {dimensions}, got 3"):
        store.similarity_search_by_vector([1.0, 2.0, 3.0])


def test_portal_collection_is_out_of_reach(make_store: MakeStore, database: Database) -> None:
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


def test_collection_deleted_by_others_is_reported(make_store: MakeStore) -> None:
    mine, theirs = make_store("shared"), make_store("shared")
    mine.add_texts(["x"])
    theirs.delete_collection()
    for call in (mine.get, mine.count, lambda: mine.add_texts(["y"])):
        with pytest.raises(ValueError, match="does not exist"):
            call()
    mine.reset_collection()
    mine.add_texts(["y"])
    theirs.reset_collection()
    mine.reset_collection()
    assert mine.count() == 0


@pytest.mark.parametrize("name", [5, "a\0b", "half \ud83d", "", "x" * 513])
def test_invalid_names_are_refused(make_store: MakeStore, name: Any) -> None:
    with pytest.raises(ValueError, match="name"):
        make_store(name)


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


def test_missing_collection_is_refused_where_none_may_be_created(make_store: MakeStore) -> None:
    with pytest.raises(ValueError, match="does not exist"):
        make_store("missing", create_collection_if_not_exists=False)
    make_store("missing").add_texts(["x"])
    assert make_store("missing", create_collection_if_not_exists=False).count() == 1


def test_caller_may_define_the_relevance_score(make_store: MakeStore) -> None:
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


class _SlowModel(WordEmbeddings):
    """A model that embeds only asynchronously."""

    def embed_query(self, text: str) -> list[float]:
        raise AssertionError("held up the loop")

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        raise AssertionError("held up the loop")

    async def aembed_query(self, text: str) -> list[float]:
        return super().embed_query(text)

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        return [super(_SlowModel, self).embed_query(text) for text in texts]


def test_asynchronous_methods_work_and_search_in_another_thread(
    make_store: MakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
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
