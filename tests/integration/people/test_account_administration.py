"""Administration of accounts: roles, password resets and deletion."""

from __future__ import annotations

import multiprocessing
import re
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from uuid import UUID

import pytest
from click.testing import CliRunner
from flask.testing import FlaskClient
from sqlalchemy import text

from portal import create_app
from portal.container import build_services
from portal.domain.documents import Visibility
from portal.domain.people import DocumentFate, User
from portal.errors import Conflict, InvalidInput, InvalidToken, NoSuchAccount, NotFound
from portal.processes.cli import main
from portal.services import Services
from portal.services.answers import conversations
from portal.services.documents import library
from portal.services.documents.intake import uploads
from portal.services.operations import account_deletion
from portal.services.people import accounts, administration, sessions, tokens
from tests.conftest import PASSWORD, Portal, make_settings
from tests.factories.browser import Browser
from tests.factories.uploads import upload

NEW_PASSWORD = "a quite different password"


def rows(portal: Portal, statement: str, **values: object) -> list[tuple[object, ...]]:
    with portal.services.database.begin() as session:
        return [tuple(row) for row in session.execute(text(statement), values)]


@pytest.fixture
def admin(portal: Portal, client: FlaskClient) -> Browser:
    browser = Browser(client.application)
    browser.sign_in("admin", PASSWORD)
    return browser


def test_pages_of_the_administration_share_one_navigation(portal: Portal, admin: Browser) -> None:
    pages = re.findall(r'<a href="(/admin[^"]*)"', _navigation(admin, "/admin"))
    assert len(pages) > 6
    user = f"/admin/users/{portal.user('ada').id}"
    for page, current in [*((page, page) for page in pages), (user, "/admin")]:
        shown = _navigation(admin, page)
        assert re.findall(r'<a href="(/admin[^"]*)"', shown) == pages
        assert re.findall(r'<a href="([^"]*)"[^>]*aria-current', shown) == [current]


def _navigation(admin: Browser, page: str) -> str:
    found = admin.client.get(page).get_data(as_text=True)
    return found.partition('<nav class="admin-nav"')[2].partition("</nav>")[0]


# --- roles ----------------------------------------------------------------------------------------


def test_role_counts_from_the_next_request_on(portal: Portal, admin: Browser) -> None:
    ada = portal.user("ada")
    theirs = portal.headers(ada)
    assert admin.client.get("/admin", headers=theirs).status_code == 403
    assert admin.post(f"/admin/users/{ada.id}/role", {"role": "admin"}).status_code == 303
    assert admin.client.get("/admin", headers=theirs).status_code == 200
    assert admin.post(f"/admin/users/{ada.id}/role", {"role": "user"}).status_code == 303
    assert admin.client.get("/admin", headers=theirs).status_code == 403


def test_last_administrator_keeps_the_role_and_the_account(portal: Portal, admin: Browser) -> None:
    user = f"/admin/users/{portal.admin.id}"
    portal.user("ada")
    answer = admin.post(f"{user}/role", {"role": "user"})
    assert answer.status_code == 409
    assert "last administrator" in answer.text
    assert admin.post(f"{user}/delete", {"documents": "purge"}).status_code == 409
    form = {"documents": "purge", "confirm_password": PASSWORD}
    assert admin.post("/account/delete", form).status_code == 409
    assert admin.call("PATCH", f"/api/users/{portal.admin.id}", disabled=True).status_code == 409
    assert admin.get("/admin").status_code == 200


@pytest.mark.parametrize("way", ["demote", "delete", "disable"])
def test_two_administrators_cannot_remove_each_other_at_once(portal: Portal, way: str) -> None:
    other = portal.user("other", is_admin=True)
    start = threading.Barrier(2)

    def remove(actor: User, target: User) -> bool:
        start.wait()
        try:
            if way == "demote":
                administration.set_role(portal.services, actor, target.id, is_admin=False)
            elif way == "disable":
                accounts.set_disabled(portal.services, actor, target.id, disabled=True)
            else:
                fate = DocumentFate.KEEP_SHARED
                account_deletion.delete_account(portal.services, actor, target.id, documents=fate)
        except Conflict:
            return False
        return True

    with ThreadPoolExecutor(2) as pool:
        pairs = [(portal.admin, other), (other, portal.admin)]
        done = list(pool.map(lambda pair: remove(*pair), pairs))
    assert sorted(done) == [False, True]
    left = rows(portal, "SELECT 1 FROM users WHERE is_admin AND disabled_at IS NULL")
    assert len(left) == 1


# --- passwords ------------------------------------------------------------------------------------


def reset_link(admin: Browser, user: User) -> str:
    page = admin.post(f"/admin/users/{user.id}/password").text
    found = re.search(r'value="http://[^/]+(/reset/[^"]+)"', page)
    assert found is not None
    return found[1]


def set_password(app: Browser, link: str, password: str = NEW_PASSWORD) -> int:
    form = {"password": password, "password_again": password}
    return app.post(link, form, page=link).status_code


def test_link_sets_a_password_once_and_ends_every_session(portal: Portal, admin: Browser) -> None:
    ada = portal.user("ada")
    theirs = Browser(admin.client.application)
    theirs.sign_in("ada", PASSWORD)
    _, personal = sessions.create_personal_token(portal.services, ada, name="ci", ttl_s=600)
    link = reset_link(admin, ada)
    assert theirs.get("/documents").status_code == 303
    with pytest.raises(InvalidToken):
        tokens.authenticate(portal.services, personal)
    # The old password no longer works, even before the new one is set.
    assert theirs.sign_in("ada", PASSWORD).status_code == 401
    assert set_password(theirs, link, "short") == 422
    assert set_password(theirs, link) == 303
    assert theirs.get(link).status_code == 404
    form = {"csrf_token": theirs.csrf_token(), "password": PASSWORD, "password_again": PASSWORD}
    assert theirs.client.post(link, data=form).status_code == 404
    assert theirs.sign_in("ada", NEW_PASSWORD).status_code == 303
    # The link is shown only once.
    assert link not in admin.get(f"/admin/users/{ada.id}").text


def test_link_uses_the_public_address_not_the_host_header(
    make_services: Callable[..., Services],
) -> None:
    services = make_services(public_url="https://portal.example.org")
    portal = Portal.of(services)
    ada = portal.user("ada")
    answer = (
        create_app(services)
        .test_client()
        .post(f"/api/users/{ada.id}/password-reset", headers=portal.headers())
    )
    assert answer.get_json()["url"].startswith("https://portal.example.org/reset/")


def test_expired_replaced_and_disabled_links_are_not_there(portal: Portal, admin: Browser) -> None:
    ada = portal.user("ada")
    first = reset_link(admin, ada)
    second = reset_link(admin, ada)
    anonymous = Browser(admin.client.application)
    assert [anonymous.get(link).status_code for link in (first, second)] == [404, 200]
    accounts.set_disabled(portal.services, portal.admin, ada.id, disabled=True)
    assert anonymous.get(second).status_code == 404
    accounts.set_disabled(portal.services, portal.admin, ada.id, disabled=False)
    rows(portal, "UPDATE password_resets SET expires_at = now() RETURNING 1")
    assert anonymous.get(second).status_code == 404


def test_link_used_twice_at_once_counts_once(portal: Portal) -> None:
    ada = portal.user("ada")
    reset = administration.begin_password_reset(portal.services, portal.admin, ada.id)

    def use(number: int) -> bool:
        try:
            administration.finish_password_reset(
                portal.services, reset.secret, password=f"seven blue herons {number}"
            )
        except NotFound:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(use, range(4))) == 1


def test_secret_of_a_link_is_not_in_the_log(
    portal: Portal, admin: Browser, caplog: pytest.LogCaptureFixture
) -> None:
    link = reset_link(admin, portal.user("ada"))
    secret = link.rpartition("/")[2]
    assert set_password(Browser(admin.client.application), link, "short") == 422
    logged = " ".join(str(record.msg) for record in caplog.records)
    assert "/reset/" in logged
    assert secret not in logged


def test_stale_session_resets_no_password(portal: Portal, admin: Browser) -> None:
    ada = portal.user("ada")
    rows(portal, "UPDATE sessions SET authenticated_at = now() - interval '1 hour' RETURNING 1")
    for path in ("password", "role", "delete", "sessions/end"):
        answer = admin.post(f"/admin/users/{ada.id}/{path}", {"role": "admin"})
        assert answer.status_code == 403, path
        assert "confirm-form" in answer.text
    assert admin.call("DELETE", f"/api/users/{ada.id}?documents=purge").status_code == 403
    assert sessions.sign_in(portal.services, name="ada", password=PASSWORD)


def test_administrator_ends_the_sessions_of_a_user(portal: Portal, admin: Browser) -> None:
    ada = portal.user("ada")
    theirs = Browser(admin.client.application)
    for end in ("page", "api"):
        theirs.sign_in("ada", PASSWORD)
        assert theirs.get("/documents").status_code == 200
        if end == "page":
            admin.post(f"/admin/users/{ada.id}/sessions/end")
        else:
            admin.call("DELETE", f"/api/users/{ada.id}/sessions")
        assert theirs.get("/documents").status_code == 303


# --- the command line -----------------------------------------------------------------------------


@pytest.fixture
def run(portal: Portal, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str]]:
    from portal.processes.cli import users

    monkeypatch.setattr(users, "open_services", lambda _ctx: portal.services)

    def call(*arguments: str, typed: str = "") -> tuple[int, str]:
        result = CliRunner().invoke(main, ["user", *arguments], input=typed)
        return result.exit_code, result.output

    return call


def test_change_of_an_account_is_made_whole_or_not_at_all(portal: Portal, admin: Browser) -> None:
    ada = portal.user("ada", is_admin=True)
    answer = admin.call("PATCH", f"/api/users/{ada.id}", is_admin=False, disabled=True)
    assert (answer.get_json()["is_admin"], bool(answer.get_json()["disabled_at"])) == (False, True)
    # No other administrator could enable it again.
    own = f"/api/users/{portal.admin.id}"
    assert admin.call("PATCH", own, is_admin=True, disabled=True).status_code == 409
    assert admin.call("PATCH", own, is_admin=False).status_code == 409
    names = [one["name"] for one in admin.get("/api/users").get_json()["users"]]
    assert names == ["ada", "admin"]


def test_operator_sets_a_password(portal: Portal, run: Callable[..., tuple[int, str]]) -> None:
    token = portal.token(portal.user("ada"))
    assert run("password", "ada", "--password-stdin", typed=f"{NEW_PASSWORD}\n")[0] == 0
    with pytest.raises(InvalidToken):
        tokens.authenticate(portal.services, token)
    assert sessions.sign_in(portal.services, name="ada", password=NEW_PASSWORD)
    assert run("password", "ada", typed=f"{PASSWORD}\n{PASSWORD}\n")[0] == 0
    assert sessions.sign_in(portal.services, name="ada", password=PASSWORD)
    assert run("password", "nobody", "--password-stdin", typed="x\n")[0] == 1
    assert run("password", "ada", "--password-stdin", typed="short\n")[0] == 1


def test_operator_deletes_and_changes_roles(
    portal: Portal, run: Callable[..., tuple[int, str]]
) -> None:
    ada, eve = portal.user("ada"), portal.user("eve")
    document = portal.add("Annual leave is fifteen days.", owner=ada)
    assert run("delete", "ada", "--yes")[0] == 2
    assert run("delete", "ada", "--documents", "transfer", "--yes")[0] == 2
    assert run("delete", "ada", "--documents", "purge", "--to", "eve", "--yes")[0] == 2
    assert run("delete", "ada", "--documents", "transfer", "--to", "nobody", "--yes")[0] == 1
    assert run("delete", "ada", "--documents", "transfer", "--to", "eve", "--yes")[0] == 0
    assert library.get_summary(portal.services, eve, document.id).owner_name == "eve"
    assert run("delete", "admin", "--documents", "trash", "--yes")[0] == 1
    assert run("role", "eve", "admin")[0] == 0
    assert run("role", "admin", "user")[0] == 0
    assert run("role", "eve", "user")[0] == 1


# --- deletion -------------------------------------------------------------------------------------


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
def test_documents_of_a_deleted_account_become_what_was_chosen(
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


def test_conversations_tokens_and_names_go_and_the_audit_log_keeps_the_name(
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
    ("documents", "heir", "error"),
    [
        (DocumentFate.TRANSFER, "nobody", NoSuchAccount),
        (DocumentFate.TRANSFER, "", NoSuchAccount),
        (DocumentFate.TRANSFER, "ADA", InvalidInput),
    ],
)
def test_deletion_without_an_heir_changes_nothing(
    shelf: Shelf, documents: DocumentFate, heir: str, error: type[Exception]
) -> None:
    before = shelf.owners()
    with pytest.raises(error):
        account_deletion.delete_account(
            shelf.portal.services,
            shelf.portal.admin,
            shelf.ada.id,
            documents=documents,
            heir_name=heir,
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


def test_users_delete_no_account_of_others(shelf: Shelf, client: FlaskClient) -> None:
    headers = shelf.portal.headers(shelf.eve)
    path = f"/api/users/{shelf.ada.id}?documents=purge"
    assert client.delete(path, headers=headers).status_code == 403
    assert shelf.owners()[shelf.private] == ("ada", False, False)


# --- a deletion and uploads at the same time ------------------------------------------------------


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
            services, admin, user_id, documents=DocumentFate.TRANSFER, heir_name="eve"
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


def test_request_of_an_account_that_is_just_gone_is_refused_as_signed_out(
    portal: Portal, client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = portal.user("ada")
    headers = portal.headers(ada)
    check = uploads.check

    def delete_meanwhile(services: Services, *given: object) -> object:
        account_deletion.delete_account(
            services, portal.admin, ada.id, documents=DocumentFate.PURGE
        )
        return check(services, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(uploads, "check", delete_meanwhile)
    file = {"file": (upload("A late note."), "late.txt")}
    answer = client.post("/api/knowledge/documents", data=file, headers=headers)
    assert answer.status_code == 401
    assert not rows(portal, "SELECT 1 FROM documents")
