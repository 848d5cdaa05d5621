"""Changes of many documents at once: what they change, what they skip, and how to undo them."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import pytest
from flask.testing import FlaskClient
from sqlalchemy import event, text

from portal.domain.documents import Visibility
from portal.domain.documents.bulk import BulkAction, BulkResult
from portal.domain.people import User
from portal.errors import NotFound
from portal.services import Services
from portal.services.documents import bulk, folders, library, switches
from portal.store.documents import bulk as bulk_store
from portal.store.documents import folders as folder_store
from portal.text.titles import MAX_TAGS
from tests.conftest import Portal
from tests.factories.blocking import wait_until_blocked

BULK = "/api/knowledge/bulk"


@dataclass
class Shelf:
    """ada's documents a, b and private c, and eve's shared d and private e."""

    portal: Portal
    client: FlaskClient
    ada: User
    eve: User
    ids: dict[str, str]

    def apply(self, user: User, action: str, *names: str, **given: Any) -> dict[str, Any]:
        if names:
            given["ids"] = [self.ids.get(name, name) for name in names]
        headers = self.portal.headers(user)
        answer = self.client.post(BULK, headers=headers, json={"action": action, **given})
        assert answer.status_code == 200, answer.text
        return dict(answer.json)

    def undo(self, user: User, change_id: str) -> Any:
        address = f"{BULK}/{change_id}/undo"
        return self.client.post(address, headers=self.portal.headers(user))

    def state(self, name: str) -> Any:
        query = (
            "SELECT tags, domain, visibility, folder_id, deleted_at FROM documents WHERE id = :id"
        )
        with self.portal.services.database.begin() as session:
            return session.execute(text(query), {"id": self.ids[name]}).one()


@contextmanager
def statements(services: Services, part: str) -> Iterator[list[str]]:
    """Collect the SQL statements that contain `part`."""
    written: list[str] = []

    def watch(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        if part in statement:
            written.append(statement)

    event.listen(services.database.engine, "before_cursor_execute", watch)
    yield written
    event.remove(services.database.engine, "before_cursor_execute", watch)


@pytest.fixture
def shelf(portal: Portal, client: FlaskClient) -> Shelf:
    ada, eve = portal.user("ada"), portal.user("eve")
    ids = {}
    for name, owner, visibility in (
        ("a", ada, Visibility.SHARED),
        ("b", ada, Visibility.SHARED),
        ("c", ada, Visibility.PRIVATE),
        ("d", eve, Visibility.SHARED),
        ("e", eve, Visibility.PRIVATE),
    ):
        content = f"words of {name}"
        ids[name] = str(portal.add(content, title=name, owner=owner, visibility=visibility).id)
    return Shelf(portal, client, ada, eve, ids)


@pytest.mark.parametrize(
    ("action", "given", "column"),
    [
        ("add_tag", {"tag": "2026"}, "tags"),
        ("domain", {"domain": "law"}, "domain"),
        ("visibility", {"visibility": "private"}, "visibility"),
        ("delete", {}, "deleted_at"),
    ],
)
def test_change_skips_documents_of_others_and_can_be_undone(
    shelf: Shelf, action: str, given: dict[str, Any], column: str
) -> None:
    before = {name: shelf.state(name) for name in shelf.ids}
    done = shelf.apply(shelf.ada, action, "a", "b", "c", "d", "e", str(uuid4()), **given)
    # A private document is not changed again; eve's private one is missing like an unknown one.
    already = {"c"} if action == "visibility" else set()
    assert done["changed_count"] == 3 - len(already)
    assert [(one["title"], one["reason"]) for one in done["skipped"]] == [("d", "forbidden")]
    assert (done["skipped_count"], done["missing_count"]) == (1, 2)
    changed = {
        name
        for name in shelf.ids
        if getattr(shelf.state(name), column) != getattr(before[name], column)
    }
    assert changed == {"a", "b", "c"} - already
    assert shelf.undo(shelf.eve, done["change_id"]).status_code == 404
    assert shelf.undo(shelf.ada, done["change_id"]).json == {"changed_count": len(changed)}
    assert {name: shelf.state(name) for name in shelf.ids} == before
    assert shelf.undo(shelf.ada, done["change_id"]).status_code == 404


def test_gates_are_read_for_more_documents_than_a_statement_has_parameters(portal: Portal) -> None:
    with portal.services.database.begin() as session:
        assert bulk_store.gates_of(session, [uuid4() for _ in range(70_000)]) == {}


def test_undo_keeps_later_changes(shelf: Shelf) -> None:
    done = shelf.apply(shelf.ada, "domain", "a", "b", domain="law")
    shelf.apply(shelf.ada, "domain", "a", domain="art")
    assert shelf.undo(shelf.ada, done["change_id"]).json == {"changed_count": 1}
    assert (shelf.state("a").domain, shelf.state("b").domain) == ("art", None)


def test_undo_counts_what_it_changes(shelf: Shelf) -> None:
    services = shelf.portal.services
    folder_id = folders.create_folder(services, shelf.ada, name="Old")
    shelf.apply(shelf.ada, "move", "a", "b", folder_id=str(folder_id))
    moved = shelf.apply(shelf.ada, "move", "a", "b", folder_id=None)
    tagged = shelf.apply(shelf.ada, "add_tag", "a", "b", tag="tax")
    shelf.apply(shelf.ada, "remove_tag", "a", tag="tax")
    folders.delete_folder(services, shelf.ada, folder_id, trash_documents=False)
    # Both are already where the deleted folder was: outside of folders.
    assert shelf.undo(shelf.ada, moved["change_id"]).json == {"changed_count": 0}
    assert shelf.undo(shelf.ada, tagged["change_id"]).json == {"changed_count": 1}
    again = shelf.apply(shelf.ada, "domain", "a", domain="law")
    shelf.apply(shelf.ada, "domain", "a", domain="art")
    undo = f"/documents/bulk/{again['change_id']}/undo"
    headers = shelf.portal.headers(shelf.ada)
    page = shelf.client.post(undo, headers=headers, follow_redirects=True).text
    assert "Nothing was undone" in page


def test_all_matching_documents_move_in_one_statement(shelf: Shelf) -> None:
    services = shelf.portal.services
    folder_id = folders.create_folder(services, shelf.ada, name="Old")
    hidden = folders.create_folder(services, shelf.eve, name="Hers", visibility=Visibility.PRIVATE)
    with statements(services, "UPDATE documents") as written:
        done = shelf.apply(shelf.ada, "move", matching={}, folder_id=str(folder_id))
    assert len(written) == 1
    assert (done["changed_count"], done["skipped_count"]) == (3, 1)
    inside = {"matching": {"folder_id": str(folder_id), "q": "A"}}
    moved = shelf.apply(shelf.ada, "move", **inside, folder_id=None)
    assert moved["changed_count"] == 1
    assert shelf.undo(shelf.ada, moved["change_id"]).json == {"changed_count": 1}
    assert shelf.state("a").folder_id == folder_id
    for given in (
        {"matching": {}, "folder_id": str(hidden)},
        {"matching": {"folder_id": str(hidden)}, "folder_id": None},
    ):
        answer = shelf.client.post(
            BULK, headers=shelf.portal.headers(shelf.ada), json={"action": "move", **given}
        )
        assert answer.status_code == 404
    # Undoing a move out of a folder that was deleted since moves the document into no folder.
    out = shelf.apply(shelf.ada, "move", "a", folder_id=None)
    folders.delete_folder(services, shelf.ada, folder_id, trash_documents=False)
    shelf.undo(shelf.ada, out["change_id"])
    assert shelf.state("a").folder_id is None
    # The same holds for a folder that the user may no longer see.
    shared = folders.create_folder(services, shelf.eve, name="Ours")
    shelf.apply(shelf.ada, "move", "a", folder_id=str(shared))
    out = shelf.apply(shelf.ada, "move", "a", folder_id=None)
    folders.change_folder(services, shelf.eve, shared, visibility=Visibility.PRIVATE)
    assert shelf.undo(shelf.ada, out["change_id"]).json == {"changed_count": 0}
    assert shelf.state("a").folder_id is None


def test_nothing_selected_changes_nothing(shelf: Shelf) -> None:
    assert shelf.apply(shelf.ada, "delete", ids=[])["changed_count"] == 0
    headers = shelf.portal.headers(shelf.ada)
    for given in ({}, {"ids": [], "matching": {}}):
        answer = shelf.client.post(BULK, headers=headers, json={"action": "delete", **given})
        assert answer.status_code == 422
    assert (
        shelf.client.post("/documents/bulk", headers=headers, data={"action": "delete"}).status_code
        == 422
    )
    assert library.list_documents(shelf.portal.services, shelf.portal.admin).total_count == 5


def test_bulk_switch_affects_one_user_and_can_be_undone(shelf: Shelf) -> None:
    services = shelf.portal.services
    switches.set_switch(services, shelf.ada, None, UUID(shelf.ids["a"]), True)
    done = shelf.apply(shelf.ada, "switch", matching={}, enabled=False)
    assert (done["changed_count"], done["skipped_count"]) == (4, 0)
    assert switches.count_enabled(services, shelf.ada, None) == (0, 4)
    assert switches.count_enabled(services, shelf.eve, None) == (4, 4)
    assert shelf.undo(shelf.ada, done["change_id"]).json == {"changed_count": 4}
    found = switches.find_switches(services, shelf.ada, list(shelf.ids.values()))
    assert sorted((one.title, one.user_default) for one in found.values()) == [
        ("a", True),
        ("b", None),
        ("c", None),
        ("d", None),
    ]
    shelf.apply(shelf.ada, "switch", "a", "b", enabled=None)
    assert switches.count_enabled(services, shelf.ada, None) == (4, 4)


def test_undo_keeps_switches_that_were_set_since(shelf: Shelf) -> None:
    services, a = shelf.portal.services, UUID(shelf.ids["a"])
    switches.set_switch(services, shelf.ada, None, a, False)
    done = shelf.apply(shelf.ada, "switch", "a", enabled=None)
    switches.set_switch(services, shelf.ada, None, a, True)
    assert shelf.undo(shelf.ada, done["change_id"]).json == {"changed_count": 0}
    assert switches.find_switches(services, shelf.ada, [a])[a].user_default is True


def test_restoring_skips_documents_that_were_uploaded_again(shelf: Shelf) -> None:
    shelf.apply(shelf.ada, "delete", "a", "b")
    shelf.portal.add("words of a", title="a again", owner=shelf.ada)
    done = shelf.apply(shelf.ada, "restore", "a", "b")
    assert done["changed_count"] == 1
    assert [(one["title"], one["reason"]) for one in done["skipped"]] == [("a", "uploaded_again")]
    assert shelf.apply(shelf.eve, "restore", "a")["missing_count"] == 1
    # Undoing a deletion skips them, too.
    gone = shelf.apply(shelf.ada, "delete", "b")
    shelf.portal.add("words of b", title="b again", owner=shelf.ada)
    assert shelf.undo(shelf.ada, gone["change_id"]).json == {"changed_count": 0}
    # Of two copies in the trash, only one is restored, whichever are chosen.
    (again,) = (
        document.id
        for document in library.list_documents(shelf.portal.services, shelf.ada).items
        if document.title == "a again"
    )
    for copies in (["a"], [str(again)], ["a", str(again)]):
        shelf.apply(shelf.ada, "delete", "a", str(again))
        assert shelf.apply(shelf.ada, "restore", *copies)["changed_count"] == 1


def test_rereading_uses_one_statement_and_skips_what_is_being_read(shelf: Shelf) -> None:
    services = shelf.portal.services
    first = shelf.apply(shelf.ada, "read_again", "a", "d")
    assert (first["changed_count"], first["skipped_count"]) == (1, 1)
    broken = shelf.portal.add(b"%PDF-1.7 broken", name="broken.pdf", owner=shelf.ada)
    shelf.ids["broken"] = str(broken.id)
    with statements(services, "INTO jobs") as written:
        again = shelf.apply(shelf.ada, "read_again", "a", "b", "c", "broken")
    # Failed documents are checked one by one, because another document may have the file by now.
    assert len(written) == 2
    assert again["changed_count"] == 3
    assert [(one["title"], one["reason"]) for one in again["skipped"]] == [("a", "conflict")]
    query = """
        SELECT d.title, j.turn, -q.priority, q.queue_name FROM jobs j
        JOIN documents d ON d.id = j.document_id
        JOIN procrastinate_jobs q ON q.args ->> 'job_id' = CAST(j.id AS text) AND q.status = 'todo'
        WHERE j.status = 'queued' ORDER BY j.turn
    """
    with services.database.begin() as session:
        queued = [tuple(row) for row in session.execute(text(query))]
    titles = ["a", "b", "c", "broken"]
    assert queued == [(one, turn, turn, "ingest_small") for turn, one in enumerate(titles)]
    eve = shelf.apply(shelf.eve, "read_again", matching={})
    assert (eve["changed_count"], eve["skipped_count"]) == (2, 3)


def test_visibility_of_many_is_in_the_audit_log(shelf: Shelf) -> None:
    done = shelf.apply(shelf.ada, "visibility", "a", "b", visibility="private")
    shelf.undo(shelf.ada, done["change_id"])
    query = """
        SELECT subject_title, details ->> 'before', details ->> 'after' FROM audit_log
        WHERE event = 'visibility_changed' ORDER BY subject_title, created_at
    """
    with shelf.portal.services.database.begin() as session:
        entries = [tuple(row) for row in session.execute(text(query))]
    there, back = ("shared", "private"), ("private", "shared")
    assert entries == [("a", *there), ("a", *back), ("b", *there), ("b", *back)]


def test_audit_log_has_only_what_an_undo_changes(shelf: Shelf) -> None:
    done = shelf.apply(shelf.ada, "visibility", "a", "b", visibility="private")
    shelf.apply(shelf.ada, "visibility", "a", visibility="shared")
    assert shelf.undo(shelf.ada, done["change_id"]).json == {"changed_count": 1}
    query = "SELECT subject_title FROM audit_log WHERE event = 'visibility_changed'"
    with shelf.portal.services.database.begin() as session:
        assert sorted(session.scalars(text(query))) == ["a", "a", "b", "b"]


def test_undone_removal_adds_no_duplicate_and_no_excess_tags(shelf: Shelf) -> None:
    shelf.apply(shelf.ada, "add_tag", "a", "b", tag="Tax")
    done = shelf.apply(shelf.ada, "remove_tag", "a", "b", tag="Tax")
    shelf.apply(shelf.ada, "add_tag", "a", tag="tax")
    many = [str(number) for number in range(MAX_TAGS)]
    shelf.portal.execute("UPDATE documents SET tags = :tags WHERE title = 'b'", tags=many)
    assert shelf.undo(shelf.ada, done["change_id"]).json == {"changed_count": 0}
    assert (shelf.state("a").tags, shelf.state("b").tags) == (["tax"], many)


def test_tag_is_removed_in_any_case_and_restored_as_it_was(shelf: Shelf) -> None:
    shelf.apply(shelf.ada, "add_tag", "a", tag="Tax")
    shelf.apply(shelf.ada, "add_tag", "a", tag="notes")
    shelf.apply(shelf.ada, "add_tag", "b", tag="taxes")
    done = shelf.apply(shelf.ada, "remove_tag", "a", "b", tag="TAX")
    assert done["changed_count"] == 1
    assert (shelf.state("a").tags, shelf.state("b").tags) == (["notes"], ["taxes"])
    assert shelf.undo(shelf.ada, done["change_id"]).json == {"changed_count": 1}
    assert sorted(shelf.state("a").tags) == ["Tax", "notes"]


def test_forms_work_without_scripts(shelf: Shelf) -> None:
    headers = shelf.portal.headers(shelf.ada)
    page = shelf.client.get("/documents?sort=title", headers=headers).text
    assert page.count('form="bulk-form"') == 4
    data = {"document": [shelf.ids["a"], shelf.ids["d"]], "action": "add_tag", "sort": "title"}
    question = shelf.client.post("/documents/bulk/ask", headers=headers, data=data).text
    assert "2 documents are selected." in question
    fields = re.findall(
        r'type="hidden"\s+name="(\w+)"\s+value="([^"]*)"', question.split("bulk-dialog")[1]
    )
    sent = {"action": "add_tag", "value": "2026", "document": []}
    for name, value in fields:
        sent[name] = [*sent["document"], value] if name == "document" else value
    done = shelf.client.post("/documents/bulk", headers=headers, data=sent)
    assert done.headers["Location"] == "/documents?sort=title"
    assert shelf.state("a").tags == ["2026"]
    assert shelf.state("d").tags == []
    off = {"matching": "1", "q": "a", "action": "switch:off"}
    assert shelf.client.post("/documents/bulk", headers=headers, data=off).status_code == 303
    assert switches.count_enabled(shelf.portal.services, shelf.ada, None) == (3, 4)
    for wrong in (
        {"action": "explode"},
        {"action": "switch:x"},
        {"document": "x"},
        {"action": "move"},
    ):
        given = {"document": shelf.ids["a"], "action": "delete"} | wrong
        assert shelf.client.post("/documents/bulk", headers=headers, data=given).status_code == 422


def test_dialog_says_how_many_documents_can_be_changed(shelf: Shelf) -> None:
    def asked(user: User, action: str, *names: str) -> str:
        data = {"document": [shelf.ids[name] for name in names], "action": action}
        headers = shelf.portal.headers(user)
        page = shelf.client.post("/documents/bulk/ask", headers=headers, data=data).text
        return " ".join(page.partition('data-testid="bulk-dialog"')[2].split())

    one = asked(shelf.ada, "delete", "a")
    assert "Delete 1 document?" in one
    assert "1 document is selected. </p>" in one
    assert "You can restore it from the trash." in one
    some = asked(shelf.ada, "delete", "a", "b", "d")
    assert "Delete 2 documents?" in some
    assert "1 of them belongs to another user and will be skipped." in some
    assert "You can restore them from the trash." in some
    for action in ("delete", "add_tag"):
        none = asked(shelf.ada, action, "d")
        assert "It belongs to another user, so you cannot change it." in none
        assert 'type="submit"' not in none
        assert 'name="value"' not in none, "Enter in a field would send the form"
        assert "will be skipped" not in asked(shelf.portal.admin, action, "a", "d")


def test_page_lists_what_was_skipped_and_why(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_store, "MAX_SKIPPED_LISTED", 6)
    headers = shelf.portal.headers(shelf.ada)
    many = [str(number) for number in range(MAX_TAGS)]
    shelf.portal.execute("UPDATE documents SET tags = :tags WHERE title = 'b'", tags=many)
    for number in range(7):
        shelf.portal.add(f"minutes {number}", title=f"minutes {number}", owner=shelf.eve)
    data = {"matching": "1", "sort": "title", "action": "add_tag", "value": "new"}
    answer = shelf.client.post("/documents/bulk", headers=headers, data=data)
    assert answer.status_code == 303
    address = answer.headers["Location"]
    page = shelf.client.get(address, headers=headers)
    assert "9 documents were not changed" in page.text
    assert "2 documents changed." in page.text
    listed = page.text.split("skipped-documents")[1]
    assert listed.count("Belongs to another user.") == 5
    assert listed.count("There is no room for more tags.") == 1
    assert f'<a href="/documents/{shelf.ids["b"]}">b</a>' in listed
    assert "3 more are not listed" in listed
    assert 'href="/documents?sort=title"' in page.text
    (undo,) = re.findall(r'action="(/documents/bulk/[\w-]+/undo)"', page.text)
    back = {"next": "/documents?sort=title"}
    undone = shelf.client.post(undo, headers=headers, data=back)
    assert undone.headers["Location"] == back["next"]
    assert shelf.state("a").tags == []
    # Opened later, the page offers no second undo and names no document that was hidden since.
    library.change_document(
        shelf.portal.services, shelf.eve, UUID(shelf.ids["d"]), visibility=Visibility.PRIVATE
    )
    again = shelf.client.get(address, headers=headers).text
    assert "undo-change" not in again
    assert f"/documents/{shelf.ids['d']}" in listed
    assert f"/documents/{shelf.ids['d']}" not in again
    assert "4 more are not listed" in again


def test_note_says_why_a_document_was_skipped(shelf: Shelf) -> None:
    headers = shelf.portal.headers(shelf.ada) | {"Accept-Language": "zh-CN"}
    shelf.apply(shelf.ada, "delete", "a")
    shelf.portal.add("words of a", title="a again", owner=shelf.ada)
    data = {"document": [shelf.ids["a"]], "action": "restore", "next": "/trash"}
    answer = shelf.client.post("/documents/bulk", headers=headers, data=data)
    assert answer.status_code == 303
    note = shelf.client.get("/trash", headers=headers).text
    assert "1 份无法更改：a。相同的文件已重新上传。" in note


def test_invalid_entry_stays_in_the_form(shelf: Shelf) -> None:
    data = {"document": [shelf.ids["a"]], "action": "remove_tag", "value": "old, notes"}
    answer = shelf.client.post(
        "/documents/bulk", headers=shelf.portal.headers(shelf.ada), data=data
    )
    assert answer.status_code == 422
    assert 'data-testid="form-error"' in answer.text
    assert 'value="old, notes"' in answer.text
    assert f'name="document" value="{shelf.ids["a"]}"' in answer.text


def test_tags_ignore_case_and_are_limited(shelf: Shelf) -> None:
    services = shelf.portal.services
    library.change_document(services, shelf.ada, UUID(shelf.ids["a"]), tags=["Archive"])
    many = [f"tag {number}" for number in range(MAX_TAGS)]
    library.change_document(services, shelf.ada, UUID(shelf.ids["b"]), tags=many)
    done = shelf.apply(shelf.ada, "add_tag", "a", "b", "c", "d", tag="archive")
    assert done["changed_count"] == 1
    assert {(one["title"], one["reason"]) for one in done["skipped"]} == {
        ("b", "invalid"),
        ("d", "forbidden"),
    }
    assert (shelf.state("a").tags, shelf.state("c").tags) == (["Archive"], ["archive"])
    # The field on a document's page would read each of these as two tags.
    headers = shelf.portal.headers(shelf.ada)
    for tag in ("a,b", "甲、乙", "甲，乙"):
        body = {"action": "add_tag", "ids": [shelf.ids["a"]], "tag": tag}
        assert shelf.client.post(BULK, headers=headers, json=body).status_code == 422


def test_filter_that_cannot_be_read_selects_nothing(shelf: Shelf) -> None:
    headers = shelf.portal.headers(shelf.ada)
    for wrong in ({"folder": "x"}, {"status": "x"}, {"type": "x"}, {"owner": "x"}):
        data = {"matching": "1", "action": "delete"} | wrong
        answer = shelf.client.post("/documents/bulk", headers=headers, data=data)
        assert answer.status_code == 422
    assert library.list_documents(shelf.portal.services, shelf.ada).total_count == 4


@pytest.mark.parametrize("moved", ["many", "one", "undone"])
def test_move_into_a_folder_that_is_being_deleted_is_not_found(shelf: Shelf, moved: str) -> None:
    services = shelf.portal.services
    folder_id = folders.create_folder(services, shelf.ada, name="Old")
    shelf.apply(shelf.ada, "move", "a", folder_id=str(folder_id))
    out = shelf.apply(shelf.ada, "move", "a", folder_id=None)
    headers = shelf.portal.headers(shelf.ada)
    answers: list[int] = []

    def move() -> None:
        client = shelf.client.application.test_client()
        if moved == "undone":
            address = f"{BULK}/{out['change_id']}/undo"
            answers.append(client.post(address, headers=headers).status_code)
            return
        into = {"folder_id": str(folder_id)}
        if moved == "many":
            body = {"action": "move", "ids": [shelf.ids["a"]], **into}
            answers.append(client.post(BULK, headers=headers, json=body).status_code)
            return
        address = f"/api/knowledge/documents/{shelf.ids['a']}/folder"
        answers.append(client.put(address, headers=headers, json=into).status_code)

    moving = threading.Thread(target=move)
    with services.database.begin() as session:
        folder_store.lock_below(session, folder_id)
        moving.start()
        wait_until_blocked(services)
        folder_store.remove_folder(session, folder_id, into=None)
    moving.join(30)
    assert answers == [200 if moved == "undone" else 404]
    assert shelf.state("a").folder_id is None


def test_old_changes_are_deleted(shelf: Shelf) -> None:
    done = shelf.apply(shelf.ada, "domain", "a", domain="law")
    report = bulk.add_report(
        shelf.portal.services, shelf.ada, BulkAction.DOMAIN, BulkResult(None, 1)
    )
    for table in ("bulk_changes", "bulk_reports"):
        shelf.portal.execute(f"UPDATE {table} SET created_at = now() - interval '25 hours'")
    bulk.delete_expired(shelf.portal.services)
    with pytest.raises(NotFound):
        bulk.get_report(shelf.portal.services, shelf.ada, report)
    assert shelf.undo(shelf.ada, done["change_id"]).status_code == 404
