"""Folders that only their members see: what members may do, and what others must not learn."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from threading import Thread
from typing import Any
from uuid import UUID

import pytest
from flask.testing import FlaskClient
from sqlalchemy import select, update
from werkzeug.test import TestResponse

from portal.domain.documents import Visibility
from portal.domain.documents.folders import FolderVisibility
from portal.domain.people import User
from portal.errors import Forbidden, NotFound
from portal.services.documents import folders, library
from portal.services.documents.folders import members
from portal.services.documents.intake import disk_space
from portal.services.documents.intake.uploads import UploadTarget, store_upload
from portal.services.people import groups
from portal.store.documents.folders import lock_tree
from portal.store.models import DocumentRow
from tests.conftest import Portal
from tests.factories.blocking import wait_until_blocked

WORD = "zirconium"
TITLE = "Smelter report"


@dataclass
class Team:
    """ann's folder for members only, with her shared document, and ben, who is not a member."""

    portal: Portal
    client: FlaskClient
    ann: User
    ben: User
    folder: str
    document: str

    def call(self, user: User, method: str, path: str, **given: Any) -> TestResponse:
        headers = self.portal.headers(user)
        return self.client.open(path, method=method, headers=headers, **given)

    def add(self, kind: str, name: str, role: str) -> TestResponse:
        body = {"kind": kind, "name": name, "role": role}
        return self.call(self.ann, "PUT", f"/api/folders/{self.folder}/members", json=body)

    def surfaces(self, user: User) -> dict[str, str]:
        """Return what each list and search shows to a user."""
        query = {"query": f"{WORD} smelting"}
        asked = {
            "search": ("POST", "/api/knowledge/search", {"json": query}),
            "search page": ("GET", "/search", {"query_string": {"q": "smelting"}}),
            "misspelt": ("GET", "/search", {"query_string": {"q": "zirconiun"}}),
            "hybrid": ("POST", "/api/v1/search/hybrid", {"json": {"query_text": WORD}}),
            "v1": ("POST", "/v1/search", {"json": {"query": WORD}}),
            "semantic": ("POST", "/api/semantic_search", {"json": {"query": WORD}}),
            "documents": ("GET", "/api/knowledge/documents", {}),
            "page of documents": ("GET", "/documents?more=1", {}),
            "tags": ("GET", "/api/knowledge/tags", {}),
            "folders": ("GET", "/api/folders", {}),
            "defaults": ("GET", "/api/user/document-defaults", {}),
            "folder defaults": ("GET", "/api/user/folder-defaults", {}),
            "notifications": ("GET", "/api/notifications", {}),
            "front door": ("GET", "/", {"query_string": {"suggest": "1"}}),
            "go to": ("GET", "/go", {"query_string": {"find": "smelter"}}),
            "ask about": ("GET", "/chat/about", {"query_string": {"find": "smelter"}}),
        }
        answers = {
            name: self.call(user, method, path, **given)
            for name, (method, path, given) in asked.items()
        }
        assert {answer.status_code for answer in answers.values()} == {200}, answers
        return {name: one.get_data(as_text=True) for name, one in answers.items()}

    def leaks(self, user: User) -> set[str]:
        """Return the surfaces that name the document, its words, its tag or its folder."""
        hidden = {TITLE, "smelting furnace", "zirconium", "ore-tag", self.folder, self.document}
        shown = self.surfaces(user)
        found = set()
        for name, body in shown.items():
            rest = body.replace("zirconium smelting", "").replace('"zirconium"', "")
            found |= {name for one in hidden if one in rest}
        return found


def seen_in(page: TestResponse) -> dict[str, str]:
    """Return the form field that tells which change of access the page has shown."""
    return dict(re.findall(r'name="(seen)" value="([\w-]*)"', page.text))


@pytest.fixture
def team(portal: Portal, client: FlaskClient) -> Team:
    ann, ben = portal.user("ann"), portal.user("ben")
    content = f"The {WORD} goes into the smelting furnace."
    document = portal.add(content, name=f"{TITLE}.txt", owner=ann)
    team = Team(portal, client, ann, ben, "", str(document.id))
    made = team.call(ann, "POST", "/api/folders", json={"name": "Works", "visibility": "members"})
    team.folder = made.json["id"]
    place = {"folder_id": team.folder}
    moved = team.call(ann, "PUT", f"/api/knowledge/documents/{document.id}/folder", json=place)
    assert moved.status_code == 200, moved.text
    tags = {"tags": ["ore-tag"]}
    team.call(ann, "PUT", f"/api/knowledge/documents/{document.id}/tags", json=tags)
    return team


@pytest.mark.parametrize("through", ["user", "group"])
def test_removed_member_finds_nothing_from_the_next_request_on(team: Team, through: str) -> None:
    never = team.portal.user("cleo")
    group = groups.create_group(team.portal.services, team.portal.admin, name="Smelters")
    groups.add_member(team.portal.services, team.portal.admin, group, "ben")
    assert not team.leaks(team.ben)
    name = {"user": "ben", "group": "smelters"}[through]
    assert team.add(through, name, "reader").status_code == 200
    seen = team.leaks(team.ben)
    assert {"search", "search page", "documents", "tags", "folders", "v1", "go to"} <= seen
    chat = team.call(team.ben, "POST", "/api/conversations", json={}).json["id"]
    question = {"content": "What goes into smelting here?"}
    asked = team.call(team.ben, "POST", f"/api/conversations/{chat}/messages", json=question)
    assert [one["document_id"] for one in asked.json["citations"]] == [team.document]
    member = team.ben.id if through == "user" else group
    removed = team.call(team.ann, "DELETE", f"/api/folders/{team.folder}/members/{member}")
    assert removed.status_code == 204
    assert not team.leaks(team.ben)
    assert not team.leaks(never)
    # The answer stays; its source looks purged, and later answers do not read it.
    kept = team.call(team.ben, "GET", f"/api/conversations/{chat}")
    (citation,) = kept.json["messages"][1]["citations"]
    assert (citation["excerpt"], citation["document_id"], citation["url"]) == ("", None, None)
    asked = team.call(team.ben, "POST", f"/api/conversations/{chat}/messages", json=question)
    assert asked.json["citations"] == []


def test_scores_do_not_depend_on_what_only_members_see(team: Team) -> None:
    """Words are weighted by the documents that all users may see."""
    own = team.portal.add(f"A note about {WORD}.", name="note.txt", owner=team.ben)
    query = {"json": {"query": WORD}}

    def found() -> Any:
        hits = team.call(team.ben, "POST", "/api/knowledge/search", **query).json["results"]
        return [(hit["document_id"], hit["score"], hit.get("text_score")) for hit in hits]

    before = found()
    assert [one[0] for one in before] == [str(own.id)]
    for number in range(8):
        # It was never open to all, so the index of shared chunks never had it.
        more = team.portal.add(
            f"{WORD} batch {number}",
            name=f"{number}.txt",
            owner=team.ann,
            visibility=Visibility.PRIVATE,
        )
        services, shared = team.portal.services, Visibility.SHARED
        folders.move_document(services, team.ann, more.id, UUID(team.folder))
        library.change_document(services, team.ann, more.id, visibility=shared)
    assert found() == before


def test_roles_decide_who_adds_changes_and_shares(team: Team) -> None:
    place, tags = {"folder_id": team.folder}, {"tags": ["seen"]}
    note = team.portal.add("A note.", name="note.txt", owner=team.ben)

    def statuses() -> list[int]:
        calls = [
            ("PUT", f"/api/knowledge/documents/{note.id}/folder", place),
            ("PUT", f"/api/knowledge/documents/{team.document}/tags", tags),
            ("PATCH", f"/api/folders/{team.folder}", {"description": "more"}),
            (
                *("PUT", f"/api/folders/{team.folder}/members"),
                {"kind": "user", "name": "admin", "role": "reader"},
            ),
        ]
        return [team.call(team.ben, *call[:2], json=call[2]).status_code for call in calls]

    assert statuses() == [404, 404, 404, 404]
    for role, expected in (
        ("reader", [403, 403, 403, 403]),
        ("contributor", [200, 403, 403, 403]),
        ("keeper", [200, 200, 200, 200]),
    ):
        assert team.add("user", "ben", role).status_code == 200
        assert statuses() == expected, role


def test_page_of_a_folder_offers_uploading_to_those_who_may_add(team: Team) -> None:
    for role, offers in (("reader", False), ("contributor", True)):
        team.add("user", "ben", role)
        page = team.call(team.ben, "GET", "/documents", query_string={"folder": team.folder})
        assert TITLE in page.text
        assert ('data-testid="upload-into"' in page.text) is offers, role
        assert (f"/folders/new?parent={team.folder}" in page.text) is offers, role


def test_only_folders_that_a_user_may_add_to_are_offered(team: Team) -> None:
    note = team.portal.add("A quince note.", name="note.txt", owner=team.ben)
    option = f'<option value="{team.folder}"'
    top = folders.create_folder(team.portal.services, team.ann, name="Top")
    for role, offers in (("reader", False), ("contributor", True)):
        team.add("user", "ben", role)
        for method, path, form in (
            ("GET", f"/documents/{note.id}", {}),
            ("GET", "/documents", {}),
            ("GET", "/folders/new", {}),
            ("POST", "/documents/bulk/ask", {"action": "move", "document": str(note.id)}),
        ):
            page = team.call(team.ben, method, path, data=form).text
            assert (option in page) is offers, (role, path)
            assert f'<option value="{top}"' in page
        listed = team.call(team.ben, "GET", "/api/folders").json["folders"]
        assert team.folder in {one["id"] for one in listed}
    # A document whose owner may no longer add to its folder stays there unless it is moved.
    place = {"folder_id": team.folder}
    team.call(team.ben, "PUT", f"/api/knowledge/documents/{note.id}/folder", json=place)
    team.add("user", "ben", "reader")
    assert f"{option} selected" in team.call(team.ben, "GET", f"/documents/{note.id}").text


def test_upload_form_says_who_sees_the_documents_of_its_folder(team: Team) -> None:
    team.add("user", "ben", "contributor")
    for folder, words in ((None, "Everyone"), (team.folder, "Members of the folder")):
        page = team.call(team.ben, "GET", "/documents", query_string={"folder": folder or ""})
        assert f">{words}</option>" in page.text


def test_owner_sees_their_document_in_a_folder_that_excludes_them(team: Team) -> None:
    note = team.portal.add("A quince note.", name="note.txt", owner=team.ben)
    team.add("user", "ben", "contributor")
    team.call(
        *(team.ben, "PUT", f"/api/knowledge/documents/{note.id}/folder"),
        json={"folder_id": team.folder},
    )
    team.call(team.ann, "DELETE", f"/api/folders/{team.folder}/members/{team.ben.id}")
    seen = team.call(team.ben, "GET", f"/api/knowledge/documents/{note.id}")
    assert seen.status_code == 200
    assert team.folder not in seen.text
    ask = {"document_ids": [str(note.id)], "folder_id": None}
    told = team.call(team.ben, "POST", "/api/folders/sight", json=ask).json
    assert (told["opens"], told["gains"], told["loses"]) == (True, [], [])
    made = team.call(team.ben, "POST", "/api/folders", json={"name": "B", "visibility": "members"})
    ask["folder_id"] = made.json["id"]
    told = team.call(team.ben, "POST", "/api/folders/sight", json=ask).json
    assert told["loses"] == [], "the members of a folder that ben does not see"


def test_deleting_a_folder_keeps_a_hidden_folder_below(team: Team) -> None:
    """Deleting a folder above does not open another user's folder for members."""
    outer = team.call(team.ben, "POST", "/api/folders", json={"name": "Outer"}).json["id"]
    parent = {"parent_id": outer}
    moved = team.call(team.ann, "PUT", f"/api/folders/{team.folder}/parent", json=parent)
    assert moved.status_code == 200
    gone = team.call(team.ben, "DELETE", f"/api/folders/{outer}?documents=keep")
    assert gone.status_code == 200
    assert team.call(team.ann, "GET", f"/api/folders/{team.folder}").status_code == 200
    assert (
        team.call(team.ben, "GET", f"/api/knowledge/documents/{team.document}").status_code == 404
    )


def test_move_names_who_gains_and_loses_access(team: Team) -> None:
    team.add("user", "ben", "reader")
    ask = {"document_ids": [team.document], "folder_id": None}
    told = team.call(team.ann, "POST", "/api/folders/sight", json=ask).json
    names: dict[str, list[str]] = {"gains": [], "loses": [], "keeps": []}
    assert told == {"document_count": 1, "opens": True, "closes": False} | names
    second = team.call(
        team.ann, "POST", "/api/folders", json={"name": "Second", "visibility": "members"}
    ).json["id"]
    ask["folder_id"] = second
    told = team.call(team.ann, "POST", "/api/folders/sight", json=ask).json
    assert (told["gains"], told["loses"]) == ([], ["ben"])
    form = {"action": "move", "document": team.document, "value": second}
    asked = team.call(team.ann, "POST", "/documents/bulk", data=form)
    assert asked.status_code == 200
    assert 'data-testid="access-change"' in asked.text
    assert "ben" in asked.text
    # The dialog shows it as soon as the folder is chosen, and the move is not asked about again.
    told = team.call(team.ann, "POST", "/documents/bulk/ask", data=form)
    assert "Lose access: ben" in told.text
    done = team.call(team.ann, "POST", "/documents/bulk", data=form | seen_in(told))
    assert done.status_code == 303
    gone = team.call(team.ben, "GET", f"/api/knowledge/documents/{team.document}")
    assert gone.status_code == 404


def test_preview_of_a_move_counts_users_not_names(team: Team) -> None:
    """A user who passes both gates, by name or through a group, gains and loses nothing."""
    services, admin = team.portal.services, team.portal.admin
    team.portal.user("cleo")
    group = groups.create_group(services, admin, name="Smelters")
    for name in ("ben", "cleo", admin.name):
        groups.add_member(services, admin, group, name)
    for name in ("ben", admin.name):
        team.add("user", name, "reader")
    second = team.call(
        team.ann, "POST", "/api/folders", json={"name": "Second", "visibility": "members"}
    ).json["id"]
    member = {"kind": "group", "name": "smelters", "role": "reader"}
    team.call(team.ann, "PUT", f"/api/folders/{second}/members", json=member)

    def told(folder: str, *documents: str) -> tuple[list[str], ...]:
        ask = {"document_ids": documents, "folder_id": folder}
        body = team.call(team.ann, "POST", "/api/folders/sight", json=ask).json
        return body["gains"], body["loses"], body["keeps"]

    assert told(second, team.document) == (["Smelters"], [], [])
    place = {"folder_id": second}
    team.call(team.ann, "PUT", f"/api/knowledge/documents/{team.document}/folder", json=place)
    assert told(team.folder, team.document) == ([], ["Smelters"], [])
    # Members of the folder keep access to a document that all users see.
    loose = str(team.portal.add("A loose note.", name="loose.txt", owner=team.ann).id)
    assert told(team.folder, loose) == ([], [], ["ann", "ben"])
    page = team.call(
        team.ann, "GET", f"/documents/{loose}/move", query_string={"folder_id": team.folder}
    )
    assert "Keep access: ann, ben" in page.text


def test_pages_ask_before_a_move_that_changes_access(team: Team) -> None:
    team.add("user", "ben", "reader")
    form = {"title": TITLE, "folder_id": ""}
    edit = f"/documents/{team.document}/edit"
    asked = team.call(team.ann, "POST", edit, data=form)
    assert asked.status_code == 200
    assert 'data-testid="access-change"' in asked.text
    assert f'name="next" value="/documents/{team.document}"' in asked.text
    kept = team.call(team.ann, "GET", f"/api/knowledge/documents/{team.document}").json
    assert kept["folder_id"] == team.folder
    # The form shows it as soon as the folder is chosen, and the move is not asked about again.
    preview = f"/documents/{team.document}/move?folder_id="
    told = team.call(team.ann, "GET", preview)
    assert 'data-testid="access-change"' in told.text
    assert "access-change" not in team.call(team.ann, "GET", preview + team.folder).text
    # If a member was added meanwhile, the page asks again.
    into = team.call(team.ann, "POST", "/api/folders", json={"name": "In", "visibility": "members"})
    inside = form | {"folder_id": into.json["id"]}
    before = team.call(team.ann, "GET", preview + into.json["id"])
    team.portal.user("dora")
    team.add("user", "dora", "reader")
    asked = team.call(team.ann, "POST", edit, data=inside | seen_in(before))
    assert "Lose access: ben, dora" in asked.text
    outside = team.call(team.ann, "POST", edit, data=form | seen_in(told))
    assert outside.status_code == 303
    back = form | {"folder_id": team.folder}
    told = team.call(team.ann, "GET", preview + team.folder)
    assert team.call(team.ann, "POST", edit, data=back | seen_in(told)).status_code == 303
    # Moving a folder without members of its own to the top shows its documents to others.
    inner = {"name": "Inner", "parent_id": team.folder}
    inner_id = team.call(team.ann, "POST", "/api/folders", json=inner).json["id"]
    team.call(team.ann, "POST", edit, data={"title": TITLE, "folder_id": inner_id})
    edit = f"/folders/{inner_id}/edit"
    form = {"name": "Inner", "parent_id": "", "visibility": "shared"}
    asked = team.call(team.ann, "POST", edit, data=form)
    assert asked.status_code == 200
    assert 'data-testid="access-change"' in asked.text
    outsider = team.portal.user("cleo")
    gone = team.call(outsider, "GET", f"/api/knowledge/documents/{team.document}")
    assert gone.status_code == 404
    assert team.call(team.ann, "POST", edit, data=form | seen_in(asked)).status_code == 303
    seen = team.call(outsider, "GET", f"/api/knowledge/documents/{team.document}")
    assert seen.status_code == 200


def test_closing_and_opening_a_folder_names_who_loses_and_gains_access(team: Team) -> None:
    cleo = team.portal.user("cleo")
    team.add("user", "ben", "reader")
    members = f"/folders/{team.folder}/members"
    page = team.call(team.ann, "GET", members).text
    assert "everyone who can see the folder above can see it" in page
    assert "cleo" not in page, "users do not learn who has an account"
    preview = f"/api/folders/{team.folder}/sight"
    told = team.call(team.ann, "GET", f"{preview}?change=access").json
    assert (told["opens"], told["closes"], told["gains"]) == (True, False, [])
    assert team.call(team.ben, "GET", f"{preview}?change=access").status_code == 403
    assert team.call(cleo, "GET", f"{preview}?change=access").status_code == 404
    assert team.call(team.ann, "GET", f"{preview}?change=delete").json["opens"]
    assert not team.call(team.ann, "GET", f"{preview}?change=move").json["gains"]
    team.call(team.ann, "POST", f"/folders/{team.folder}/access", data={"visibility": "shared"})
    page = team.call(team.ann, "GET", members).text
    assert "Keep access: ann, ben" in page
    told = team.call(team.ann, "GET", f"{preview}?change=access").json
    assert (told["opens"], told["closes"], told["loses"]) == (False, True, [])
    assert "Gain access" not in page
    assert "Lose access" not in team.call(cleo, "GET", members).text


def test_keeper_removed_from_the_parent_does_not_learn_its_members(team: Team) -> None:
    team.portal.user("cleo")
    team.add("user", "ben", "keeper")
    inner = {"name": "Inner", "parent_id": team.folder, "visibility": "members"}
    below = team.call(team.ben, "POST", "/api/folders", json=inner).json["id"]
    preview = f"/api/folders/{below}/sight?change=access"
    assert team.call(team.ben, "GET", preview).json["gains"] == ["ann"]
    team.call(team.ann, "DELETE", f"/api/folders/{team.folder}/members/{team.ben.id}")
    team.add("user", "cleo", "reader")
    assert team.call(team.ben, "GET", preview).json["gains"] == []


def test_keeper_does_not_learn_which_files_a_member_has_elsewhere(team: Team) -> None:
    team.add("user", "ben", "keeper")
    draft = b"A letter of resignation."
    private = {"title": "Resignation", "visibility": Visibility.PRIVATE}
    team.portal.add(draft.decode(), owner=team.ann, **private)
    path = f"/api/knowledge/documents/{team.document}/revisions"
    for user, status in ((team.ann, 409), (team.ben, 202)):
        file = {"file": (io.BytesIO(draft), "again.txt")}
        answer = team.call(user, "POST", path, data=file)
        assert answer.status_code == status, answer.text
        assert ("Resignation" in answer.text) is (status == 409)


def test_preview_reports_that_a_private_folder_hides_no_documents(team: Team) -> None:
    """Making a folder for members private opens it: documents keep their own visibility."""
    cleo = team.portal.user("cleo")
    folder, document = f"/api/folders/{team.folder}", f"/api/knowledge/documents/{team.document}"
    told = team.call(team.ann, "GET", f"{folder}/sight?change=access").json
    assert (told["opens"], told["document_count"]) == (True, 1)
    assert team.call(cleo, "GET", document).status_code == 404
    assert team.call(team.ann, "PATCH", folder, json={"visibility": "private"}).status_code == 200
    assert team.call(cleo, "GET", folder).status_code == 404
    assert team.call(cleo, "GET", document).status_code == 200


def test_deleting_a_closed_folder_names_who_gains_access(team: Team) -> None:
    page = team.call(team.ann, "GET", f"/folders/{team.folder}/delete").text
    assert 'data-testid="access-change"' in page
    assert "All users gain access." in page
    outer = team.call(
        team.ann, "POST", "/api/folders", json={"name": "Outer", "visibility": "members"}
    ).json["id"]
    ben = {"kind": "user", "name": "ben", "role": "reader"}
    team.call(team.ann, "PUT", f"/api/folders/{outer}/members", json=ben)
    parent = {"parent_id": outer}
    team.call(team.ann, "PUT", f"/api/folders/{team.folder}/parent", json=parent)
    page = team.call(team.ann, "GET", f"/folders/{team.folder}/delete").text
    assert "Gain access: ben" in page
    preview = f"/api/folders/{team.folder}/sight?change=delete"
    assert team.call(team.ann, "GET", preview).json["gains"] == ["ben"]


def test_document_moved_in_while_the_folder_closes_is_behind_its_gate(team: Team) -> None:
    """Whichever commits first, the document ends up behind the gate of its folder."""
    database = team.portal.services.database
    plain = UUID(team.call(team.ann, "POST", "/api/folders", json={"name": "Plain"}).json["id"])
    loose = team.portal.add("A loose sheet.", owner=team.ann)
    closing = Thread(
        target=folders.change_folder,
        args=(team.portal.services, team.ann, plain),
        kwargs={"visibility": FolderVisibility.MEMBERS},
    )
    with database.begin() as session:
        session.execute(
            update(DocumentRow).where(DocumentRow.id == loose.id).values(folder_id=plain)
        )
        closing.start()
        closing.join(0.5)  # It waits for the move, or has finished before it.
    closing.join()
    with database.begin() as session:
        gate = session.scalar(select(DocumentRow.gate_id).where(DocumentRow.id == loose.id))
    assert gate == plain
    gone = team.call(team.ben, "GET", f"/api/knowledge/documents/{loose.id}")
    assert gone.status_code == 404


def test_former_administrator_does_not_hide_a_document_by_undoing(team: Team) -> None:
    team.add("user", "ben", "keeper")
    team.portal.execute("UPDATE documents SET visibility = 'private'")
    team.portal.execute("UPDATE users SET is_admin = true WHERE name = 'ben'")
    change = {"action": "visibility", "ids": [team.document], "visibility": "shared"}
    done = team.call(team.ben, "POST", "/api/knowledge/bulk", json=change).json
    assert done["changed_count"] == 1
    team.portal.execute("UPDATE users SET is_admin = false WHERE name = 'ben'")
    undo = f"/api/knowledge/bulk/{done['change_id']}/undo"
    assert team.call(team.ben, "POST", undo).json == {"changed_count": 0}


def test_keeper_can_undo_a_move_out_of_the_folder(team: Team) -> None:
    team.add("user", "ben", "keeper")
    move = {"action": "move", "ids": [team.document], "folder_id": None}
    done = team.call(team.ben, "POST", "/api/knowledge/bulk", json=move).json
    assert (done["changed_count"], done["skipped_count"]) == (1, 0)
    undo = f"/api/knowledge/bulk/{done['change_id']}/undo"
    assert team.call(team.ben, "POST", undo).status_code == 200
    stranger = team.portal.user("cleo")
    gone = team.call(stranger, "GET", f"/api/knowledge/documents/{team.document}")
    assert gone.status_code == 404


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ("DELETE FROM folders", NotFound),
        ("DELETE FROM folder_members", NotFound),
        ("UPDATE folder_members SET role = 'reader'", Forbidden),
    ],
)
def test_upload_whose_folder_changes_meanwhile_is_not_open_to_all(
    team: Team, monkeypatch: pytest.MonkeyPatch, change: str, refusal: type[Exception]
) -> None:
    team.add("user", "ben", "contributor")
    room_for = disk_space.room_for

    def change_meanwhile(*given: Any) -> Any:
        team.portal.execute(change)
        return room_for(*given)

    monkeypatch.setattr(disk_space, "room_for", change_meanwhile)
    file, target = io.BytesIO(f"More {WORD}.".encode()), UploadTarget(UUID(team.folder))
    with pytest.raises(refusal):
        store_upload(team.portal.services, team.ben, stream=file, file_name="b.txt", target=target)
    assert library.list_documents(team.portal.services, team.portal.admin).total_count == 1


def test_one_of_two_keepers_who_remove_each_other_stays(team: Team) -> None:
    services, folder = team.portal.services, UUID(team.folder)
    cleo = team.portal.user("cleo")
    for keeper in (team.ben, cleo):
        team.add("user", keeper.name, "keeper")
    refused: list[User] = []

    def remove(user: User, other: User) -> None:
        try:
            members.remove_member(services, user, folder, other.id)
        except NotFound:
            refused.append(user)

    pairs = ((team.ben, cleo), (cleo, team.ben))
    threads = [Thread(target=remove, args=pair) for pair in pairs]
    with services.database.begin() as session:
        lock_tree(session)
        for thread in threads:
            thread.start()
        wait_until_blocked(services, count=2)
    for thread in threads:
        thread.join(30)
    assert len(refused) == 1
    left = members.list_members(services, team.ann, folder)
    assert [member.name for member in left] != [refused[0].name]
    assert len(left) == 1


def test_administrators_manage_groups_over_the_api(team: Team) -> None:
    admin = team.portal.admin
    blank = team.call(admin, "POST", "/api/groups", json={"name": " "})
    assert blank.status_code == 422
    assert "pattern" not in blank.text
    made = team.call(admin, "POST", "/api/groups", json={"name": "Law", "description": "of it"})
    assert made.status_code == 201
    group = UUID(made.json["id"])
    assert team.call(admin, "POST", "/api/groups", json={"name": "LAW"}).status_code == 409
    added = team.call(admin, "PUT", f"/api/groups/{group}/members", json={"name": "ben"})
    assert [member["name"] for member in added.json["members"]] == ["ben"]
    assert team.add("group", "law", "reader").status_code == 200
    assert not {"documents", "folders"} - team.leaks(team.ben)
    assert team.call(admin, "DELETE", f"/api/groups/{group}").status_code == 204
    assert not team.leaks(team.ben)


def test_facets_of_a_reader_include_folders_they_may_not_add_to(team: Team) -> None:
    assert team.add("user", "ben", "reader").status_code < 300
    # One facet with a single choice is not shown.
    below = {"name": "Below", "parent_id": team.folder}
    deeper = team.call(team.ann, "POST", "/api/folders", json=below).json["id"]
    note = team.portal.add(f"More {WORD}.", name="note.txt", owner=team.ann)
    folders.move_document(team.portal.services, team.ann, note.id, UUID(deeper))
    page = team.call(team.ben, "GET", f"/search?q={WORD}").text
    assert f'<option value="{team.folder}"' in page
    assert "Below (1)" in page


@pytest.mark.parametrize("documents", ["trash", "keep"])
def test_document_in_the_trash_is_not_opened_by_deleting_its_folder(
    team: Team, documents: str
) -> None:
    path = f"/api/knowledge/documents/{team.document}"
    if documents == "keep":
        assert team.call(team.ann, "DELETE", path).status_code == 204
    deleted = team.call(team.ann, "DELETE", f"/api/folders/{team.folder}?documents={documents}")
    assert deleted.status_code == 200
    restored = team.call(team.ann, "POST", f"{path}/restore").json
    assert (restored["visibility"], restored["folder"]) == ("private", None)
    assert team.call(team.ben, "GET", path).status_code == 404
    assert access_changes(team)["document"] == ("shared", "private")


def access_changes(team: Team) -> dict[str, tuple[str, str]]:
    """Return the latest visibility (before, after) by kind of subject, from the audit log."""
    entries = team.call(team.portal.admin, "GET", "/api/admin/audit").json["entries"]
    return {
        one["subject"]["kind"]: (one["details"]["before"], one["details"]["after"])
        for one in reversed(entries)
        if one["event"] == "visibility_changed"
    }


def test_documents_leaving_a_members_folder_are_in_the_audit_log(team: Team) -> None:
    path = f"/api/knowledge/documents/{team.document}/folder"
    assert team.call(team.ann, "PUT", path, json={"folder_id": None}).status_code == 200
    assert access_changes(team)["document"] == ("members", "shared")
    move = {"action": "move", "ids": [team.document], "folder_id": team.folder}
    assert team.call(team.ann, "POST", "/api/knowledge/bulk", json=move).status_code == 200
    assert access_changes(team)["folder"] == ("shared", "members")
    team.call(team.ann, "DELETE", f"/api/folders/{team.folder}?documents=keep")
    assert access_changes(team)["folder"] == ("members", "shared")


def test_undone_moves_and_deleted_parent_folders_are_in_the_audit_log(team: Team) -> None:
    above = team.call(team.ann, "POST", "/api/folders", json={"name": "Above"}).json["id"]
    move = {"action": "move", "ids": [team.document], "folder_id": above}
    done = team.call(team.ann, "POST", "/api/knowledge/bulk", json=move).json
    assert access_changes(team)["folder"] == ("members", "shared")
    team.call(team.ann, "POST", f"/api/knowledge/bulk/{done['change_id']}/undo")
    assert access_changes(team)["folder"] == ("shared", "members")
    team.call(team.ann, "PUT", f"/api/folders/{team.folder}/parent", json={"parent_id": above})
    team.call(team.ann, "DELETE", f"/api/folders/{above}?documents=keep")
    assert access_changes(team)["folder"] == ("members", "shared")


def test_members_of_an_opened_folder_are_shown_to_those_who_share_it(team: Team) -> None:
    team.add("user", "ben", "reader")
    cleo, path = team.portal.user("cleo"), f"/api/folders/{team.folder}"
    team.call(team.ann, "PATCH", path, json={"visibility": "shared"})
    assert team.call(cleo, "GET", f"{path}/members").json["members"] == []
    assert len(team.call(team.ann, "GET", f"{path}/members").json["members"]) == 1
