"""Ways around the second step, all closed."""

from __future__ import annotations

from flask import Flask

from portal import create_app
from portal.services.people import accounts, second_factors
from tests.conftest import PASSWORD, Portal
from tests.factories.browser import Browser
from tests.factories.second_factors import PAGE, set_up_totp
from tests.integration.people.two_step.conftest import DOCUMENTS, STEP, audited, is_signed_in, step


def test_pending_sign_in_opens_nothing(portal: Portal, app: Flask, visitor: Browser) -> None:
    set_up_totp(portal, portal.admin)
    visitor.sign_in("admin", PASSWORD)
    state = visitor.cookie("portal_sign_in")
    assert state
    thief = app.test_client()
    thief.set_cookie("portal_session", state)
    assert thief.get("/documents").status_code == 303
    headers = {"Authorization": f"Bearer {state}"}
    assert app.test_client().get(DOCUMENTS, headers=headers).status_code == 401
    for path in ("/documents", "/account", PAGE, "/admin", "/chat"):
        assert "/login" in visitor.get(path).headers["Location"], path


def test_second_step_without_the_first_leads_back_to_it(visitor: Browser) -> None:
    for answer in (visitor.get(STEP), visitor.post(STEP, {"code": "123456"}, page="/login")):
        assert (answer.status_code, answer.headers["Location"]) == (303, "/login")


def test_code_of_another_user_does_not_pass(portal: Portal, app: Flask) -> None:
    eve = portal.user("eve")
    eves_phone, eves_codes = set_up_totp(portal, eve)
    set_up_totp(portal, portal.admin)
    browser = Browser(app)
    browser.sign_in("admin", PASSWORD)
    assert step(browser, eves_phone.code()).status_code == 401
    assert step(browser, eves_codes[0]).status_code == 401


def test_pending_sign_in_of_another_user_signs_that_user_in_only_with_their_code(
    portal: Portal, app: Flask
) -> None:
    eve = portal.user("eve")
    eves_phone, _ = set_up_totp(portal, eve)
    set_up_totp(portal, portal.admin)
    victim, attacker = Browser(app), Browser(app)
    victim.sign_in("admin", PASSWORD)
    attacker.sign_in("eve", PASSWORD)
    # A code from the attacker's own app does not complete a stolen pending sign-in.
    stolen = victim.cookie("portal_sign_in")
    assert stolen
    attacker.client.set_cookie("portal_sign_in", stolen)
    assert step(attacker, eves_phone.code()).status_code == 401
    assert not is_signed_in(attacker)


def test_password_that_changes_meanwhile_stops_the_second_step(
    portal: Portal, visitor: Browser
) -> None:
    phone, _ = set_up_totp(portal, portal.admin)
    visitor.sign_in("admin", PASSWORD)
    accounts.change_password(
        portal.services, portal.admin, current=PASSWORD, new="another long password"
    )
    assert step(visitor, phone.code()).status_code == 401
    assert not is_signed_in(visitor)


def test_changing_the_password_keeps_the_session_and_its_second_factor(
    portal: Portal, visitor: Browser
) -> None:
    phone, _ = set_up_totp(portal, portal.admin)
    visitor.sign_in("admin", PASSWORD)
    step(visitor, phone.code())
    new = "another long password"
    form = {"current": PASSWORD, "new": new, "new_again": new}
    assert visitor.post("/account/password", form).status_code == 303
    assert is_signed_in(visitor)


def test_older_session_needs_the_second_step_after_a_new_password(
    portal: Portal, visitor: Browser
) -> None:
    visitor.sign_in("admin", PASSWORD)
    set_up_totp(portal, portal.admin)  # In another browser.
    new = "another long password"
    form = {"current": PASSWORD, "new": new, "new_again": new}
    assert visitor.post("/account/password", form).headers["Location"].startswith(STEP)
    assert not is_signed_in(visitor)


def test_administrator_removes_the_second_factors_of_a_user(portal: Portal, app: Flask) -> None:
    ada = portal.user("ada")
    set_up_totp(portal, ada)
    browser = Browser(app)
    browser.sign_in("admin", PASSWORD)
    path = f"/admin/users/{ada.id}/second-factors/remove"
    assert path in browser.get("/admin").text
    assert browser.post(path, page="/admin").status_code == 303
    assert path not in browser.get("/admin").text
    with_password = Browser(app)
    with_password.sign_in("ada", PASSWORD)
    assert is_signed_in(with_password)
    assert audited(portal, "second_factor_removed") == [{"method": "all"}]


def test_stale_session_changes_no_second_factor_without_the_password(
    portal: Portal, app: Flask, visitor: Browser
) -> None:
    ada = portal.user("ada")
    set_up_totp(portal, ada)
    visitor.sign_in("admin", PASSWORD)
    portal.execute("UPDATE sessions SET authenticated_at = now() - interval '1 hour'")
    paths = [
        f"/admin/users/{ada.id}/second-factors/remove",
        *(f"{PAGE}/{name}" for name in ("totp", "totp/confirm", "totp/remove")),
        *(f"{PAGE}/{name}" for name in ("passkeys", "passkeys/options", "recovery-codes")),
    ]
    for path in paths:
        assert visitor.post(path, page=PAGE).status_code == 403, path
    api = "/api/account/second-factors"
    assert visitor.call("DELETE", f"{api}/totp").status_code == 403
    assert second_factors.has_any(portal.services, ada.id)
    # With the password, the same form goes through.
    form = {"confirm_password": PASSWORD}
    assert visitor.post(paths[0], form, page=PAGE).status_code == 303


def test_changed_secret_key_does_not_skip_the_second_step(portal: Portal, make_services) -> None:
    phone, codes = set_up_totp(portal, portal.admin)
    services = make_services(secret_key="another key that is long enough for HS256, really")
    moved = Browser(create_app(services))
    moved.sign_in("admin", PASSWORD)
    refused = step(moved, phone.code())
    assert refused.status_code == 401
    assert "secret key has changed" in refused.text
    assert step(moved, codes[0]).status_code == 303


def test_rotated_secret_key_reads_what_the_old_one_sealed(portal: Portal, make_services) -> None:
    phone, _ = set_up_totp(portal, portal.admin)
    new, old = "another key that is long enough for HS256, really", portal.services.secret_key
    rotated = make_services(secret_key=new, secret_key_old=old)
    second_factors.check_code(rotated, portal.admin.id, phone.code())
    # Using the factor re-encrypted its secret with the new key: the old one is no longer needed.
    second_factors.check_code(make_services(secret_key=new), portal.admin.id, phone.code(1))


def test_dialog_of_an_ended_session_leads_to_the_second_step_and_back(
    portal: Portal, visitor: Browser
) -> None:
    authenticator, _ = set_up_totp(portal, portal.admin)
    form = {"csrf_token": visitor.csrf_token("/login"), "next": "/chat"}
    form |= {"name": "admin", "password": PASSWORD}
    headers = {"HX-Request": "true", "Referer": "http://localhost/chat"}
    answer = visitor.client.post("/login", data=form, headers=headers)
    assert (answer.status_code, answer.text) == (200, "")
    # The page does not continue as if the user were signed in.
    assert "HX-Trigger" not in answer.headers
    assert not is_signed_in(visitor)
    address = answer.headers["HX-Redirect"]
    assert address.startswith(STEP)
    done = visitor.post(address, {"code": authenticator.code()}, page=address)
    assert (done.status_code, done.location) == (303, "/chat")
    assert is_signed_in(visitor)
