"""Every search takes a scope, and none finds what lies behind a gate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest
from flask.testing import FlaskClient

from portal.domain.documents.folders import FolderVisibility
from portal.domain.documents.selection import AskScope
from portal.errors import NotFound
from portal.services.documents import folders
from tests.conftest import Portal
from tests.factories.caller import Caller

langchain = pytest.importorskip("portal.integrations.langchain")
mcp = pytest.importorskip("portal.integrations.mcp.documents")

WORDS = "The maple is tall"
Scope = dict[str, list[str]]


class Seeker(Caller):
    """A user who searches through every interface."""

    def post(self, path: str, body: dict[str, Any]) -> str:
        answer = self.call("POST", path, json=body)
        if answer.status_code == 404:
            raise NotFound
        assert answer.status_code == 200, answer.text
        return answer.text.replace(WORDS, "")

    def get(self, path: str, words: dict[str, str], scope: Scope) -> str:
        lists = {name: ",".join(values) for name, values in scope.items()}
        answer = self.call("GET", path, query_string=words | lists)
        if answer.status_code == 404:
            raise NotFound
        assert answer.status_code == 200, answer.text
        return answer.text.replace(WORDS, "")

    def doors(self) -> dict[str, Callable[[Scope], str]]:
        """Return a function for each interface that returns what it shows for a scope. It may raise
        NotFound or ValueError."""
        services, user = self.portal.services, self.user
        query = {"query_text": WORDS, "top_k": 9}

        def read(scope: Scope) -> AskScope | None:
            ids = {name: tuple(map(UUID, scope.get(name, ()))) for name in ("documents", "folders")}
            return AskScope(**ids, tags=tuple(scope.get("tags", ()))) if scope else None

        def store(scope: Scope) -> str:
            opened = langchain.PortalVectorStore(user, scope=read(scope), connection=services)
            return str(opened.similarity_search(WORDS, k=9))

        def retriever(scope: Scope) -> str:
            made = langchain.PortalRetriever(user=user, scope=read(scope), connection=services)
            return str(made.invoke(WORDS, k=9))

        def tool(scope: Scope) -> str:
            asked = {"query": WORDS} | ({"scope": scope} if scope else {})
            return str(mcp.search(services, user, mcp.SearchArguments.model_validate(asked)))

        def within(body: dict[str, Any], scope: Scope) -> dict[str, Any]:
            return body | ({"scope": scope} if scope else {})

        return {
            "knowledge": lambda s: self.post("/api/knowledge/search", within({"query": WORDS}, s)),
            "v1 by address": lambda s: self.get("/v1/search", {"q": WORDS}, s),
            "v1": lambda s: self.post("/v1/search", within({"query": WORDS}, s)),
            "semantic by address": lambda s: self.get(
                "/api/semantic_search", {"query": WORDS, "limit": "9"}, s
            ),
            "semantic": lambda s: self.post(
                "/api/semantic_search", within({"query": WORDS, "limit": 9}, s)
            ),
            "batch": lambda s: self.post("/api/v1/search/batch", {"queries": [within(query, s)]}),
            "hybrid": lambda s: self.post("/api/v1/search/hybrid", within(query, s)),
            "vector store": store,
            "retriever": retriever,
            "tool": tool,
        }


@pytest.fixture
def ada(portal: Portal, client: FlaskClient) -> Seeker:
    return Seeker(portal, client, portal.user("ada"))


def test_every_search_finds_what_is_in_its_scope_and_nothing_else(ada: Seeker) -> None:
    services = ada.portal.services
    folder = folders.create_folder(services, ada.user, name="Trees")
    filed, tagged, loose = (
        ada.portal.add(f"{WORDS}, says {name}.", title=f"Paper {name}", owner=ada.user)
        for name in ("Quill", "Reed", "Sable")
    )
    folders.move_document(services, ada.user, filed.id, folder)
    ada.call("PUT", f"/api/knowledge/documents/{tagged.id}/tags", json={"tags": ["2026"]})
    hidden = folders.create_folder(
        services, ada.portal.admin, name="Closed", visibility=FolderVisibility.MEMBERS
    )
    papers = {"Paper Quill", "Paper Reed", "Paper Sable"}
    for name, door in ada.doors().items():
        for scope, expected in (
            ({}, papers),
            ({"folders": [str(folder)]}, {"Paper Quill"}),
            ({"tags": ["2026"]}, {"Paper Reed"}),
            ({"documents": [str(loose.id)], "tags": ["2026"]}, {"Paper Reed", "Paper Sable"}),
        ):
            shown = door(scope)
            assert {paper for paper in papers if paper in shown} == expected, (name, scope)
        for foreign in (hidden, uuid4()):
            with pytest.raises((NotFound, ValueError)):
                door({"folders": [str(foreign)]})


def test_documents_behind_a_gate_leak_through_no_search(ada: Seeker) -> None:
    services, bob = ada.portal.services, ada.portal.user("bob")
    folder = folders.create_folder(
        services, bob, name="Closed", visibility=FolderVisibility.MEMBERS
    )
    secret = ada.portal.add(f"{WORDS}, whispers Quill.", title="Paper Quill", owner=bob)
    folders.move_document(services, bob, secret.id, folder)
    ada.portal.add(f"{WORDS}, says Reed.", title="Paper Reed")
    for name, door in ada.doors().items():
        shown = door({})
        assert "Reed" in shown, name
        assert "Quill" not in shown, name
        assert str(secret.id) not in shown, name
    store = langchain.PortalVectorStore(ada.user, connection=services)
    assert "Quill" not in str(store.get())
    with pytest.raises(NotFound):
        mcp.fetch(services, ada.user, mcp.FetchArguments(id=str(secret.id)))
    with pytest.raises((NotFound, ValueError)):
        ada.doors()["tool"]({"documents": [str(secret.id)]})


def test_citations_and_exports_hide_what_went_behind_a_gate(ada: Seeker) -> None:
    """An answer keeps its words and the title that was read; its source can no longer be opened."""
    services, bob = ada.portal.services, ada.portal.user("bob")
    secret = ada.portal.add(f"{WORDS}, whispers Quill.", title="Paper Quill", owner=bob)
    talk = ada.call("POST", "/api/conversations", json={}).json["id"]
    sent = {"content": "Is the maple tall?"}
    answer = ada.call("POST", f"/api/conversations/{talk}/messages", json=sent).json
    citation = answer["citations"][0]
    assert citation["document_id"] == str(secret.id)
    folder = folders.create_folder(
        services, bob, name="Closed", visibility=FolderVisibility.MEMBERS
    )
    folders.move_document(services, bob, secret.id, folder)
    gone = ada.call("GET", f"/api/citations/{citation['id']}/verify")
    assert "Quill" not in gone.text
    for path in (
        f"/api/knowledge/documents/{secret.id}",
        f"/api/knowledge/documents/{secret.id}/content",
        f"/api/knowledge/documents/{secret.id}/file",
        f"/documents/{secret.id}",
        f"/v1/documents/{secret.id}",
    ):
        assert ada.call("GET", path).status_code == 404, path
    export = ada.call("GET", f"/api/conversations/{talk}/export").text
    assert "the document is gone" in export
    assert str(secret.id) not in export
