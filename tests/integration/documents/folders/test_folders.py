"""Folders: who sees them, what may be done with them, and how documents get into them."""

from __future__ import annotations

import io
import re
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from flask.testing import FlaskClient
from markupsafe import escape
from werkzeug.test import TestResponse

from portal.domain.documents import Visibility
from portal.domain.documents.folders import MAX_DEPTH
from portal.domain.people import DocumentFate, User
from portal.errors import Conflict
from portal.services.documents import folders, library
from portal.services.documents.intake import importing
from portal.services.documents.intake.finding_files import find_files
from portal.services.documents.intake.uploads import UploadTarget, store_upload
from portal.services.operations import account_deletion
from portal.store.documents import folders as folder_store
from tests.conftest import Portal
from tests.factories.blocking import wait_until_blocked
from tests.factories.cases import for_each

LIST = "/api/knowledge/documents"


@dataclass
class Cabinet:
    """The API as one user calls it."""

    client: FlaskClient
    headers: dict[str, str]

    def call(self, method: str, path: str, **given: Any) -> TestResponse:
        return self.client.open(path, method=method, headers=self.headers, **given)

    def folder(self, name: str, parent: str | None = None, **values: Any) -> str:
        values |= {"name": name} | ({"parent_id": parent} if parent else {})
        made = self.call("POST", "/api/folders", json=values)
        assert made.status_code == 201, made.text
        return str(made.json["id"])

    def upload(self, name: str, **values: Any) -> dict[str, Any]:
        data = {"file": (io.BytesIO(f"words of {name} {uuid4()}".encode()), name), **values}
        sent = self.call("POST", LIST, data=data)
        assert sent.status_code == 202, sent.text
        return dict(sent.json["documents"][0])

    def names(self, parent: str | None = None) -> list[str]:
        query = {"parent_id": parent} if parent else {}
        found = self.call("GET", "/api/folders", query_string=query)
        return [folder["name"] for folder in found.json["folders"]]

    def titles(self, **query: Any) -> set[str]:
        found = self.call("GET", LIST, query_string=query)
        return {document["title"] for document in found.json["documents"]}


@pytest.fixture
def people(portal: Portal) -> tuple[User, User]:
    return portal.user("ada"), portal.user("eve")


@pytest.fixture
def ada(portal: Portal, client: FlaskClient, people: tuple[User, User]) -> Cabinet:
    return Cabinet(client, portal.headers(people[0]))


@pytest.fixture
def eve(portal: Portal, client: FlaskClient, people: tuple[User, User]) -> Cabinet:
    return Cabinet(client, portal.headers(people[1]))


@pytest.fixture
def root(portal: Portal, client: FlaskClient) -> Cabinet:
    return Cabinet(client, portal.headers())


def test_private_folder_is_known_to_its_owner_and_administrators_only(
    ada: Cabinet, eve: Cabinet, root: Cabinet
) -> None:
    secret = ada.folder("Severance", visibility="private")
    below = ada.folder("Lists", secret)
    shared = ada.folder("Public part", secret, visibility="shared")
    ada.upload("plan.txt", folder_id=secret, visibility="shared")
    ada.upload("names.txt", folder_id=below, visibility="private")
    assert ada.names() == root.names() == ["Severance"]
    assert ada.names(secret) == ["Lists", "Public part"]
    # Others see a shared folder below at the top, and the document without its folder.
    assert eve.names() == ["Public part"]
    opened = eve.call("GET", f"/api/folders/{shared}").json
    assert (opened["path"], opened["parent_id"]) == ([], None)
    (document,) = eve.call("GET", LIST).json["documents"]
    assert (document["title"], document["folder"], document["folder_id"]) == ("plan", None, None)
    assert eve.titles(unfiled=True) == {"plan"}
    assert ada.titles(unfiled=True) == set()
    page = eve.call("GET", "/documents").text + eve.call("GET", f"/documents?folder={shared}").text
    assert "Severance" not in page
    assert "Lists" not in page
    # Others may use the same name: a refusal would reveal that the folder exists.
    own = eve.folder("severance")
    for folder_id in (secret, str(uuid4())):
        address = f"/api/folders/{folder_id}"
        document_id = eve.upload(f"{folder_id}.txt")["id"]
        for answer in (
            eve.call("GET", address),
            eve.call("PATCH", address, json={"name": "x"}),
            eve.call("DELETE", address, query_string={"documents": "trash"}),
            eve.call("PUT", f"{address}/parent", json={"parent_id": None}),
            eve.call("POST", "/api/folders", json={"name": "x", "parent_id": folder_id}),
            eve.call("PUT", f"/api/folders/{own}/parent", json={"parent_id": folder_id}),
            eve.call("GET", "/api/folders", query_string={"parent_id": folder_id}),
            eve.call("PUT", f"{LIST}/{document_id}/folder", json={"folder_id": folder_id}),
            eve.call("GET", LIST, query_string={"folder_id": folder_id}),
            eve.call("GET", f"/documents?folder={folder_id}"),
        ):
            assert answer.status_code == 404
        data = {"file": (io.BytesIO(b"words"), "a.txt"), "folder_id": folder_id}
        assert eve.call("POST", LIST, data=data).status_code == 404


def test_shared_folder_accepts_all_users_documents_and_its_owner_changes_it(
    ada: Cabinet, eve: Cabinet, root: Cabinet
) -> None:
    contracts = ada.folder("Contracts", description="with suppliers")
    year = eve.folder("2026", contracts)
    document = eve.upload("offer.txt", folder_id=year)
    assert (document["folder"], document["folder_id"]) == ("2026", year)
    assert ada.titles(folder_id=contracts) == {"offer"}
    moved = eve.call("PUT", f"{LIST}/{document['id']}/folder", json={"folder_id": contracts})
    assert moved.json["folder"] == "Contracts"
    # A folder is changed by its owner and by owners above it; a document by its own owner.
    assert eve.call("PATCH", f"/api/folders/{contracts}", json={"name": "x"}).status_code == 403
    assert ada.call("PATCH", f"/api/folders/{year}", json={"name": "y26"}).json["name"] == "y26"
    taken = ada.call("POST", "/api/folders", json={"name": "contracts"})
    assert (taken.status_code, taken.json["error"]["code"]) == (409, "name_taken")
    for name in ("a/b", "..", "\u202e. ."):
        assert ada.call("POST", "/api/folders", json={"name": name}).status_code == 422
    answer = ada.call("PUT", f"{LIST}/{document['id']}/folder", json={"folder_id": None})
    assert answer.status_code == 403
    assert (
        root.call("PUT", f"{LIST}/{document['id']}/folder", json={"folder_id": None}).json["folder"]
        is None
    )


def test_tree_has_no_cycles_and_a_limited_depth(ada: Cabinet) -> None:
    path = [ada.folder("level 1")]
    while len(path) < MAX_DEPTH:
        path.append(ada.folder(f"level {len(path) + 1}", path[-1]))
    too_deep = ada.call("POST", "/api/folders", json={"name": "more", "parent_id": path[-1]})
    assert too_deep.status_code == 409
    for target in (path[0], path[5]):
        moved = ada.call("PUT", f"/api/folders/{path[0]}/parent", json={"parent_id": target})
        assert moved.status_code == 409
    other = ada.folder("other")
    into = {"parent_id": other}
    assert ada.call("PUT", f"/api/folders/{path[0]}/parent", json=into).status_code == 409
    assert ada.call("PUT", f"/api/folders/{path[1]}/parent", json=into).status_code == 200
    opened = ada.call("GET", f"/api/folders/{path[2]}").json
    assert [one["name"] for one in opened["path"]] == ["other", "level 2"]


def test_path_that_is_too_deep_ends_at_the_deepest_folder_except_in_the_api(ada: Cabinet) -> None:
    """A document from deeper on disk is kept, but a request would not learn where it is."""

    def send(address: str, depth: int, **values: str) -> TestResponse:
        file = (io.BytesIO(f"words {uuid4()}".encode()), "deep.txt")
        path = "/".join(f"d{number}" for number in range(depth))
        return ada.call("POST", address, data={"file": file, "path": path, **values})

    top = ada.folder("top")
    refused = [send(LIST, MAX_DEPTH + 1), send(LIST, MAX_DEPTH, folder_id=top)]
    assert [answer.status_code for answer in refused] == [422, 422]
    assert f"{MAX_DEPTH} deep" in refused[0].json["error"]["message"]
    assert ada.names() == ["top"]
    stored = send(LIST, MAX_DEPTH)
    assert stored.json["documents"][0]["folder"] == f"d{MAX_DEPTH - 1}"
    assert send("/documents", MAX_DEPTH + 5, folder_id=top).status_code == 303
    deepest = [one for one in ada.call("GET", LIST).json["documents"] if one["folder"] != "top"]
    assert {one["folder"] for one in deepest} == {f"d{MAX_DEPTH - 1}", f"d{MAX_DEPTH - 2}"}


@pytest.mark.parametrize("choice", ["keep", "trash"])
def test_deleting_a_folder_asks_what_to_do_with_its_documents(
    ada: Cabinet, eve: Cabinet, choice: str
) -> None:
    top = ada.folder("Top")
    old = ada.folder("Old", top)
    below = eve.folder("Deeper", old)
    ada.upload("mine.txt", folder_id=below)
    eve.upload("hers.txt", folder_id=old)
    eve.upload("secret.txt", folder_id=old, visibility="private")
    address = f"/api/folders/{old}"
    assert ada.call("DELETE", address).status_code == 422
    assert ada.call("GET", address).json["document_count"] == 2
    removed = ada.call("DELETE", address, query_string={"documents": choice}).json
    is_trash = choice == "trash"
    # A private document of another user moves too, and is not counted.
    assert removed == {"trashed_count": int(is_trash), "moved_count": 2 - int(is_trash)}
    assert ada.names(top) == []
    assert eve.titles(folder_id=top) == {"hers", "secret"} | (set() if is_trash else {"mine"})


def test_files_of_one_form_keep_their_tree(ada: Cabinet) -> None:
    def send(*names: str, paths: str) -> TestResponse:
        files = [(io.BytesIO(f"words {uuid4()}".encode()), name) for name in names]
        return ada.call("POST", "/documents", data={"file": files, "paths": paths})

    top = ada.folder("top")
    assert send("a.txt", "b.txt", "c.txt", paths="trip\r\ntrip/inner\r\n").status_code == 303
    trip = next(
        one for one in ada.call("GET", "/api/folders").json["folders"] if one["name"] == "trip"
    )
    assert ada.names(trip["id"]) == ["inner"]
    assert ada.titles(folder_id=trip["id"]) == {"a", "b"}
    assert ada.titles() == {"a", "b", "c"}
    # With a missing line, files would end up in the folders of others.
    assert send("d.txt", "e.txt", paths="trip").status_code == 400
    assert send("d.txt", "e.txt", paths="x" * 2001 + "\n").status_code == 400
    assert ada.titles() == {"a", "b", "c"}
    assert ada.names(top) == []


def test_repeated_upload_with_other_paths_is_refused(ada: Cabinet) -> None:
    headers = ada.headers | {"HX-Request": "true", "Idempotency-Key": "tree"}

    def send(paths: str) -> int:
        files = [(io.BytesIO(name.encode()), name) for name in ("a.txt", "b.txt")]
        data = {"file": files, "paths": paths}
        return ada.client.post("/documents", headers=headers, data=data).status_code

    assert [send("one\ntwo"), send("one\ntwo"), send("one\nthree"), send("one")] == [
        200, 200, 409, 400,
    ]  # fmt: skip
    assert {one["name"] for one in ada.call("GET", "/api/folders").json["folders"]} == {
        "one",
        "two",
    }


def test_uploading_a_tree_keeps_it(ada: Cabinet, eve: Cabinet) -> None:
    for path in ("handbook/leave", "Handbook/leave", "./handbook//pay/.."):
        ada.upload("page.txt", path=path)
    handbook = ada.call("GET", "/api/folders").json["folders"]
    assert [one["name"] for one in handbook] == ["handbook"]
    assert ada.names(handbook[0]["id"]) == ["leave", "pay"]
    # A private upload creates folders that others do not see.
    hidden = ada.upload("offer.txt", path="handbook/offers", visibility="private")
    assert hidden["folder"] == "offers"
    assert eve.names(handbook[0]["id"]) == ["leave", "pay"]
    too_long = {"file": (io.BytesIO(b"words"), "a.txt"), "path": "x" * 2001}
    assert ada.call("POST", LIST, data=too_long).status_code == 400
    inside = ada.folder("mine", visibility="private")
    ada.upload("a.txt", path="sub", folder_id=inside)
    assert "sub" not in eve.names()


def test_import_from_disk_keeps_the_tree(portal: Portal, ada: Cabinet, tmp_path: Path) -> None:
    disk = tmp_path / "policies"
    for name in ("travel.txt", "staff/leave.txt", "staff/pay/bands.txt"):
        (disk / name).parent.mkdir(parents=True, exist_ok=True)
        (disk / name).write_text(f"about {name}")
    loose = tmp_path / "loose.txt"
    loose.write_text("alone")
    for _ in range(2):  # Repeating it creates nothing twice.
        list(
            importing.import_files(
                portal.services,
                portal.admin,
                find_files([disk, loose]),
                domain=None,
                visibility=Visibility.SHARED,
                roots=[disk, loose],
                into="from disk",
            )
        )
    paths = folders.list_paths(portal.services, portal.admin)
    assert [path.words for path in paths] == [
        "from disk",
        "from disk / policies",
        "from disk / policies / staff",
        "from disk / policies / staff / pay",
    ]
    assert ada.titles(folder_id=str(paths[2].id)) == {"leave", "bands"}
    assert ada.titles(folder_id=str(paths[0].id)) == {"travel", "leave", "bands", "loose"}


def test_pages_of_folders_work_without_scripts(ada: Cabinet) -> None:
    made = ada.call("POST", "/folders", data={"name": "合同", "visibility": "shared"})
    address = made.headers["Location"]
    folder_id = address.rpartition("=")[2]
    page = ada.call("GET", address).text
    assert re.search(r"<h1>合同</h1>", page)
    # An upload from this page goes into this folder by default.
    assert re.search(rf'<option value="{folder_id}"\s+selected>', page)
    data = {"file": (io.BytesIO(b"words"), "offer.txt"), "folder_id": folder_id}
    assert ada.call("POST", "/documents", data=data).headers["Location"] == address
    edit = {"name": "Contracts", "description": "all of them", "visibility": "shared"}
    assert ada.call("POST", f"/folders/{folder_id}/edit", data=edit).status_code == 303
    below = ada.call("POST", "/folders", data={"name": "2026", "parent_id": folder_id})
    page = ada.call("GET", below.headers["Location"]).text
    assert "Contracts" in page
    refused = ada.call("POST", "/folders", data={"name": "2026", "parent_id": folder_id})
    assert refused.status_code == 409
    assert "already taken" in refused.text
    address = f"/folders/{folder_id}/delete"
    assert "It contains 1 document." in ada.call("GET", address).text
    assert ada.call("POST", address, data={"documents": ""}).status_code == 422
    gone = ada.call("POST", address, data={"documents": "trash"})
    assert gone.headers["Location"] == "/documents"
    assert ada.titles() == set()


@pytest.mark.parametrize("fate", DocumentFate)
def test_folders_of_a_deleted_user_follow_the_documents(
    portal: Portal,
    people: tuple[User, User],
    ada: Cabinet,
    eve: Cabinet,
    root: Cabinet,
    fate: DocumentFate,
) -> None:
    top = eve.folder("Top")
    team = ada.folder("Team", top)
    secret = ada.folder("Severance", top, visibility="private")
    deeper = ada.folder("Lists", secret)
    shared = ada.folder("Public part", deeper, visibility="shared")
    ada.upload("plan.txt", folder_id=secret, visibility="private")
    root.upload("advice.txt", folder_id=deeper)
    new_owner = "eve" if fate is DocumentFate.TRANSFER else ""
    account_deletion.delete_account(
        portal.services, portal.admin, people[0].id, documents=fate, new_owner_name=new_owner
    )
    owners = {DocumentFate.TRANSFER: "eve", DocumentFate.PURGE: ""}
    for folder_id in (team, shared):
        assert root.call("GET", f"/api/folders/{folder_id}").json["owner"] == owners.get(
            fate, "admin"
        )
    left = {path.words for path in folders.list_paths(portal.services, portal.admin)}
    assert {"Top", "Top / Team"} < left
    if fate in {DocumentFate.TRANSFER, DocumentFate.TRASH}:
        # Private documents stay private under their new owner, and so do private folders.
        assert "Top / Severance / Lists / Public part" in left
        assert ("Severance" in eve.names(top)) is (fate is DocumentFate.TRANSFER)
        assert root.titles(folder_id=deeper) == {"advice"}
    else:
        # Private folders are erased; what others have in them moves up.
        assert left == {"Top", "Top / Team", "Top / Public part"}
        assert root.titles(folder_id=top) == {"advice"}


def test_folder_that_administrators_create_in_a_private_one_belongs_to_its_owner(
    ada: Cabinet, root: Cabinet
) -> None:
    secret = ada.folder("Severance", visibility="private")
    root.folder("Advice", secret)
    root.upload("plan.txt", folder_id=secret, path="Plans/2026", visibility="private")
    assert ada.names(secret) == ["Advice", "Plans"]
    taken = root.call("POST", "/api/folders", json={"name": "advice", "parent_id": secret})
    assert taken.status_code == 409


def test_two_moves_at_once_make_no_cycle(
    portal: Portal, people: tuple[User, User], ada: Cabinet
) -> None:
    first, second = UUID(ada.folder("first")), UUID(ada.folder("second"))
    answers: list[str] = []

    def move(folder_id: UUID, into: UUID) -> None:
        try:
            folders.move_folder(portal.services, people[0], folder_id, into)
            answers.append("moved")
        except Conflict:
            answers.append("refused")

    moves = [
        threading.Thread(target=move, args=pair) for pair in ((first, second), (second, first))
    ]
    with portal.services.database.begin() as session:
        folder_store.lock_tree(session)
        for thread in moves:
            thread.start()
        wait_until_blocked(portal.services, count=2)
    for thread in moves:
        thread.join(30)
    assert sorted(answers) == ["moved", "refused"]
    assert len(folders.list_paths(portal.services, people[0])) == 2


def test_upload_that_adds_a_folder_waits_without_holding_another(
    portal: Portal, people: tuple[User, User], ada: Cabinet
) -> None:
    folder_id = UUID(ada.folder("Plans"))
    stored: list[bool] = []

    def upload() -> None:
        target = UploadTarget(folder_id, "Drafts")
        file = io.BytesIO(b"words of a draft")
        stored.append(
            not store_upload(
                portal.services, people[0], stream=file, file_name="draft.txt", target=target
            ).is_duplicate
        )

    thread = threading.Thread(target=upload)
    with portal.services.database.begin() as session:
        folder_store.lock_tree(session)
        thread.start()
        wait_until_blocked(portal.services)
        # A deletion takes this lock; it would wait for an upload that waits for the deletion.
        folder_store.lock_below(session, folder_id)
    thread.join(30)
    assert stored == [True]
    assert ada.names(str(folder_id)) == ["Drafts"]


@for_each(
    ("given", "kept"),
    [
        ("  a \t b  ", "a b"),
        ("a\x00b", "a b"),
        ("\u202egnp.exe", "gnp.exe"),
        ("<script>alert(1)</script>".replace("/", ""), "<script>alert(1)<script>"),
        ("100 %(name)s {x}", "100 %(name)s {x}"),
        ("😀" * 100, "😀" * 100),
        ("' OR 1=1 --", "' OR 1=1 --"),
    ],
)
def test_folder_keeps_odd_names(ada: Cabinet, given: str, kept: str) -> None:
    made = ada.call("POST", "/api/folders", json={"name": given}).json
    assert made["name"] == kept
    page = ada.call("GET", f"/documents?folder={made['id']}").text
    assert f"<h1>{escape(kept)}</h1>" in page
    gone = ada.call("POST", f"/folders/{made['id']}/delete", data={"documents": "keep"})
    assert gone.status_code == 303
    assert str(escape(kept)) in ada.call("GET", "/documents").text


def test_name_with_separate_accents_is_the_same_name(ada: Cabinet) -> None:
    parent = ada.folder("Menu")
    for path in ("café/été", "cafe\u0301/e\u0301te\u0301"):
        ada.upload(f"{len(path)}.txt", folder_id=parent, path=path)
    assert ada.names(parent) == ["café"]
    again = {"name": "cafe\u0301", "parent_id": parent}
    assert ada.call("POST", "/api/folders", json=again).status_code == 409


def test_taken_folder_name_is_not_reported_as_a_user_name(ada: Cabinet) -> None:
    ada.folder("合同")
    chinese = ada.headers | {"Accept-Language": "zh-CN"}
    taken = ada.client.post("/api/folders", headers=chinese, json={"name": "合同"})
    assert taken.json["error"]["message"] == "名称“合同”已被占用，请换一个。"


@for_each("name", ["", " ", "\u200b", "a/b", "x" * 101])
def test_folder_without_a_usable_name_is_refused(ada: Cabinet, name: str) -> None:
    refused = ada.call("POST", "/api/folders", json={"name": name})
    assert refused.status_code == 422
    assert "pattern" not in refused.text
    assert ada.call("POST", "/folders", data={"name": name}).status_code == 422


def test_upload_into_a_private_folder_is_private(portal: Portal, ada: Cabinet) -> None:
    made = ada.call("POST", "/api/folders", json={"name": "Own", "visibility": "private"}).json
    assert ada.upload("own.txt", folder_id=made["id"])["visibility"] == "private"
    told = ada.upload("told.txt", folder_id=made["id"], visibility="shared")
    assert told["visibility"] == "shared"


def test_document_in_the_trash_comes_back_where_it_was(portal: Portal, ada: Cabinet) -> None:
    folder_id = ada.folder("Plans")
    document = ada.upload("plan.txt", folder_id=folder_id)
    ada.call("DELETE", f"{LIST}/{document['id']}")
    assert ada.titles(folder_id=folder_id) == set()
    assert ada.call("POST", f"{LIST}/{document['id']}/restore").json["folder"] == "Plans"
    assert library.list_documents(portal.services, portal.admin).total_count == 1


def test_document_shows_its_path_and_deleting_it_returns_to_its_folder(ada: Cabinet) -> None:
    outer = ada.folder("Plans")
    inner = ada.folder("Drafts", outer)
    page = f"/documents/{ada.upload('plan.txt', folder_id=inner)['id']}"
    crumbs = ada.call("GET", page).text.partition("<h1")[0]
    found = re.findall(
        r'href="/documents(?:\?folder=([-0-9a-f]+))?">', crumbs.partition("<main")[2]
    )
    assert found == ["", outer, inner]
    gone = ada.call("POST", f"{page}/delete")
    assert gone.headers["Location"] == f"/documents?folder={inner}"


def test_count_above_the_list_is_of_its_folder_or_search(ada: Cabinet) -> None:
    folder_id = ada.folder("Plans")
    ada.upload("elsewhere.txt")
    for page, count in ((f"/documents?folder={folder_id}", 1), ("/documents?q=plan", 1)):
        document = ada.upload("plan.txt", folder_id=folder_id)
        other = ada.upload("plan.txt", folder_id=folder_id)["id"]
        seen = ada.headers | {"HX-Request": "true", "HX-Current-URL": f"http://localhost{page}"}
        answer = ada.client.post(
            f"/documents/{document['id']}/delete", headers=seen, data={"in_list": "1"}
        )
        found = re.search(r'id="document-count"[^>]*>\s*(\d+) document', answer.text)
        assert found is not None
        assert int(found[1]) == count
        ada.call("DELETE", f"{LIST}/{other}")
