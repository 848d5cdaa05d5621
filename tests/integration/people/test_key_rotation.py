"""The signing key: its minimum length, and rotation without interruption."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from portal import create_app
from portal.container import portal_name, read_secret_key
from portal.domain.people.audit import AuditFilter
from portal.errors import ServerSetup
from portal.http import cookies
from portal.services import Services
from portal.services.operations.reports import audit_log
from portal.services.people import accounts
from portal.settings import load_settings
from tests.conftest import PASSWORD, Portal
from tests.factories.browser import Browser

OLD = "the key from before, of good length indeed"
NEW = "the key from now on, of good length indeed"
TOKEN = "/api/auth/token"
MINE = "/api/auth/tokens"
CREDENTIALS = {"username": "admin", "password": PASSWORD}


def test_short_stored_key_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "secret_key").write_text("short")
    with pytest.raises(ServerSetup, match="fewer than 32 bytes"):
        read_secret_key(load_settings(data_dir=tmp_path))


def test_length_of_a_key_is_counted_in_bytes() -> None:
    assert load_settings(secret_key="门" * 11).secret_key is not None


@pytest.fixture
def portals(make_services: Callable[..., Services]) -> list[Services]:
    """Return the same portal before, during and after its key is replaced."""
    keys = [
        {"secret_key": OLD},
        {"secret_key": NEW, "secret_key_old": OLD},
        {"secret_key": NEW},
    ]
    made = [make_services(**key) for key in keys]
    accounts.ensure_first_administrator(made[0])
    return made


def test_tokens_of_the_old_key_are_valid_while_it_is_configured(portals: list[Services]) -> None:
    before, during, after = (create_app(services).test_client() for services in portals)
    old = before.post(TOKEN, json=CREDENTIALS).json
    headers = {"Authorization": f"Bearer {old['access_token']}"}
    assert during.get(MINE, headers=headers).status_code == 200
    assert after.get(MINE, headers=headers).status_code == 401
    # A token signed during the rotation is valid afterwards, and invalid for the old key.
    new = during.post("/api/auth/refresh", json={"refresh_token": old["refresh_token"]}).json
    headers = {"Authorization": f"Bearer {new['access_token']}"}
    assert after.get(MINE, headers=headers).status_code == 200
    assert before.get(MINE, headers=headers).status_code == 401


def test_browsers_stay_signed_in_with_their_forms_and_devices(portals: list[Services]) -> None:
    before, during, after = (Browser(create_app(services)) for services in portals)
    assert before.sign_in("admin", PASSWORD).status_code == 303
    csrf_token = before.csrf_token("/account")
    for name in (cookies.SESSION, cookies.FORM, cookies.DEVICE):
        cookie = before.client.get_cookie(name)
        assert cookie is not None
        for browser in (during, after):
            browser.client.set_cookie(name, cookie.value)
    # A form that was open while the portal restarted.
    form = {"csrf_token": csrf_token, "domain": "lab"}
    for browser, goes_to in ((during, "/account"), (after, "/login")):
        answer = browser.client.post("/account/preferences", data=form, **browser._request)
        assert answer.status_code == 303
        assert answer.location.startswith(goes_to)
    # Guesses from elsewhere do not lock this browser out: its device cookie stays valid.
    anonymous = during.client.application.test_client()
    for number in range(101):
        body = {"username": "admin", "password": "guess"}
        anonymous.post(TOKEN, json=body, environ_base={"REMOTE_ADDR": f"198.51.100.{number}"})
    during.client.delete_cookie(cookies.SESSION)
    assert during.sign_in("admin", PASSWORD).status_code == 303


def test_failed_sign_ins_of_both_keys_are_found_by_name(portals: list[Services]) -> None:
    before, during, _ = portals
    for services in (before, during):
        client = create_app(services).test_client()
        client.post(TOKEN, json={"username": "mallory", "password": "x"})
    admin = Portal(during, accounts.find_user(during, "admin")).admin
    found = audit_log.list_entries(during, admin, AuditFilter(user="mallory"))
    assert len(found.items) == 2


def test_limits_and_caches_in_redis_last_until_the_old_key_is_removed(
    portals: list[Services],
) -> None:
    before, during, after = (portal_name(services.secret_keys[0]) for services in portals)
    assert before == during != after
