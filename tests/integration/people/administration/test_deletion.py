"""Deletion of accounts, and what happens to their documents."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from uuid import UUID

import pytest
from flask.testing import FlaskClient
from sqlalchemy import text

from portal.container import build_services
from portal.domain.documents import Visibility
from portal.domain.documents.folder_members import MemberKind
from portal.domain.documents.folders import FolderRole, FolderVisibility
from portal.domain.people import DocumentFate, User
from portal.errors import InvalidInput, InvalidToken, NoSuchAccount
from portal.services import Services
from portal.services.answers import conversations
from portal.services.documents import folders, library
from portal.services.documents.folders import members as folder_members
from portal.services.documents.intake import uploads
from portal.services.operations import account_deletion
from portal.services.people import sessions, tokens
from tests.conftest import PASSWORD, Portal, make_settings
from tests.factories.browser import Browser
from tests.factories.uploads import upload
from tests.integration.people.administration.conftest import rows


class Shelf:
    """ada's documents: shared, private, and a private one in the trash."""

    def __init__(self, portal: Portal) -> None:
        self.portal = portal
        self.ada = portal.user("ada")
        self.eve = portal.user("eve")
        private = Visibility.PRIVATE
        self.shared = portal.add("The canteen opens at noon.", owner=self.ada).id
        self.private = portal.add("My diary is secret.", owner=self.ada, visibility=private).id
        self.trashed = portal.add("An old draft.", owner=self.ada, visibility=private).id
        library.delete_document(portal.services, self.ada, self.trashed)

    def owners(self) -> dict[UUID, tuple[str | None, bool, bool]]:
        """Return, by document, the owner's name and whether it is deleted and purged."""
        found = rows(
            self.portal,
            "SELECT d.id, u.name, d.deleted_at IS NOT NULL, d.purged_at IS NOT NULL "
            "FROM documents d LEFT JOIN users u ON u.id = d.owner_id",
        )
        return {row[0]: (row[1], row[2], row[3]) for row in found}  # type: ignore[misc]


@pytest.fixture
def shelf(portal: Portal) -> Shelf:
    return Shelf(portal)


ERASED = (None, True, True)
FATES = {
    "transfer": (("eve", False, False), ("eve", False, False), ("eve", True, False)),
    "keep_shared": (("admin", False, False), ERASED, ERASED),
    "trash": (("admin", True, False), ("admin", True, False), ("admin", True, False)),
    "purge": (ERASED, ERASED, ERASED),
}


@pytest.mark.parametrize("fate", FATES)
@pytest.mark.parametrize("way", ["page", "api"])
def test_documents_of_a_deleted_account_are_handled_as_chosen(
    shelf: Shelf, admin: Browser, fate: str, way: str
) -> None:
    if way == "page":
        form = {"documents": fate, "heir": "eve"}
        assert admin.post(f"/admin/users/{shelf.ada.id}/delete", form).status_code == 303
    else:
        path = f"/api/users/{shelf.ada.id}?documents={fate}&to=eve"
        assert admin.call("DELETE", path).status_code == 204
    found = shelf.owners()
    assert (found[shelf.shared], found[shelf.private], found[shelf.trashed]) == FATES[fate]


def test_deletion_page_counts_the_documents_of_the_user(
    shelf: Shelf, admin: Browser, client: FlaskClient
) -> None:
    owned = "Shared: 1 · private: 2 · of these in the trash: 1"
    assert owned in admin.get(f"/admin/users/{shelf.ada.id}/delete").text
    headers = shelf.portal.headers(shelf.ada)
    assert owned in client.get("/account/delete", headers=headers).text
    none = "Shared: 0 · private: 0 · of these in the trash: 0"
    assert none in admin.get(f"/admin/users/{shelf.eve.id}/delete").text


def test_member_who_gets_a_folder_becomes_only_its_owner(shelf: Shelf, admin: Browser) -> None:
    services, ada = shelf.portal.services, shelf.ada
    folder_id = folders.create_folder(
        services, ada, name="Plans", visibility=FolderVisibility.MEMBERS
    )
    given = {"kind": MemberKind.USER, "role": FolderRole.READER}
    folder_members.set_member(services, ada, folder_id, name="eve", **given)  # type: ignore[arg-type]
    shelf.portal.user("ben")
    folder_members.set_member(services, ada, folder_id, name="ben", **given)  # type: ignore[arg-type]
    path = f"/api/users/{ada.id}?documents=transfer&to=eve"
    assert admin.call("DELETE", path).status_code == 204
    assert folders.get_folder(services, shelf.eve, folder_id).folder.owner_name == "eve"
    listed = folder_members.list_members(services, shelf.eve, folder_id)
    assert [member.name for member in listed] == ["ben"]


def test_own_account_is_deleted_only_on_the_account_page(shelf: Shelf, admin: Browser) -> None:
    asked = admin.get(f"/admin/users/{shelf.portal.admin.id}/delete")
    assert (asked.status_code, asked.headers["Location"]) == (302, "/account/delete")
    assert "You become the owner" not in admin.get("/account/delete").text
    assert "You become the owner" in admin.get(f"/admin/users/{shelf.ada.id}/delete").text


def test_deletion_erases_personal_data_but_the_audit_log_keeps_the_name(
    shelf: Shelf, admin: Browser
) -> None:
    services, ada = shelf.portal.services, shelf.ada
    conversations.create(services, ada, "About the canteen")
    theirs = Browser(admin.client.application)
    theirs.sign_in("ada", PASSWORD)
    _, secret = sessions.create_personal_token(services, ada, name="ci", ttl_s=600)
    library_token = shelf.portal.token(ada)
    admin.post(f"/admin/users/{ada.id}/delete", {"documents": "trash"})
    assert theirs.get("/documents").status_code == 303
    for token in (secret, library_token):
        with pytest.raises(InvalidToken):
            tokens.authenticate(services, token)
    owned = ("conversations", "tokens", "sessions", "known_devices", "notifications")
    for table in owned:
        assert not rows(shelf.portal, f"SELECT 1 FROM {table} WHERE user_id = '{ada.id}'"), table
    (deleted,) = rows(
        shelf.portal,
        "SELECT actor_name, subject_title, details->>'documents' FROM audit_log "
        "WHERE event = 'user_deleted'",
    )
    assert deleted == ("admin", "ada", "trash")
    signed_in = rows(shelf.portal, "SELECT 1 FROM audit_log WHERE actor_name = 'ada'")
    assert signed_in
    # The name is free again, and a new account of that name inherits nothing.
    again = shelf.portal.user("ada")
    assert again.id != ada.id


@pytest.mark.parametrize(
    ("documents", "new_owner", "error"),
    [
        (DocumentFate.TRANSFER, "nobody", NoSuchAccount),
        (DocumentFate.TRANSFER, "", NoSuchAccount),
        (DocumentFate.TRANSFER, "ADA", InvalidInput),
    ],
)
def test_deletion_without_a_new_owner_changes_nothing(
    shelf: Shelf, documents: DocumentFate, new_owner: str, error: type[Exception]
) -> None:
    before = shelf.owners()
    with pytest.raises(error):
        account_deletion.delete_account(
            shelf.portal.services,
            shelf.portal.admin,
            shelf.ada.id,
            documents=documents,
            new_owner_name=new_owner,
        )
    assert shelf.owners() == before
    assert sessions.sign_in(shelf.portal.services, name="ada", password=PASSWORD)


def test_deletion_that_fails_midway_leaves_all_as_it_was(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    from portal.store.people import accounts as account_store

    def fail(*_: object) -> None:
        raise RuntimeError

    before = shelf.owners()
    monkeypatch.setattr(account_store, "delete_user", fail)
    with pytest.raises(RuntimeError):
        account_deletion.delete_account(
            shelf.portal.services, shelf.portal.admin, shelf.ada.id, documents=DocumentFate.PURGE
        )
    assert shelf.owners() == before


def test_users_delete_their_own_account_with_their_password(
    shelf: Shelf, client: FlaskClient
) -> None:
    theirs = Browser(client.application)
    theirs.sign_in("ada", PASSWORD)
    assert "delete-account" in theirs.get("/account").text
    form = {"documents": "keep_shared", "confirm_password": "a guess"}
    assert theirs.post("/account/delete", form).status_code == 422
    form["confirm_password"] = ""
    assert theirs.post("/account/delete", form).status_code == 422
    form |= {"documents": "transfer", "confirm_password": PASSWORD}
    assert theirs.post("/account/delete", form).status_code == 422
    form["documents"] = "keep_shared"
    assert theirs.post("/account/delete", form).status_code == 303
    assert theirs.get("/documents").status_code == 303
    found = shelf.owners()
    assert found[shelf.shared] == ("admin", False, False)
    assert found[shelf.private] == ERASED


def test_own_account_is_deleted_by_api_with_the_password(shelf: Shelf, client: FlaskClient) -> None:
    pair = sessions.sign_in(shelf.portal.services, name="ada", password=PASSWORD)
    headers = {"Authorization": f"Bearer {pair.access_token}"}
    body = {"documents": "purge", "password": "a guess"}
    path = "/api/account/delete"
    assert client.post(path, json=body, headers=headers).status_code == 401
    body["password"] = PASSWORD
    assert client.post(path, json=body, headers=headers).status_code == 204
    assert client.get("/documents", headers=headers).status_code == 303


def _upload_until_refused(data_dir: str, url: str, user: User) -> int:
    """Upload in a separate process until the account is gone; return how many were stored."""
    services = build_services(make_settings(Path(data_dir), url))
    try:
        for number in range(2000):
            try:
                uploads.store_upload(
                    services, user, stream=upload(f"Note {number}."), file_name=f"{number}.txt"
                )
            except InvalidToken:
                return number
    finally:
        services.database.dispose()
    return -1


def _delete_after_some(data_dir: str, url: str, admin: User, user_id: UUID) -> None:
    services = build_services(make_settings(Path(data_dir), url))
    try:
        while True:
            with services.database.begin() as session:
                if (session.execute(text("SELECT count(*) FROM documents")).scalar() or 0) >= 5:
                    break
        account_deletion.delete_account(
            services, admin, user_id, documents=DocumentFate.TRANSFER, new_owner_name="eve"
        )
    finally:
        services.database.dispose()


def test_no_upload_is_lost_or_left_without_an_owner_while_its_account_is_deleted(
    portal: Portal, database_url: str, tmp_path: Path
) -> None:
    ada, _ = portal.user("ada"), portal.user("eve")
    where = (str(tmp_path), database_url)
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        uploading = pool.submit(_upload_until_refused, *where, ada)
        deleting = pool.submit(_delete_after_some, *where, portal.admin, ada.id)
        deleting.result(timeout=120)
        kept = uploading.result(timeout=120)
    assert kept >= 5
    owners = rows(
        portal,
        "SELECT u.name, count(*) FROM documents d LEFT JOIN users u ON u.id = d.owner_id "
        "GROUP BY u.name",
    )
    assert owners == [("eve", kept)]


def test_request_of_a_just_deleted_account_is_refused_as_signed_out(
    portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = portal.user("ada")
    client = portal.client(ada)
    check = uploads.check

    def delete_meanwhile(services: Services, *given: object) -> object:
        account_deletion.delete_account(
            services, portal.admin, ada.id, documents=DocumentFate.PURGE
        )
        return check(services, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(uploads, "check", delete_meanwhile)
    file = {"file": (upload("A late note."), "late.txt")}
    answer = client.post("/api/knowledge/documents", data=file)
    assert answer.status_code == 401
    assert not rows(portal, "SELECT 1 FROM documents")
