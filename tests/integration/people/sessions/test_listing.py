"""The list of sessions, and notices of new devices."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from flask.testing import FlaskClient
from sqlalchemy import text

from portal import create_app
from portal.domain.people import SignInMethod
from portal.errors import InvalidToken
from portal.services import Services
from portal.services.people import sessions, tokens
from portal.web.people.sessions import METHOD_WORDS
from tests.conftest import PASSWORD, Portal
from tests.factories.browser import Browser

CHROME = "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 (KHTML) Chrome/140.0.0.0 Safari/537.36"


def listed(browser: Browser) -> list[dict[str, Any]]:
    return list(browser.get("/api/account/sessions").get_json()["sessions"])


def test_every_sign_in_method_has_words() -> None:
    assert set(METHOD_WORDS) == set(SignInMethod)


def test_list_names_device_address_method_and_last_use(client: FlaskClient) -> None:
    here = Browser(client.application, address="192.0.2.1")
    there = Browser(client.application, agent=CHROME, address="198.51.100.7")
    here.sign_in("admin", PASSWORD)
    there.sign_in("admin", PASSWORD)
    found = {one["current"]: one for one in listed(here)}
    assert found[True]["device"] == {"program": "Firefox", "platform": "Linux"}
    assert found[False]["device"] == {"program": "Chrome", "platform": "Windows"}
    assert found[False]["address"] == "198.51.100.7"
    assert found[False]["methods"] == ["password"]
    page = here.get("/account/sessions").text
    for words in ("Firefox on Linux", "Chrome on Windows", "198.51.100.7", "This session"):
        assert words in page
    assert re.search(r" ·\s+password ·\s", page)


def test_use_is_recorded_once_a_minute(portal: Portal, client: FlaskClient) -> None:
    browser = Browser(client.application, address="192.0.2.1")
    browser.sign_in("admin", PASSWORD)
    with portal.services.database.begin() as session:
        for table in ("sessions", "tokens"):
            session.execute(text(f"UPDATE {table} SET last_used_at = now() - interval '1 hour'"))
    browser._request["environ_base"] = {"REMOTE_ADDR": "198.51.100.7"}
    (moved,) = listed(browser)
    assert moved["address"] == "198.51.100.7"
    browser._request["environ_base"] = {"REMOTE_ADDR": "203.0.113.9"}
    assert listed(browser) == [moved]


def test_ended_session_is_out_at_once_in_every_process(
    portal: Portal, client: FlaskClient, make_services: Callable[..., Services]
) -> None:
    mine, lost = Browser(client.application), Browser(client.application)
    # Another process has its own connection pool and caches.
    elsewhere = Browser(create_app(make_services()))
    for browser in (mine, lost):
        browser.sign_in("admin", PASSWORD)
    elsewhere.client.set_cookie("portal_session", lost.cookie("portal_session") or "")
    assert elsewhere.get("/documents").status_code == 200
    (other,) = [one["id"] for one in listed(mine) if not one["current"]]
    assert mine.post(f"/account/sessions/{other}/end").status_code == 303
    assert elsewhere.get("/documents").status_code == 303
    assert lost.get("/documents").status_code == 303
    assert mine.get("/documents").status_code == 200


def test_ending_all_others_keeps_this_one_and_personal_tokens(
    portal: Portal, client: FlaskClient
) -> None:
    mine = Browser(client.application)
    mine.sign_in("admin", PASSWORD)
    api = sessions.sign_in(portal.services, name="admin", password=PASSWORD)
    _, secret = sessions.create_personal_token(
        portal.services, portal.admin, name="script", ttl_s=600
    )
    assert mine.call("DELETE", "/api/account/sessions").status_code == 204
    assert [one["current"] for one in listed(mine)] == [True]
    for token in (api.access_token, api.refresh_token):
        with pytest.raises(InvalidToken):
            tokens.authenticate(portal.services, token)
    with pytest.raises(InvalidToken):
        tokens.refresh(portal.services, api.refresh_token)
    assert tokens.authenticate(portal.services, secret)


def notices(browser: Browser) -> list[dict[str, Any]]:
    answer = browser.get("/api/notifications").get_json()
    return [
        notification["device"]
        for notification in answer["notifications"]
        if notification["kind"] == "new_device"
    ]


def events(portal: Portal, event: str) -> list[dict[str, Any]]:
    with portal.services.database.begin() as session:
        found = session.execute(
            text("SELECT details FROM audit_log WHERE event = :event"), {"event": event}
        )
        return list(found.scalars())


def test_new_browser_notifies_and_a_known_one_does_not(portal: Portal, client: FlaskClient) -> None:
    home = Browser(client.application)
    home.sign_in("admin", PASSWORD)
    assert notices(home) == []
    home.post("/logout")
    home.sign_in("admin", PASSWORD)
    assert notices(home) == []
    Browser(client.application, agent=CHROME, address="198.51.100.7").sign_in("admin", PASSWORD)
    expected = {"program": "Chrome", "platform": "Windows", "address": "198.51.100.7"}
    assert notices(home) == [expected]
    assert events(portal, "new_device") == [expected]
    assert "New sign-in to your account: Chrome on Windows" in home.get("/notifications").text
    assert 'data-unread="1"' in home.get("/documents").text


def test_thief_cannot_hide_the_notice_of_their_own_device(client: FlaskClient) -> None:
    owner, thief = Browser(client.application), Browser(client.application, agent=CHROME)
    owner.sign_in("admin", PASSWORD)
    thief.sign_in("admin", PASSWORD)
    thief.post("/logout")
    thief.sign_in("admin", PASSWORD)  # This browser is known by now.
    assert notices(thief) == []
    thief.post("/notifications/read")
    thief.call("POST", "/api/notifications/read", all=True)
    headers = {"HX-Request": "true"}
    form = {"csrf_token": thief.csrf_token("/account")}
    assert (
        thief.client.post("/notifications/deliver", data=form, headers=headers).status_code == 204
    )
    assert len(notices(owner)) == 1
    assert 'data-unread="1"' in owner.get("/documents").text
    owner.post("/notifications/read")
    assert 'data-unread="0"' in owner.get("/documents").text


def test_program_with_a_stolen_password_notifies_the_user(
    portal: Portal, client: FlaskClient
) -> None:
    owner = Browser(client.application)
    owner.sign_in("admin", PASSWORD)
    body = {"username": "admin", "password": PASSWORD}
    for _ in range(2):
        answer = client.post("/api/auth/token", json=body, headers={"User-Agent": "curl/8.5.0"})
        assert answer.status_code == 200
    assert [notice["program"] for notice in notices(owner)] == ["curl"]
