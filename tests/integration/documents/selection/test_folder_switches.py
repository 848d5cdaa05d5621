"""Folder switches: the nearest one decides, moved documents follow, each user has their own."""

from __future__ import annotations

import re
from typing import Any
from uuid import UUID, uuid4

import pytest
from flask.testing import FlaskClient
from sqlalchemy import text

from portal.domain.documents import Visibility
from portal.services.answers import conversations
from portal.services.documents import folders
from tests.conftest import Portal
from tests.factories.caller import Caller

MINE = "/api/user/folder-defaults"


class Desk(Caller):
    """A user's calls."""

    def switch(self, path: str, enabled: bool | None) -> Any:
        if enabled is None:
            answer = self.call("DELETE", path)
            assert answer.status_code == 204, answer.json
            return None
        answer = self.call("PUT", path, json={"enabled": enabled})
        assert answer.status_code == 200, answer.json
        return answer.json

    def found(self, **more: Any) -> set[str]:
        asked = {"query": "maple", "mode": "keyword", **more}
        answer = self.call("POST", "/api/knowledge/search", json=asked)
        return {result["title"] for result in answer.json["results"]}

    def folder(self, name: str, parent: UUID | None = None, **more: Any) -> UUID:
        services = self.portal.services
        return folders.create_folder(services, self.user, name=name, parent_id=parent, **more)

    def move(self, document: Any, folder: UUID | None) -> None:
        folders.move_document(self.portal.services, self.user, document.id, folder)


@pytest.fixture
def ada(portal: Portal, client: FlaskClient) -> Desk:
    return Desk(portal, client, portal.user("ada"))


@pytest.fixture
def eve(portal: Portal, client: FlaskClient) -> Desk:
    return Desk(portal, client, portal.user("eve"))


def test_each_tier_wins_over_the_next(ada: Desk, portal: Portal) -> None:
    archive = ada.folder("Archive")
    old = ada.folder("Old", archive)
    document = portal.add("maple", title="One", owner=ada.user)
    ada.move(document, old)
    talk = str(conversations.create(portal.services, ada.user).id)
    here = {"conversation_id": talk}
    overrides = f"/api/conversations/{talk}"
    ada.switch(f"{MINE}/{archive}", False)
    assert ada.found() == ada.found(**here) == set()
    ada.switch(f"{MINE}/{old}", True)
    assert ada.found() == {"One"}, "the nearest folder wins"
    ada.switch(f"/api/user/document-defaults/{document.id}", False)
    assert ada.found() == ada.found(**here) == set(), "the document wins over its folder"
    ada.switch(f"{overrides}/folder-overrides/{archive}", True)
    assert (ada.found(), ada.found(**here)) == (set(), {"One"}), "the conversation wins"
    ada.switch(f"{overrides}/folder-overrides/{old}", False)
    assert ada.found(**here) == set()
    ada.switch(f"{overrides}/document-overrides/{document.id}", True)
    assert ada.found(**here) == {"One"}
    for path in (
        f"{overrides}/document-overrides/{document.id}",
        f"{overrides}/folder-overrides/{old}",
        f"{overrides}/folder-overrides/{archive}",
        f"/api/user/document-defaults/{document.id}",
        f"{MINE}/{old}",
    ):
        ada.switch(path, None)
    assert ada.found(**here) == set()
    ada.switch(f"{MINE}/{archive}", None)
    assert ada.found() == ada.found(**here) == {"One"}


def test_moved_document_follows_the_switch_of_its_new_folder(
    ada: Desk, eve: Desk, portal: Portal
) -> None:
    archive, work = ada.folder("Archive"), ada.folder("Work")
    ada.switch(f"{MINE}/{archive}", False)
    below = ada.folder("Made later", archive)
    document = portal.add("maple", title="One", owner=ada.user)
    assert ada.found() == {"One"}
    for place, expected in ((archive, set()), (work, {"One"}), (below, set())):
        ada.move(document, place)
        assert ada.found() == expected
        assert eve.found() == {"One"}, "a switch is its user's own"
    folders.move_folder(portal.services, ada.user, below, work)
    assert ada.found() == {"One"}
    folders.move_folder(portal.services, ada.user, work, archive)
    assert ada.found() == set()
    folders.delete_folder(portal.services, ada.user, archive, trash_documents=False)
    assert ada.found() == {"One"}
    with portal.services.database.begin() as session:
        for table in ("folder_switches", "folder_states"):
            assert session.execute(text(f"SELECT count(*) FROM {table}")).scalar() == 0


def test_document_lists_name_the_tier_of_each_switch(ada: Desk, portal: Portal) -> None:
    archive = ada.folder("Archive")
    document = portal.add("maple", title="One", owner=ada.user)
    ada.move(document, archive)
    ada.switch(f"{MINE}/{archive}", False)
    body = ada.call("GET", "/api/user/document-defaults").json
    assert body["documents"] == [
        {
            "document_id": str(document.id),
            "title": "One",
            "enabled": False,
            "source": "user",
            "user_default": None,
        }
    ]
    assert (body["enabled_count"], body["total_count"]) == (0, 1)
    asked = {"query": "maple", "document_id": str(document.id)}
    why = ada.call("GET", "/api/knowledge/search/why", query_string=asked).json
    assert why["reason"] == "off_by_default"


def test_lists_of_folders_say_which_switch_decides(ada: Desk, portal: Portal) -> None:
    archive = ada.folder("Archive")
    old = ada.folder("Old", archive)
    talk = str(conversations.create(portal.services, ada.user).id)
    path = f"/api/conversations/{talk}/folder-overrides"
    ada.switch(f"{MINE}/{archive}", False)
    (top,) = ada.call("GET", MINE).json["folders"]
    assert (top["name"], top["enabled"], top["source"]) == ("Archive", False, "user")
    assert (top["user_default"], top["decided_by"], top["has_folders"]) == (False, None, True)
    (inner,) = ada.call("GET", MINE, query_string={"parent_id": str(archive)}).json["folders"]
    assert (inner["name"], inner["enabled"], inner["user_default"]) == ("Old", False, None)
    assert inner["decided_by"] == {"folder_id": str(archive), "name": "Archive"}
    answer = ada.switch(f"{path}/{old}", True)
    assert (answer["override"], answer["source"], answer["enabled"]) == (True, "conversation", True)
    (named,) = ada.call("GET", path, query_string={"q": "old"}).json["folders"]
    assert named == answer


def test_hidden_folders_have_no_switch(ada: Desk, eve: Desk, portal: Portal) -> None:
    shared = ada.folder("Plans")
    secret = ada.folder("Severance", visibility=Visibility.PRIVATE)
    document = portal.add("maple", title="One", owner=ada.user)
    ada.move(document, shared)
    eve.switch(f"{MINE}/{shared}", False)
    assert eve.found() == set()
    talk = str(conversations.create(portal.services, eve.user).id)
    for folder in (secret, uuid4()):
        for method in ("PUT", "DELETE"):
            for base in (MINE, f"/api/conversations/{talk}/folder-overrides"):
                answer = eve.call(method, f"{base}/{folder}", json={"enabled": False})
                assert answer.status_code == 404
        assert eve.call("GET", MINE, query_string={"parent_id": str(folder)}).status_code == 404
    assert ada.call("GET", f"/api/conversations/{talk}/folder-overrides").status_code == 404
    listed = eve.call("GET", MINE, query_string={"q": "e"}).json["folders"]
    assert "Severance" not in str(listed)
    # Otherwise Eve could not switch it on again.
    folders.change_folder(portal.services, ada.user, shared, visibility=Visibility.PRIVATE)
    assert eve.found() == {"One"}


def test_resetting_all_switches_includes_folders(ada: Desk, portal: Portal) -> None:
    archive = ada.folder("Archive")
    ada.move(portal.add("maple", title="One", owner=ada.user), archive)
    talk = str(conversations.create(portal.services, ada.user).id)
    ada.switch(f"/api/conversations/{talk}/folder-overrides/{archive}", False)
    assert ada.found(conversation_id=talk) == set()
    path = f"/api/conversations/{talk}/document-overrides"
    assert ada.call("PUT", path, json={"enabled": None}).status_code == 204
    assert ada.found(conversation_id=talk) == {"One"}


def test_panel_shows_folders_first_and_counts_what_can_be_read(ada: Desk, portal: Portal) -> None:
    archive = ada.folder("Archive")
    inner = ada.folder("Old", archive)
    filed = portal.add("maple", title="Filed", owner=ada.user)
    portal.add("maple two", title="Loose", owner=ada.user)
    portal.add(b"%PDF-1.4 nothing", name="broken.pdf", owner=ada.user)
    ada.move(filed, archive)
    talk = str(conversations.create(portal.services, ada.user).id)
    panel = f"/chat/{talk}/documents"
    page = ada.call("GET", panel).text
    assert page.index("Archive") < page.index("Loose")
    assert "Using 2 of 2 documents" in page
    assert "folder-off" not in page
    assert "Filed" not in page
    assert "broken" not in page
    inside = ada.call("GET", panel, query_string={"folder": str(archive)}).text
    assert inside.index("Old") < inside.index("Filed")
    assert "Loose" not in inside
    found = ada.call("GET", panel, query_string={"q": "fil"}).text
    assert "Filed" in found
    assert "switch-inherit" not in found
    # Without scripts, a form is sent and the page is loaded again.
    answer = ada.call("POST", f"/chat/{talk}/folders/{archive}", data={"state": "off"})
    assert answer.status_code == 303
    inside = ada.call("GET", panel, query_string={"folder": str(archive)}).text
    assert "Using 1 of 2 documents" in inside
    assert inside.count("Off: folder “Archive”, in this conversation") == 2
    assert "switch-inherit" in ada.call("GET", panel).text
    assert ada.call("GET", panel, query_string={"folder": str(uuid4())}).status_code == 404
    ada.call("POST", f"/chat/{talk}/folders/{inner}", data={"state": "on"})
    ada.call("POST", f"/chat/{talk}/folders/{archive}", data={"state": "inherit"})
    assert "Using 2 of 2 documents" in ada.call("GET", panel).text


def test_folder_in_the_panel_shows_and_switches_what_is_in_it(ada: Desk, portal: Portal) -> None:
    archive = ada.folder("Archive")
    inner = ada.folder("Old", archive)
    one, two = (portal.add(f"maple {name}", title=name, owner=ada.user) for name in ("One", "Two"))
    ada.move(one, archive)
    ada.move(two, inner)
    talk = str(conversations.create(portal.services, ada.user).id)
    panel = f"/chat/{talk}/documents"

    def shown(form: str, **data: str) -> tuple[str, str]:
        """Return whether the folder is on, and why if the page shows it."""
        answer = ada.call("POST", form, data=data)
        assert answer.status_code == 303
        row = ada.call("GET", panel).text.partition(f'id="switch-{archive}"')[2]
        cause = re.search(r'data-testid="selection-cause"\s+data-source="(\w+)">([^<]*)<', row)
        assert cause is not None
        words = "" if cause[1] == "system" else cause[2]
        return row.partition('aria-checked="')[2].partition('"')[0], words

    assert shown(panel, state="off") == ("false", "0 of 2 documents on")
    switch = f"/chat/{talk}/folders/{archive}"
    assert shown(switch, state="on") == ("true", "On in this conversation")
    assert ada.found(conversation_id=talk) == {"One", "Two"}
    part = ("true", "1 of 2 documents on")
    assert shown(f"/chat/{talk}/folders/{inner}", state="off") == part
    assert shown(switch, state="off") == ("false", "Off in this conversation")
    assert ada.found(conversation_id=talk) == set()
    assert shown(f"{panel}/{one.id}", state="on") == part
    assert shown(switch, state="inherit") == ("true", "")


def test_folder_in_the_panel_counts_only_what_its_user_sees(
    ada: Desk, eve: Desk, portal: Portal
) -> None:
    archive = ada.folder("Archive")
    secret = ada.folder("Severance", archive, visibility=Visibility.PRIVATE)
    for title, place in (("One", archive), ("Two", archive), ("Three", secret)):
        ada.move(portal.add(f"maple {title}", title=title, owner=ada.user), place)
    private = portal.add("hidden", title="Four", owner=ada.user, visibility=Visibility.PRIVATE)
    ada.move(private, archive)
    talk = str(conversations.create(portal.services, eve.user).id)
    panel = f"/chat/{talk}/documents"
    eve.call("POST", panel, data={"state": "off"})
    assert "0 of 2 documents on" in eve.call("GET", panel).text
    # In a filtered list, a folder is listed beside its documents.
    one = portal.scalars("SELECT id FROM documents WHERE title = 'One'")[0]
    headers = portal.headers(eve.user) | {"HX-Request": "true"}
    sent = {"state": "on", "q": "ar"}
    answer = eve.client.post(f"{panel}/{one}", headers=headers, data=sent).text
    assert re.search(rf'id="switch-{archive}"[^>]*hx-swap-oob="true"', answer)
    assert "1 of 2 documents on" in answer


def test_folder_list_switches_a_folder_for_its_user_only(
    ada: Desk, eve: Desk, portal: Portal
) -> None:
    archive = ada.folder("Archive")
    ada.move(portal.add("maple", title="Filed", owner=ada.user), archive)
    address = f"/documents?folder={archive}"
    assert "folder-off" not in ada.call("GET", address).text
    sent = ada.call("POST", f"/folders/{archive}/selection", data={"state": "off"})
    assert (sent.status_code, sent.location) == (303, f"{address}#folder-toggle")
    page = ada.call("GET", address).text
    assert "folder-off" in page
    assert "Off: folder “Archive”, for you" in page
    assert "folder-off" not in eve.call("GET", address).text
