"""New passwords: which are refused and why, and checking one is cheap."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from argon2 import PasswordHasher
from flask.testing import FlaskClient

from portal import create_app
from portal.errors import (
    BlankPassword,
    BreachedListUnavailable,
    BreachedPassword,
    CommonPassword,
    InvalidSetting,
    PasswordLikeName,
    WeakPassword,
)
from portal.services import Services
from portal.services.people import accounts, invitations, passwords
from portal.settings import Settings, load_settings
from tests.conftest import PASSWORD, Portal

LEAKED = "a phrase that has leaked"
ALL_SIGNS = "4@8({[<3690!1|05$+7%2"


@pytest.fixture(scope="module")
def settings() -> Settings:
    return load_settings(public_url="https://wiki.acme.example")


def digest(password: str) -> str:
    return hashlib.sha1(password.encode()).hexdigest().upper()


def breached_file(folder: Path, *passwords_: str, filling: int = 2000) -> Path:
    """Write a sorted list in the format of Have I Been Pwned, with CRLF line ends and counts."""
    digests = {digest(f"filling {number}") for number in range(filling)}
    lines = sorted(digests | {digest(password) for password in passwords_})
    path = folder / "breached.txt"
    path.write_bytes(b"".join(f"{line}:{n}\r\n".encode() for n, line in enumerate(lines)))
    return path


@pytest.mark.parametrize(
    ("password", "reason"),
    [
        ("too short", WeakPassword),
        (" " * 10, BlankPassword),
        ("\u00a0\u3000\u2003" * 4, BlankPassword),
        ("\u200b" * 12, BlankPassword),
        ("password12", CommonPassword),
        ("P@ssw0rd12", CommonPassword),
        ("ｐａｓｓｗｏｒｄ１２", CommonPassword),
        ("qwertyuiop", CommonPassword),
        ("1234567890", CommonPassword),
        ("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", CommonPassword),
        ("administrator", CommonPassword),
        ("密码" * 6, CommonPassword),
        ("ada lovelace", PasswordLikeName),
        ("AdaLovelace", PasswordLikeName),
        ("lovelacelovelace", PasswordLikeName),
        ("lovelace2026", PasswordLikeName),
        ("portal2026!", PasswordLikeName),
        ("portalportal", PasswordLikeName),
        ("我的知识门户我的知识门户", PasswordLikeName),
    ],
)
def test_weak_passwords_are_refused_with_a_reason(
    settings: Settings, password: str, reason: type[WeakPassword]
) -> None:
    with pytest.raises(WeakPassword) as refused:
        passwords.check_password(settings, password, name="Ada Lovelace")
    assert type(refused.value) is reason


@pytest.mark.parametrize(
    "password",
    [
        "correct horse battery",
        "Zx9!kfjw2Q",
        "春眠不觉晓处处闻啼鸟夜来风雨声",
        "long-enough-password",
    ],
)
def test_good_passwords_are_accepted(settings: Settings, password: str) -> None:
    passwords.check_password(settings, password, name="Ada Lovelace")


@pytest.mark.parametrize(
    "password", [ALL_SIGNS * 40, "".join(f"{sign}a" for sign in ALL_SIGNS) * 20, "love" * 250]
)
def test_no_password_takes_long_to_check(settings: Settings, password: str) -> None:
    """zxcvbn alone takes 15 seconds for 72 of these characters."""
    started_at = time.thread_time()
    with suppress(WeakPassword):
        passwords.check_password(settings, password, name="a" * 100)
    assert time.thread_time() - started_at < 3


def test_breached_passwords_are_found_by_bisection(tmp_path: Path) -> None:
    all_of_them = [f"filling {number}" for number in range(200)]
    path = breached_file(tmp_path, filling=200)
    assert all(passwords._has_line(path, digest(one).encode()) for one in all_of_them)
    assert not any(passwords._has_line(path, digest(f"no {n}").encode()) for n in range(200))
    for edge in (b"0" * 40, b"F" * 40):
        assert not passwords._has_line(path, edge)
    path.write_bytes(b"")
    assert not passwords._has_line(path, b"0" * 40)
    path.write_bytes(digest("x").lower().encode())
    assert passwords._has_line(path, digest("x").encode())


def test_breached_password_is_refused_and_a_missing_list_is_reported(tmp_path: Path) -> None:
    path = breached_file(tmp_path, LEAKED)
    with_list = load_settings(passwords={"breached_file": str(path)})
    with pytest.raises(BreachedPassword):
        passwords.check_password(with_list, LEAKED, name="ada")
    passwords.check_password(with_list, PASSWORD, name="ada")
    path.unlink()
    with pytest.raises(BreachedListUnavailable):
        passwords.check_password(with_list, PASSWORD, name="ada")


def test_invalid_list_of_breached_passwords_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("password12\n")
    for path in (tmp_path / "list.txt", tmp_path / "none.txt", tmp_path):
        with pytest.raises(InvalidSetting, match="PORTAL_PASSWORDS__BREACHED_FILE"):
            load_settings(passwords={"breached_file": str(path)})


def test_invitation_accepts_no_weak_password(client: FlaskClient, portal: Portal) -> None:
    secret = invitations.invite(portal.services, portal.admin).secret
    client.application.config["WTF_CSRF_METHODS"] = set()

    def accept(name: str, password: str, language: str):
        form = {"name": name, "password": password, "password_again": password}
        return client.post(f"/invite/{secret}", data=form, headers={"Accept-Language": language})

    refused = accept("ada", "password12", "en")
    assert refused.status_code == 422
    assert "easy to guess" in refused.text
    assert "过于相近" in accept("lovelace-ada", "lovelace-ada", "zh-CN").text
    assert accept("ada", PASSWORD, "en").status_code == 303


def test_simple_password_of_the_operator_is_accepted_with_a_warning(
    make_services: Callable[..., Services], capsys: pytest.CaptureFixture[str]
) -> None:
    services = make_services(admin_password="password12")
    assert accounts.ensure_first_administrator(services) == ("admin", "password12")
    said = capsys.readouterr().err
    assert "weak_admin_password" in said
    assert "password12" not in said
    # An existing password keeps working even if it breaks the new rules.
    client = create_app(services).test_client()
    body = {"username": "admin", "password": "password12"}
    assert client.post("/api/auth/token", json=body).status_code == 200


def test_a_user_has_at_most_twenty_personal_tokens(portal: Portal) -> None:
    client = portal.client()

    def make() -> int:
        return client.post("/api/auth/tokens", json={"name": "x"}).status_code

    assert [make() for _ in range(21)] == [201] * 20 + [409]
    listed = client.get("/api/auth/tokens").json["tokens"]
    assert len(listed) == 20
    assert {token["last_used_at"] for token in listed} == {None}
    answer = client.post("/api/auth/tokens", json={"name": "x"})
    assert answer.json["error"]["code"] == "too_many_tokens"
    assert "20" in answer.json["error"]["message"]
    page = client.post("/account/tokens", data={"name": "x"})
    assert page.status_code == 409
    assert "Revoke one" in page.text
    client.delete(f"/api/auth/tokens/{listed[0]['id']}")
    assert make() == 201


def test_storage_is_limited_by_default_and_the_account_page_reports_it(
    client: FlaskClient, portal: Portal
) -> None:
    assert Settings.model_fields["quota_mb"].default == 10 * 1024
    page = client.get("/account", headers=portal.headers()).text
    assert "of 10.0 GB" in page or "of 10 GB" in page


def test_concurrent_password_checks_leave_half_of_the_cores_free(
    portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once, most = 0, 0

    class SlowHasher:
        def verify(self, _hash: str, _password: str) -> bool:
            nonlocal at_once, most
            at_once += 1
            most = max(most, at_once)
            time.sleep(0.02)
            at_once -= 1
            return True

    monkeypatch.setattr(accounts, "_hasher", SlowHasher())
    name = portal.admin.name
    with ThreadPoolExecutor(8) as pool:
        list(
            pool.map(lambda _: accounts.verify_password(portal.services, name, PASSWORD), range(8))
        )
    assert most == max(1, (os.cpu_count() or 1) // 2)


def test_unknown_users_cost_the_same_hash() -> None:
    assert not PasswordHasher().check_needs_rehash(accounts._DUMMY_HASH)
