"""Roles, passwords and sessions, as administrators and the operator change them."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from click.testing import CliRunner

from portal import create_app
from portal.domain.people import DocumentFate, User
from portal.errors import Conflict, InvalidToken, NotFound
from portal.processes.cli import main
from portal.services import Services
from portal.services.documents import library
from portal.services.operations import account_deletion
from portal.services.people import accounts, administration, sessions, tokens
from tests.conftest import PASSWORD, Portal
from tests.factories.browser import Browser
from tests.integration.people.administration.conftest import rows

NEW_PASSWORD = "a quite different password"


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


def test_role_takes_effect_at_the_next_request(portal: Portal, admin: Browser) -> None:
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


def reset_link(admin: Browser, user: User) -> str:
    page = admin.follow(admin.post(f"/admin/users/{user.id}/password")).text
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


def test_expired_replaced_and_disabled_links_are_not_found(portal: Portal, admin: Browser) -> None:
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


def test_link_used_several_times_at_once_works_once(portal: Portal) -> None:
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


@pytest.fixture
def run(portal: Portal, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str]]:
    from portal.processes.cli import users

    monkeypatch.setattr(users, "open_services", lambda _ctx: portal.services)

    def call(*arguments: str, typed: str = "") -> tuple[int, str]:
        result = CliRunner().invoke(main, ["user", *arguments], input=typed)
        return result.exit_code, result.output

    return call


def test_change_of_an_account_is_all_or_nothing(portal: Portal, admin: Browser) -> None:
    ada = portal.user("ada", is_admin=True)
    answer = admin.call("PATCH", f"/api/users/{ada.id}", is_admin=False, disabled=True)
    assert (answer.get_json()["is_admin"], bool(answer.get_json()["disabled_at"])) == (False, True)
    # No other administrator could enable it again.
    own = f"/api/users/{portal.admin.id}"
    assert admin.call("PATCH", own, is_admin=True, disabled=True).status_code == 409
    assert admin.call("PATCH", own, is_admin=False).status_code == 409
    names = [user["name"] for user in admin.get("/api/users").get_json()["users"]]
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
