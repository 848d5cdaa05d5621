"""Asking about one document, folder or tag: nothing else is read, no empty conversation is left."""

from __future__ import annotations

import re
from typing import Any
from uuid import UUID, uuid4

import pytest
from flask.testing import FlaskClient
from sqlalchemy import text

from portal.domain.documents import Visibility
from portal.services.documents import folders, library
from tests.conftest import Portal
from tests.factories.caller import Caller

SEARCH = "/api/knowledge/search"


class Desk(Caller):
    """A user's calls."""

    def add(self, title: str, *, folder: UUID | None = None, tag: str = "") -> str:
        made = self.portal.add(f"The maple of {title} is tall.", title=title, owner=self.user)
        if folder:
            folders.move_document(self.portal.services, self.user, made.id, folder)
        if tag:
            self.call("PUT", f"/api/knowledge/documents/{made.id}/tags", json={"tags": [tag]})
        return str(made.id)

    def found(self, **more: Any) -> set[str]:
        answer = self.call("POST", SEARCH, json={"query": "maple", "mode": "keyword", **more})
        assert answer.status_code == 200, answer.json
        return {result["title"] for result in answer.json["results"]}

    def talk(self, **scope: Any) -> str:
        made = self.call("POST", "/api/conversations", json={"scope": scope or None})
        assert made.status_code == 201, made.json
        return str(made.json["id"])


@pytest.fixture
def ada(portal: Portal, client: FlaskClient) -> Desk:
    return Desk(portal, client, portal.user("ada"))


def test_conversation_reads_its_scope_and_nothing_else(ada: Desk, portal: Portal) -> None:
    archive = folders.create_folder(portal.services, ada.user, name="Archive")
    below = folders.create_folder(portal.services, ada.user, name="Old", parent_id=archive)
    one, filed = ada.add("One"), ada.add("Filed", folder=below)
    ada.add("Tagged", tag="2026")
    # A document that is asked about is read even if the user's switches disable it.
    ada.call("PUT", f"/api/user/document-defaults/{one}", json={"enabled": False})
    ada.call("PUT", f"/api/user/folder-defaults/{archive}", json={"enabled": False})
    for scope, expected in (
        ({"documents": [one]}, {"One"}),
        ({"folders": [str(archive)]}, {"Filed"}),
        ({"tags": ["2026"]}, {"Tagged"}),
        ({"documents": [one], "tags": ["2026"]}, {"One", "Tagged"}),
        ({"tags": ["none such"]}, set()),
    ):
        talk = ada.talk(**scope)
        assert ada.found(conversation_id=talk) == expected, scope
        assert f"Using {len(expected)} of 3 documents" in ada.call("GET", f"/chat/{talk}").text
    talk = ada.talk(folders=[str(archive)])
    ada.add("Later", folder=below)
    assert ada.found(conversation_id=talk) == {"Filed", "Later"}
    path = f"/api/conversations/{talk}/document-overrides"
    ada.call("PUT", f"{path}/{filed}", json={"enabled": False})
    ada.call("PUT", f"{path}/{one}", json={"enabled": True})
    assert ada.found(conversation_id=talk) == {"Later", "One"}
    sent = {"content": "How tall is the maple?"}
    answer = ada.call("POST", f"/api/conversations/{talk}/messages", json=sent).json
    assert answer["replay"]["scope"] == {"documents": [], "folders": [str(archive)], "tags": []}
    assert {one["title"] for one in answer["citations"]} <= {"Later", "One"}


def test_search_keeps_to_a_scope(ada: Desk, portal: Portal) -> None:
    archive = folders.create_folder(portal.services, ada.user, name="Archive")
    one, two = ada.add("One"), ada.add("Two", tag="2026")
    ada.add("Filed", folder=archive)
    assert ada.found(scope={"documents": [one]}) == {"One"}
    assert ada.found(scope={"tags": ["2026"], "documents": [one]}) == {"One", "Two"}
    in_archive = {"folders": [str(archive)]}
    assert ada.found(scope=in_archive) == {"Filed"}
    folders.move_document(portal.services, ada.user, UUID(two), archive)
    assert ada.found(scope=in_archive) == {"Filed", "Two"}
    ada.call("PUT", f"/api/user/document-defaults/{two}", json={"enabled": False})
    assert ada.found(scope=in_archive) == {"Filed"}, "what is off stays off"


def test_foreign_and_missing_things_are_not_found(ada: Desk, portal: Portal) -> None:
    services, admin = portal.services, portal.admin
    hidden = portal.add("maple", title="Secret", visibility=Visibility.PRIVATE)
    severance = folders.create_folder(
        services, admin, name="Severance", visibility=Visibility.PRIVATE
    )
    trashed = portal.add("maple trash", title="Trashed", owner=ada.user)
    library.delete_document(services, ada.user, trashed.id)
    for kind, one in (
        ("document", hidden.id),
        ("document", trashed.id),
        ("document", uuid4()),
        ("folder", severance),
        ("folder", uuid4()),
        ("folder", "x"),
    ):
        page = ada.call("GET", "/chat", query_string={kind: str(one)})
        sent = ada.call("POST", "/chat", data={kind: str(one), "content": "Which maple?"})
        assert (page.status_code, sent.status_code) == (404, 404)
        if one == "x":
            continue
        scope = {f"{kind}s": [str(one)]}
        assert ada.call("POST", "/api/conversations", json={"scope": scope}).status_code == 404
        body = {"query": "maple", "scope": scope}
        assert ada.call("POST", SEARCH, json=body).status_code == 404
    with services.database.begin() as session:
        assert session.execute(text("SELECT count(*) FROM conversations")).scalar() == 0


def test_asking_about_a_document_stores_nothing_before_the_question(
    ada: Desk, portal: Portal
) -> None:
    archive = folders.create_folder(portal.services, ada.user, name="Archive")
    one = ada.add("One", tag="2026")
    about = f"/chat?document={one}"
    assert about in ada.call("GET", f"/documents/{one}").text
    assert about in ada.call("GET", "/search?q=maple").text
    assert f"/chat?folder={archive}" in ada.call("GET", f"/documents?folder={archive}").text
    assert "/chat?tag=2026" in ada.call("GET", "/documents?tag=2026").text
    page = ada.call("GET", about).text
    assert "Only about:" in page
    assert f'name="document" value="{one}"' in page
    assert ada.call("GET", "/api/conversations").json["conversations"] == []
    sent = ada.call("POST", "/chat", data={"document": one, "content": "How tall is the maple?"})
    assert sent.status_code == 303
    shown = ada.call("GET", sent.location.partition("#")[0]).text
    assert "Only about:" in shown
    assert "Using 1 of 1 documents" in shown


def test_rows_of_the_list_offer_to_ask_about_the_document(ada: Desk) -> None:
    document_id = ada.add("One")
    page = ada.call("GET", "/documents").get_data(as_text=True)
    row = page.partition('data-testid="ask-about-row"')[0].rpartition("<a ")[2]
    assert f'href="/chat?document={document_id}"' in row
    assert ": One" in row


def test_scope_of_a_question_narrows_only_that_question(ada: Desk) -> None:
    one, two = ada.add("One"), ada.add("Two", tag="2026")
    talk = ada.talk()
    path = f"/api/conversations/{talk}/messages"
    question = {"content": "How tall is the maple?"}
    asked = ada.call("POST", path, json=question | {"scope": {"documents": [one]}}).json
    assert asked["replay"]["scope"] == {"documents": [one], "folders": [], "tags": []}
    assert asked["replay"]["enabled_count"] == 1
    assert {found["title"] for found in asked["citations"] + asked["consulted"]} == {"One"}
    again = ada.call("POST", f"/api/messages/{asked['id']}/retry").json
    assert again["replay"]["scope"] == asked["replay"]["scope"]
    following = ada.call("POST", path, json=question).json
    assert following["replay"]["scope"] is None
    assert following["replay"]["enabled_count"] == 2
    off = f"/api/conversations/{talk}/document-overrides/{two}"
    ada.call("PUT", off, json={"enabled": False})
    narrowed = ada.call("POST", path, json=question | {"scope": {"tags": ["2026"]}}).json
    assert narrowed["replay"]["enabled_count"] == 0, "what is off stays off"
    assert not narrowed["citations"] + narrowed["consulted"]


SCOPED = (
    ("/api/knowledge/search", {"query": "maple"}),
    ("/v1/search", {"query": "maple"}),
    ("/v1/answer", {"query": "maple"}),
    ("/api/v1/search/semantic", {"query_text": "maple"}),
    ("/api/v1/search/text", {"query": "maple"}),
    ("/api/v1/search/hybrid", {"query_text": "maple"}),
)


@pytest.mark.parametrize(("path", "body"), SCOPED)
def test_every_search_keeps_to_a_scope_without_leaks(
    ada: Desk, portal: Portal, path: str, body: dict[str, Any]
) -> None:
    one = ada.add("One")
    ada.add("Two")
    hidden = portal.add("maple", title="Secret", visibility=Visibility.PRIVATE)
    assert one in ada.call("POST", path, json=body).text
    scoped = ada.call("POST", path, json=body | {"scope": {"documents": [one]}})
    assert scoped.status_code == 200, scoped.json
    assert one in scoped.text
    assert "Two" not in scoped.text
    for scope in ({"documents": [one, str(hidden.id)]}, {"documents": [str(uuid4())]}):
        refused = ada.call("POST", path, json=body | {"scope": scope})
        assert refused.status_code == 404
        assert "Secret" not in refused.text
    for nothing in ({}, {"documents": [], "tags": []}):
        refused = ada.call("POST", path, json=body | {"scope": nothing})
        assert refused.status_code == 422
        assert "scope must name at least one document" in refused.json["error"]["message"]


def test_blank_query_is_refused_as_such(ada: Desk) -> None:
    refused = ada.call("POST", "/v1/search", json={"query": " \u3000"})
    assert refused.status_code == 422
    assert "no visible characters" in refused.json["error"]["message"]


def test_question_about_an_invisible_document_is_neither_stored_nor_counted(
    ada: Desk, portal: Portal
) -> None:
    hidden = portal.add("maple", title="Secret", visibility=Visibility.PRIVATE)
    library.change_document(portal.services, portal.admin, hidden.id, tags=["2026"])
    ada.add("One", tag="2026")
    talk = ada.talk()
    path = f"/api/conversations/{talk}/messages"
    about = {"content": "How tall is the maple?", "scope": {"documents": [str(hidden.id)]}}
    assert ada.call("POST", path, json=about).status_code == 404
    assert ada.call("GET", f"/api/conversations/{talk}").json["messages"] == []
    answer = ada.call("POST", path, json=about | {"scope": {"tags": ["2026"]}}).json
    assert (answer["replay"]["enabled_count"], answer["replay"]["document_count"]) == (1, 1)
    assert {one["title"] for one in answer["citations"] + answer["consulted"]} <= {"One"}


def test_question_in_a_deleted_scope_reports_it(ada: Desk) -> None:
    one = ada.add("One")
    ada.add("Two")
    talk = ada.talk(documents=[one])
    ada.call("DELETE", f"/api/knowledge/documents/{one}")
    path = f"/api/conversations/{talk}/messages"
    answer = ada.call("POST", path, json={"content": "How tall is the maple?"}).json
    assert answer["content"].startswith("Nothing that this question is about is switched on")


def test_form_narrows_a_question_without_scripts(ada: Desk, portal: Portal) -> None:
    one = ada.add("Maple one")
    ada.add("Other", tag="maples")
    folders.create_folder(portal.services, ada.user, name="Maple archive")
    portal.add("maple", title="Maple secret", visibility=Visibility.PRIVATE)
    folders.create_folder(
        portal.services, portal.admin, name="Maple cellar", visibility=Visibility.PRIVATE
    )
    talk = ada.talk()
    for address in ("/chat", f"/chat/{talk}/messages"):
        form = {"content": "How tall?", "find": "maple", "find_about": "1"}
        page = ada.call("POST", address, data=form).text
        for shown in (
            f'value="document:{one}"',
            "Maple archive",
            'value="tag:maples"',
            "How tall?",
        ):
            assert shown in page
        assert "secret" not in page
        assert "cellar" not in page
        about = {"about": f"document:{one}", "content": "How tall is the maple?"}
        dropped = ada.call("POST", address, data=about | {"drop": f"document:{one}"}).text
        assert 'data-testid="about-part"' not in dropped
        asked = ada.call("POST", address, data=about)
        assert asked.status_code == 303
        shown = ada.call("GET", asked.location.partition("#")[0]).text
        assert 'data-testid="question-scope"' in shown
        assert 'data-testid="about-part"' not in shown, "the next question is about everything"
    listed = ada.call("GET", "/chat/about?find=maple").text
    assert listed.count('role="option"') == 3
    ada.add("Three", tag="TaxReturn")
    for words in ("taxr", "TaxR"):
        assert "TaxReturn" in ada.call("GET", f"/chat/about?find={words}").text
    for foreign in (f"document:{uuid4()}", "document:x", "x:y"):
        about = {"about": foreign, "content": "maple?"}
        assert ada.call("POST", f"/chat/{talk}/messages", data=about).status_code == 404


def test_names_that_begin_with_the_words_come_before_others(ada: Desk, portal: Portal) -> None:
    for part in "一丁七万丈三":
        ada.add(f"{part}部手册")
    ada.add("手册2026", tag="年度手册")
    ada.add("员工手册", tag="手册")
    folders.create_folder(portal.services, ada.user, name="新手册")
    folders.create_folder(portal.services, ada.user, name="手册库")
    page = ada.call("GET", "/chat/about?find=手册").text
    shown = re.findall(r"about-option\".*?<span>(.*?)</span>", page, re.DOTALL)
    assert shown[:3] == ["手册库", "新手册", "手册2026"]
    assert len(shown[2:-2]) == 6
    assert shown[-2:] == ["手册", "年度手册"]
