"""The portal's own documents in LangChain, with the rights of one user."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest
from flask.testing import FlaskClient
from langchain_core.vectorstores import VectorStore

from portal.domain.documents import Visibility
from portal.domain.documents.folder_members import MemberKind
from portal.domain.documents.folders import FolderRole, FolderVisibility
from portal.domain.people import User
from portal.integrations.connectors import VectorstoreConnector, VectorStoreManager
from portal.integrations.langchain import PortalRetriever, PortalVectorStore, PostgresVectorStore
from portal.services.documents import folders
from portal.services.documents.folders import members as folder_members
from portal.services.people import accounts
from tests.conftest import Portal

QUESTION = "annual leave days"


class World:
    """Documents of two users; `ann` is the one who searches."""

    def __init__(self, portal: Portal) -> None:
        self.portal = portal
        self.ann, self.bob = portal.user("ann"), portal.user("bob")
        self.shared = portal.add("Annual leave is 24 days.", name="leave.md", domain="hr").id
        self.other = portal.add("Annual leave days are entered in June.", name="june.txt").id
        self.own = portal.add(
            "My annual leave days: May.", owner=self.ann, visibility=Visibility.PRIVATE
        ).id
        self.hidden = portal.add(
            "Bob's annual leave days.", owner=self.bob, visibility=Visibility.PRIVATE
        ).id

    def retriever(self, user: str | User = "ann", **options: Any) -> PortalRetriever:
        return PortalRetriever(user=user, connection=self.portal.services, **options)

    def store(self, user: str | User = "ann", **options: Any) -> PortalVectorStore:
        return PortalVectorStore(user, connection=self.portal.services, **options)


@pytest.fixture
def world(portal: Portal) -> World:
    return World(portal)


def _ids(documents: list[Any]) -> set[UUID]:
    return {UUID(document.metadata["document_id"]) for document in documents}


def _everywhere(world: World, user: str | User = "ann", **options: Any) -> list[set[UUID]]:
    """Return the documents that each way of reading finds."""
    store = world.store(user, **options)
    return [
        _ids(world.retriever(user, **options).invoke(QUESTION, k=10)),
        _ids(store.similarity_search(QUESTION, k=10)),
        _ids(store.similarity_search_by_vector(store.embeddings.embed_query(QUESTION), k=10)),
        _ids(store.max_marginal_relevance_search(QUESTION, k=10)),
        _ids([document for document, _score in store.hybrid_search(QUESTION, k=10)]),
        {UUID(metadata["document_id"]) for metadata in store.get()["metadatas"]},
    ]


def test_only_what_the_user_may_see_is_found(world: World) -> None:
    for found in _everywhere(world):
        assert found == {world.shared, world.other, world.own}
    for found in _everywhere(world, world.bob):
        assert found == {world.shared, world.other, world.hidden}
    assert (world.store().count(), world.store("bob").count()) == (3, 3)
    by_id = world.store("admin").get()["ids"]
    assert len(world.store("admin").get_by_ids(by_id)) == 4
    assert len(world.store().get_by_ids([*by_id, "no id", str(uuid4())])) == 3


@pytest.mark.parametrize("role", list(FolderRole))
def test_member_of_a_folder_reads_it_until_removed(world: World, role: FolderRole) -> None:
    services, admin, members = world.portal.services, world.portal.admin, FolderVisibility.MEMBERS
    filed = {}
    for member, document in ((world.ann, world.other), (world.bob, world.shared)):
        folder = folders.create_folder(services, admin, name=member.name, visibility=members)
        folder_members.set_member(
            *(services, admin, folder), kind=MemberKind.USER, name=member.name, role=role
        )
        folders.move_document(services, admin, document, folder)
        filed[member.name] = folder
    hidden = world.store("admin").get(where={"source_file": "leave.md"})["ids"]
    # Opened only once: rights are checked at each call.
    store = world.store()
    assert _ids(store.similarity_search(QUESTION, k=10)) == {world.other, world.own}
    for found in _everywhere(world):
        assert found == {world.other, world.own}
    assert store.get_by_ids(hidden) == []
    listed = store.get()["ids"]
    folder_members.remove_member(services, admin, filed["ann"], world.ann.id)
    assert _ids(store.similarity_search(QUESTION, k=10)) == {world.own}
    assert len(store.get_by_ids(listed)) == store.count() == 1
    for found in _everywhere(world):
        assert found == {world.own}


def test_disabled_document_is_not_found(world: World, client: FlaskClient) -> None:
    headers = world.portal.headers(world.ann)
    made = client.post("/api/conversations", json={}, headers=headers)
    conversation = made.get_json()["id"]
    path = f"/api/user/document-defaults/{world.other}"
    assert client.put(path, json={"enabled": False}, headers=headers).status_code == 200
    path = f"/api/conversations/{conversation}/document-overrides"
    for document, enabled in ((world.shared, False), (world.other, True)):
        client.put(f"{path}/{document}", json={"enabled": enabled}, headers=headers)

    for found in _everywhere(world):
        assert found == {world.shared, world.own}
    for found in _everywhere(world, conversation=conversation):
        assert found == {world.other, world.own}
    assert world.store(conversation=conversation).count() == 2
    tiers = {
        UUID(one.metadata["document_id"]): one.metadata["selection"]
        for one in world.retriever(conversation=conversation).invoke(QUESTION)
    }
    assert tiers == {world.other: "conversation", world.own: "system"}

    assert (
        client.delete(f"/api/knowledge/documents/{world.own}", headers=headers).status_code == 204
    )
    assert _everywhere(world)[0] == {world.shared}


def test_results_can_be_cited(world: World, client: FlaskClient) -> None:
    (best, *others) = world.retriever(k=3).invoke("How many days is annual leave?")
    assert best.page_content == "Annual leave is 24 days."
    assert [one.metadata["citation"]["marker"] for one in (best, *others)] == [1, 2, 3]
    body = {"query": "How many days is annual leave?", "top_n": 3}
    headers = world.portal.headers(world.ann)
    answer = client.post("/api/knowledge/search", json=body, headers=headers).get_json()
    hit = answer["results"][0]
    for name in ("document_id", "title", "score", "vector_score", "text_score", "confidence",
                 "low_confidence", "page", "heading"):  # fmt: skip
        assert best.metadata[name] == hit[name], name
    assert (best.id, best.metadata["found_by"]) == (hit["chunk_id"], hit["source"])
    assert best.metadata["source_file"] == "leave.md"
    assert (best.metadata["domain"], best.metadata["visibility"]) == ("hr", "shared")

    citation = best.metadata["citation"]
    assert citation["chunk_id"] == best.id
    assert citation["quote_sha256"] == hashlib.sha256(best.page_content.encode()).hexdigest()
    path = f"/api/knowledge/documents/{world.shared}/content"
    stored = client.get(path, headers=headers).get_json()
    assert stored["revision_id"] == citation["revision_id"]
    quoted = stored["text"][citation["char_start"] : citation["char_end"]]
    assert quoted == citation["excerpt"] == best.page_content
    page = best.metadata["source"].removeprefix(world.portal.services.settings.public_url)
    assert client.get(page, headers=headers).status_code == 200


def test_store_returns_distances_and_obeys_filters(world: World) -> None:
    store = world.store()
    found = store.similarity_search_with_score(QUESTION, k=3)
    distances = [distance for _document, distance in found]
    assert distances == sorted(distances)
    for document, distance in found:
        assert distance == pytest.approx(1 - document.metadata["vector_score"])
    relevance = [score for _one, score in store.similarity_search_with_relevance_scores(QUESTION)]
    assert relevance == pytest.approx([1 - distance for distance in distances])
    assert _ids(store.similarity_search(QUESTION, filter={"domain": "hr"})) == {world.shared}
    by_file = {"source_file": {"$in": ["june.txt"]}, "content_type": "text/plain"}
    assert _ids(store.similarity_search(QUESTION, filter=by_file)) == {world.other}
    assert store.get(where={"source_file": "june.txt"}, include=[])["ids"]
    page = store.get(limit=1, offset=1)
    assert page["ids"] == store.get()["ids"][1:2]
    assert store.get(page["ids"][0]) == page


def test_the_store_is_read_only(world: World) -> None:
    store = world.store()
    for write in (store.add_texts, store.add_documents, store.upsert, store.delete,
                  store.delete_collection, PortalVectorStore.from_texts):  # fmt: skip
        with pytest.raises(NotImplementedError, match="read-only"):
            write(["x"])
    assert world.store("admin").count() == 4


def test_mistakes_are_value_errors(world: World, client: FlaskClient) -> None:
    foreign = client.post(
        "/api/conversations", json={}, headers=world.portal.headers(world.bob)
    ).get_json()["id"]
    store = world.store()
    mistakes = {
        "no active account": lambda: world.retriever("nobody").invoke("x"),
        "no conversation": lambda: world.retriever(conversation=foreign).invoke("x"),
        f"no conversation {foreign}": lambda: world.store(conversation=foreign).count(),
        "a UUID": lambda: world.store(conversation="yesterday"),
        "k is 1 to 100": lambda: store.similarity_search("x", k=0),
        "k is 1 to 100; got 2.5": lambda: store.similarity_search("x", k=2.5),
        "limit is a whole number": lambda: store.get(limit="2"),
        "offset is a whole number": lambda: store.get(offset=-1),
        "plain value": lambda: store.similarity_search("x", filter={"domain": {"$ne": "hr"}}),
        "Extra inputs are not permitted": lambda: world.retriever(conversaton=foreign),
        "embedding is a list": lambda: store.similarity_search_by_vector("abc"[:0] or None),
        "query vector|length|dimension": lambda: store.similarity_search_by_vector([1.0, 0.0]),
    }
    for message, mistake in mistakes.items():
        with pytest.raises(ValueError, match=message):
            mistake()
    with pytest.raises(TypeError, match="filters"):
        store.similarity_search("x", filters={})


def test_accounts_are_checked_at_each_call(world: World) -> None:
    retriever, services = world.retriever("ANN", k=10), world.portal.services
    assert len(retriever.invoke(QUESTION)) == 3
    # With a token that lacks the scope `admin`, an administrator is an ordinary user.
    for user, count in ((world.portal.admin, 4), (replace(world.portal.admin, is_admin=False), 2)):
        assert world.store(user).count() == count
    accounts.set_disabled(services, world.portal.admin, world.ann.id, disabled=True)
    for user in (retriever, world.retriever(world.ann)):
        with pytest.raises(ValueError, match="no active account"):
            user.invoke(QUESTION)


@pytest.mark.usefixtures("world")
def test_the_older_connector_and_manager_return_it(portal: Portal) -> None:
    config = {"data_manager": {"collection_name": "portal", "embedding_name": "Any"}}
    connection = portal.services.database
    store = VectorstoreConnector(config, connection=connection, user="ann").get_vectorstore()
    assert isinstance(store, VectorStore)
    assert (store.name, store.count()) == ("portal", 3)
    config["data_manager"]["user"] = "bob"
    manager = VectorStoreManager(config, data_path="data", connection=connection)
    collection = manager.fetch_collection()
    assert {metadata["visibility"] for metadata in collection.get()["metadatas"]} == {
        "shared",
        "private",
    }
    with pytest.raises(NotImplementedError, match="portal import"):
        manager.update_vectorstore()
    del config["data_manager"]["user"]
    with pytest.raises(ValueError, match="pass `user`"):
        VectorstoreConnector(config, connection=connection).get_vectorstore()
    with pytest.raises(ValueError, match="PortalVectorStore"):
        PostgresVectorStore("portal", connection=connection)
