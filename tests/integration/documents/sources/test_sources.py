"""Folders that follow a directory on the server."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from portal import create_app
from portal.domain.documents import DocumentFilter, Visibility
from portal.domain.documents.folder_members import MemberKind
from portal.domain.documents.folders import FolderRole, FolderVisibility
from portal.domain.documents.sources import MAX_RUNS_KEPT
from portal.domain.people import DocumentFate, User
from portal.errors import Forbidden, InvalidInput, NotFound
from portal.services import Services
from portal.services.documents import folders, library
from portal.services.documents.folders import members as folder_members
from portal.services.documents.sources import folder_sources, syncing
from portal.services.documents.versions import revisions
from portal.services.operations import account_deletion
from portal.store.documents.folders import sources as source_store
from tests.conftest import Portal
from tests.factories.cases import for_each
from tests.integration.documents.sources.tied_folder import Tied, counts


@pytest.fixture
def tied(make_services: Callable[..., Services], tmp_path: Path) -> Tied:
    top = tmp_path / "followed"
    top.mkdir()
    services = make_services(sources={"directories": (top,)})
    portal = Portal.of(services)
    mei = portal.user("mei")
    made = folders.create_folder(services, mei, name="Followed")
    return Tied(portal, top, mei, made)


def tie_together(tied: Tied, owner: User) -> None:
    """Make mei a keeper of a folder of the owner's, and tie it to the directory."""
    services, name = tied.portal.services, "Closed"
    closed, user = FolderVisibility.MEMBERS, MemberKind.USER
    tied.folder = folders.create_folder(services, owner, name=name, visibility=closed)
    folder_members.set_member(
        services, owner, tied.folder, kind=user, name="mei", role=FolderRole.KEEPER
    )
    tied.tie()


def test_folder_follows_what_is_added_changed_moved_and_removed(tied: Tied) -> None:
    tied.write("leave.md", "# Leave\n\nTwelve days a year.")
    tied.write("2026/travel.txt", "Trains are paid for.")
    tied.write("notes.xyz", "A kind of file that is not read.")
    tied.write(".hidden/key.txt", "secret")
    (tied.top / "link.txt").symlink_to("/etc/hostname")
    tied.tie()
    run = tied.run()
    assert counts(run) == (2, 0, 0, 1)
    refused = [(one.path, one.failure.code) for one in run.listed if one.failure]
    assert refused == [("notes.xyz", "unsupported_suffix")]
    (tied.top / "notes.xyz").unlink()
    first = tied.found()
    assert set(first) == {"leave.md", "travel.txt"}
    below = folders.list_children(tied.portal.services, tied.mei, [tied.folder])
    assert [one.name for one in below] == ["2026"]
    assert counts(tied.run()) == (0, 0, 0, 0)

    tied.write("leave.md", "# Leave\n\nFifteen days a year.")
    os.utime(tied.top / "2026/travel.txt", (1, 1))  # Touched, with the same bytes.
    changed = tied.run()
    assert counts(changed) == (0, 1, 0, 0)
    assert [(one.change, one.path) for one in changed.listed] == [("changed", "leave.md")]
    assert tied.found() == first

    (tied.top / "2026/travel.txt").rename(tied.top / "trains.txt")
    assert counts(tied.run()) == (0, 1, 0, 0)
    assert tied.found() == first
    travel = library.get_summary(tied.portal.services, tied.mei, first["travel.txt"])
    assert travel.folder_id == tied.folder

    (tied.top / "trains.txt").unlink()
    assert counts(tied.run()) == (0, 0, 1, 0)
    assert set(tied.found()) == {"leave.md"}
    trash = library.list_trash(tied.portal.services, tied.mei).items
    assert [one.id for one in trash] == [first["travel.txt"]]


def test_changed_file_becomes_a_version(tied: Tied) -> None:
    tied.write("leave.md", "Twelve days.")
    tied.tie()
    tied.run()
    tied.index()
    tied.write("leave.md", "Fifteen days a year.")
    tied.run()
    tied.index()
    document_id = tied.found()["leave.md"]
    page = revisions.list_revisions(tied.portal.services, tied.mei, document_id)
    assert [one.number for one in page.items] == [2, 1]


def test_refused_files_are_listed_with_the_reason_and_tried_again(tied: Tied) -> None:
    tied.write("empty.txt", "")
    tied.write("one.txt", "The same words.")
    tied.write("two.txt", "The same words.")
    tied.tie()
    for _ in range(2):
        run = tied.run()
        refused = {one.path: one.failure.code for one in run.listed if one.failure}
        assert refused == {"empty.txt": "empty_file", "two.txt": "kept_elsewhere"}
    tied.write("empty.txt", "Now it has words.")
    assert counts(tied.run()) == (1, 0, 0, 1)
    # The list of earlier runs does not repeat the reasons, which may name other documents.
    past = folder_sources.list_runs(tied.portal.services, tied.mei, tied.folder)
    listed = [(one.run.refused, [file.path for file in one.run.listed]) for one in past]
    assert listed == [(1, ["empty.txt"]), (2, ["one.txt"])]


def test_titles_of_private_documents_are_not_shown_to_other_keepers(tied: Tied) -> None:
    client: FlaskClient = create_app(tied.portal.services).test_client()
    ben = tied.portal.user("ben")
    words, private = "The same words.", Visibility.PRIVATE
    tied.portal.add(words, title="Salaries", owner=tied.mei, visibility=private)
    tied.write("one.txt", words)
    tie_together(tied, ben)
    assert counts(tied.run()) == (0, 0, 0, 1)
    at = f"/folders/{tied.folder}/source"
    for address in (at, f"/api{at}"):
        pages = [
            client.get(address, headers=tied.portal.headers(user)).text for user in (tied.mei, ben)
        ]
        assert ["Salaries" in page for page in pages] == [True, False]
        assert ["one.txt" in page for page in pages] == [True, True]


def test_nothing_is_removed_when_the_directory_is_gone_or_empty(tied: Tied) -> None:
    tied.write("leave.md", "Twelve days.")
    tied.tie()
    tied.run()
    before = tied.found()
    (tied.top / "leave.md").unlink()
    for _ in range(2):
        run = tied.run()
        assert run.failure is not None
        assert run.failure.code == "source_unavailable"
        assert tied.found() == before
        if tied.top.exists():
            tied.top.rmdir()


def test_documents_of_an_unreadable_directory_stay(
    tied: Tied, monkeypatch: pytest.MonkeyPatch
) -> None:
    tied.write("closed/leave.md", "Twelve days.")
    tied.write("open.md", "Open.")
    tied.tie()
    tied.run()
    scandir = os.scandir

    def refuse(path: Path) -> Any:  # As for a user who is not root.
        if Path(path).name == "closed":
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    run = tied.run()
    assert counts(run) == (0, 0, 0, 1)
    assert set(tied.found()) == {"leave.md", "open.md"}


def test_deleted_document_comes_back_when_its_file_changes(tied: Tied) -> None:
    tied.write("leave.md", "Twelve days.")
    tied.tie()
    tied.run()
    library.delete_document(tied.portal.services, tied.mei, tied.found()["leave.md"])
    assert counts(tied.run()) == (0, 0, 0, 0)
    tied.write("leave.md", "Fifteen days a year.")
    assert counts(tied.run()) == (1, 0, 0, 0)


def test_run_continues_after_one_that_was_killed(
    tied: Tied, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file was stored, but the record of it is missing."""
    tied.write("leave.md", "Twelve days.")
    tied.tie()
    with monkeypatch.context() as patch:
        patch.setattr(syncing._Run, "_record_item", _die)
        with pytest.raises(KeyboardInterrupt):
            syncing.sync_due(tied.portal.services)
    document = tied.found()
    assert counts(tied.run()) == (1, 0, 0, 0)
    assert tied.found() == document
    assert counts(tied.run()) == (0, 0, 0, 0)


def test_source_that_fails_unexpectedly_is_not_due_again_at_once(
    tied: Tied, monkeypatch: pytest.MonkeyPatch
) -> None:
    tied.write("leave.md", "Twelve days.")
    tied.tie()

    def fail(*_: object) -> None:
        raise RuntimeError("a defect")

    with monkeypatch.context() as patch:
        patch.setattr(syncing, "open_source", fail)
        syncing.sync_due(tied.portal.services)
    with tied.portal.services.database.begin() as session:
        assert source_store.list_due(session, ["directory"]) == []


def _die(*_: object) -> None:
    raise KeyboardInterrupt


def test_uploaded_document_is_not_taken_over_by_a_source(tied: Tied) -> None:
    mine = tied.portal.add("The same words.", name="mine.txt", owner=tied.mei)
    tied.write("one.txt", "The same words.")
    tied.tie()
    assert counts(tied.run()) == (0, 0, 0, 1)
    tied.write("two.txt", "Other words.")
    (tied.top / "one.txt").unlink()
    tied.run()
    assert library.get_summary(tied.portal.services, tied.mei, mine.id).title == "mine"


@for_each("address", ["/etc", "..", "followed-too", ".ssh", "relative", "a\0b"])
def test_directories_that_are_not_allowed_are_refused(tied: Tied, address: str) -> None:
    beside = {"..": tied.top / "..", "followed-too": tied.top.with_name("followed-too")}
    beside[".ssh"] = tied.top / ".ssh"
    for one in beside.values():
        one.mkdir(exist_ok=True)
    with pytest.raises(InvalidInput):
        tied.tie(beside.get(address, Path(address)))


def test_link_out_of_an_allowed_directory_is_refused(tied: Tied) -> None:
    (tied.top / "out").symlink_to("/etc")
    with pytest.raises(InvalidInput):
        tied.tie(tied.top / "out")


def test_directory_that_becomes_a_link_is_refused_at_the_next_run(tied: Tied) -> None:
    tied.write("inner/leave.md", "Twelve days.")
    tied.tie(tied.top / "inner")
    tied.run()
    (tied.top / "inner").rename(tied.top / "old")
    (tied.top / "inner").symlink_to("/etc")
    run = tied.run()
    assert run.failure is not None
    assert run.failure.code == "invalid"


def test_only_users_who_may_change_a_folder_set_its_source(tied: Tied) -> None:
    ben = tied.portal.user("ben")
    tied.write("leave.md", "Twelve days.")
    with pytest.raises(Forbidden):
        tied.tie(user=ben)
    tied.tie()
    folders.change_folder(
        tied.portal.services, tied.mei, tied.folder, visibility=FolderVisibility.MEMBERS
    )
    for action in (
        folder_sources.find_source,
        folder_sources.request_run,
        folder_sources.remove_source,
    ):
        with pytest.raises(NotFound):
            action(tied.portal.services, ben, tied.folder)
    tied.run()
    assert not library.list_documents(tied.portal.services, ben).items


def test_untied_folder_keeps_its_documents(tied: Tied) -> None:
    tied.write("leave.md", "Twelve days.")
    tied.tie()
    tied.run()
    folder_sources.remove_source(tied.portal.services, tied.mei, tied.folder)
    (tied.top / "leave.md").unlink()
    syncing.sync_due(tied.portal.services)
    assert set(tied.found()) == {"leave.md"}


def test_changes_are_still_listed_after_runs_that_find_nothing_new(tied: Tied) -> None:
    client: FlaskClient = create_app(tied.portal.services).test_client()
    headers = tied.portal.headers(tied.mei)
    for number in range(25):
        tied.write(f"minutes {number:02}.md", f"Meeting {number}.")
    tied.tie()
    tied.run()
    (tied.top / "minutes 03.md").unlink()
    tied.run()
    assert counts(tied.run()) == (0, 0, 0, 0)
    at = f"/folders/{tied.folder}/source"
    page = client.get(at, headers=headers).text
    assert page.count('data-testid="earlier-run"') == 2
    assert "0 added, 0 changed, 1 removed, 0 refused" in page
    assert "minutes 03.md" in page
    assert "5 more are not listed" in page
    chinese = client.get(at, headers=headers | {"Accept-Language": "zh-CN"}).text
    assert "另有 5 项未列出" in chinese
    changes = client.get(f"/api{at}", headers=headers).json["changes"]
    assert [(one["added"], one["removed"]) for one in changes] == [(0, 1), (25, 0)]
    assert changes[0]["listed"] == [{"change": "removed", "path": "minutes 03.md", "reason": None}]
    for number in range(MAX_RUNS_KEPT + 1):
        tied.write("minutes 00.md", f"Version {number}.")
        tied.run()
    kept = client.get(f"/api{at}", headers=headers).json["changes"]
    assert [one["changed"] for one in kept] == [1] * MAX_RUNS_KEPT


def test_page_shows_the_outcome_when_the_run_has_ended(tied: Tied) -> None:
    client: FlaskClient = create_app(tied.portal.services).test_client()
    headers = tied.portal.headers(tied.mei)
    at = f"/folders/{tied.folder}/source"
    refreshed = f'hx-get="{at}"'
    tied.write("leave.md", "Twelve days.")
    tied.tie()
    asking = headers | {"HX-Request": "true", "HX-Target": "source-state"}
    assert refreshed in client.get(at, headers=headers).text
    assert client.get(at, headers=asking).status_code == 204
    syncing.sync_due(tied.portal.services)
    fragment = client.get(at, headers=asking).text
    assert refreshed not in fragment
    assert "<html" not in fragment
    assert "1 added" in fragment
    folder_sources.remove_source(tied.portal.services, tied.mei, tied.folder)
    assert client.get(at, headers=asking).status_code == 404


@pytest.mark.parametrize("fate", DocumentFate)
def test_source_of_a_deleted_user_continues_where_the_documents_are_kept(
    tied: Tied, fate: DocumentFate
) -> None:
    services, admin = tied.portal.services, tied.portal.admin
    eve = tied.portal.user("eve")
    tied.write("leave.md", "Twelve days.")
    tied.tie()
    tied.run()
    account_deletion.delete_account(
        services, admin, tied.mei.id, documents=fate, new_owner_name="eve"
    )
    tied.write("travel.txt", "Trains are paid for.")
    syncing.sync_due(services)
    new_owners = {DocumentFate.TRANSFER: eve, DocumentFate.KEEP_SHARED: admin}
    source = folder_sources.find_source(services, admin, tied.folder)
    filters = DocumentFilter(folder_id=tied.folder)
    found = library.list_documents(services, admin, filters=filters).items
    if new_owner := new_owners.get(fate):
        assert source is not None
        assert source.owner_name == new_owner.name
        owners = {(one.file_name, one.owner_id) for one in found}
        assert owners == {("leave.md", new_owner.id), ("travel.txt", new_owner.id)}
    else:
        assert source is None
        assert not found


def test_source_of_a_user_who_lost_the_folder_ends_with_the_account(tied: Tied) -> None:
    services, admin, mei = tied.portal.services, tied.portal.admin, tied.mei
    tie_together(tied, admin)
    folder_members.remove_member(services, admin, tied.folder, mei.id)
    fate = DocumentFate.KEEP_SHARED
    account_deletion.delete_account(services, mei, mei.id, documents=fate)
    assert folder_sources.find_source(services, admin, tied.folder) is None


def test_page_and_api_show_the_last_run(tied: Tied) -> None:
    client: FlaskClient = create_app(tied.portal.services).test_client()
    headers = tied.portal.headers(tied.mei)
    at = f"/api/folders/{tied.folder}/source"
    assert client.get(at, headers=headers).status_code == 404
    tied.write("leave.md", "Twelve days.")
    tied.write("empty.txt", "")
    sent = client.put(at, headers=headers, json={"address": str(tied.top)})
    assert sent.status_code == 200, sent.text
    assert sent.json["last_run"] is None
    assert sent.json["owner"] == "mei"
    assert client.post(f"{at}/run", headers=headers).status_code == 202
    syncing.sync_due(tied.portal.services)
    run = client.get(at, headers=headers).json["last_run"]
    assert (run["added"], run["refused"], run["error"]) == (1, 1, None)
    page = client.get(f"/folders/{tied.folder}/source", headers=headers).text
    assert "1 added, 0 changed, 0 removed, 1 refused" in page
    assert "empty.txt" in page
    assert str(tied.top) in page
    chinese = headers | {"Accept-Language": "zh-CN"}
    page = client.get(f"/folders/{tied.folder}/source", headers=chinese).text
    assert "未接收" in page
    assert "每小时" in page
    assert client.delete(at, headers=headers).status_code == 204
    assert client.get(at, headers=headers).status_code == 404
