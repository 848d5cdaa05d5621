"""Code written for the older Chroma-based system works with the portal's store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from langchain_core.vectorstores import VectorStore

from portal.integrations import connectors
from portal.integrations.connectors import VectorstoreConnector, VectorStoreManager
from portal.integrations.langchain import PostgresVectorStore
from portal.services import Services
from portal.store.session import Database
from tests.factories.servers.website import serve_website
from tests.integration.collections.langchain.conftest import WordEmbeddings

CONFIG = {
    "data_manager": {
        "collection_name": "handbooks",
        "embedding_name": "Words",
        "embedding_class_map": {"Words": {"class": WordEmbeddings, "kwargs": {"size": 64}}},
        "distance_metric": "cosine",
        "chunk_size": 400,
    }
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "leave.txt").write_text("Annual leave is twenty four days.")
    (folder / "canteen.md").write_text("# Canteen\n\nThe canteen opens at noon.")
    return folder


@pytest.fixture
def manager(folder: Path, database: Database) -> VectorStoreManager:
    return VectorStoreManager(config=CONFIG, data_path=folder, connection=database)


def _indexed(collection: PostgresVectorStore) -> dict[str, str]:
    """Return the collection's file names by hash, as the old code does."""
    metadatas = collection.get(include=["metadatas"])["metadatas"]
    return {metadata["resource_hash"]: metadata["filename"] for metadata in metadatas}


def test_a_connector_gives_a_vector_store(database: Database) -> None:
    store = VectorstoreConnector(CONFIG, connection=database).get_vectorstore()
    assert isinstance(store, VectorStore)
    assert store.name == "handbooks_with_Words"
    assert store._collection.metadata == {"hnsw:space": "cosine"}
    assert isinstance(store.embeddings, WordEmbeddings)


def test_default_model_is_the_portals(database: Database) -> None:
    config = {"data_manager": {"collection_name": "plain"}}
    store = VectorstoreConnector(config, connection=database).get_vectorstore()
    assert store.name == "plain"
    assert type(store.embeddings).__name__ == "EmbedderEmbeddings"


def test_updating_reads_the_folder_once(manager: VectorStoreManager) -> None:
    manager.update_vectorstore()
    collection = manager.fetch_collection()
    assert sorted(_indexed(collection).values()) == ["canteen.md", "leave.txt"]
    before = collection.get()
    manager.update_vectorstore()
    assert collection.get() == before


def test_updating_follows_the_folder(manager: VectorStoreManager, folder: Path) -> None:
    manager.update_vectorstore()
    (folder / "leave.txt").write_text("Annual leave is thirty days.")
    (folder / "canteen.md").unlink()
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7 not really")
    manager.update_vectorstore()
    collection = manager.fetch_collection()
    assert collection.get()["documents"] == ["Annual leave is thirty days."]


def test_updating_keeps_what_others_added(manager: VectorStoreManager) -> None:
    collection = manager.fetch_collection()
    collection.add_texts(["A ticket"], [{"resource_hash": "t-1", "source": "redmine"}], ["t"])
    manager.update_vectorstore()
    assert collection.get(ids=["t"])["documents"] == ["A ticket"]


def test_a_data_manager_adds_and_removes(manager: VectorStoreManager) -> None:
    collection, model = manager.fetch_collection(), WordEmbeddings()
    chunks = ["mail about leave", "mail about laptops", "ticket about the canteen"]
    hashes = ["m1", "m1", "t1"]
    collection.add(
        embeddings=model.embed_documents(chunks),
        ids=["m1-0", "m1-1", "t1-0"],
        documents=chunks,
        metadatas=[{"resource_hash": one, "filename": f"{one}.txt"} for one in hashes],
    )
    assert f"N Collection: {collection.count():,}" == "N Collection: 3"
    assert _indexed(collection) == {"m1": "m1.txt", "t1": "t1.txt"}
    collection.delete(where={"resource_hash": "m1"})
    assert collection.count() == 1
    assert collection.get()["ids"] == ["t1-0"]


def test_adding_again_changes_nothing(manager: VectorStoreManager) -> None:
    collection = manager.fetch_collection()
    for text in ("first", "second"):
        collection.add(ids=["one"], documents=[text], metadatas=[{"resource_hash": "h"}])
    assert collection.get()["documents"] == ["first"]


def test_a_chat_service_retrieves_with_k(manager: VectorStoreManager, database: Database) -> None:
    manager.update_vectorstore()
    store = VectorstoreConnector(CONFIG, connection=database).get_vectorstore()
    retriever = store.as_retriever(search_kwargs={"k": 1})
    (found,) = retriever.invoke("annual leave days")
    assert found.metadata["filename"] == "leave.txt"
    ((document, distance),) = store.similarity_search_with_score("annual leave days", k=1)
    assert document.id == found.id
    assert 0 <= distance < 1


def test_collection_behind_a_store_answers_chroma_calls(manager: VectorStoreManager) -> None:
    manager.update_vectorstore()
    collection = manager.fetch_collection()._collection
    assert collection.count() == 2
    assert len(collection.peek(1)["ids"]) == 1
    asked = collection.query(query_texts=["canteen opens"], n_results=1, include=["documents"])
    ((found,),) = asked["documents"]
    assert "canteen opens" in found


def test_a_reset_empties_the_collection(database: Database, folder: Path) -> None:
    config = {"data_manager": CONFIG["data_manager"] | {"reset_collection": True}}
    manager = VectorStoreManager(config, data_path=folder, connection=database)
    manager.update_vectorstore()
    manager.delete_existing_collection_if_reset()
    assert manager.fetch_collection().count() == 0


def test_updating_follows_sources_on_the_web(
    make_services: Callable[..., Services], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connectors read the sources that folders follow, as well as their directory."""
    with serve_website() as site:
        services = make_services(
            sources={
                "hosts": (f"127.0.0.1:{site.port}",),
                "private_networks": ("127.0.0.0/8",),
                "delay_s": 0,
            }
        )
        follow = [
            {"kind": "pages", "address": site.page("/travel", "Trains are paid for.", ETag="1")},
            {"kind": "feed", "address": site.url("/missing")},
        ]
        config = {"data_manager": CONFIG["data_manager"] | {"follow": follow}}
        manager = VectorStoreManager(config=config, data_path=folder, connection=services.database)
        monkeypatch.setattr(connectors, "open_services", lambda _connection: services)
        manager.update_vectorstore()
        collection = manager.fetch_collection()
        names = ["canteen.md", "leave.txt", "travel.html"]
        assert sorted(_indexed(collection).values()) == names
        before = collection.get()
        manager.update_vectorstore()
        assert collection.get() == before
        assert site.asked().count("/travel") == 2
        site.replies["/travel"].status = 500
        site.replies["/travel"].headers.pop("ETag")
        manager.update_vectorstore()
        assert sorted(_indexed(collection).values()) == names
        site.page("/travel", "Only buses are paid for.")
        manager.update_vectorstore()
        found = collection.get(where={"filename": "travel.html"})["documents"]
        assert found == ["Only buses are paid for."]
        site.replies["/travel"].status = 410
        manager.update_vectorstore()
        assert sorted(_indexed(collection).values()) == ["canteen.md", "leave.txt"]
