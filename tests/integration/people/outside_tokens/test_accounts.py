"""Accounts behind tokens of an outside issuer: whose they are, their role, and revocation."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from click.testing import CliRunner

from portal.errors import InvalidToken, NoSuchAccount, UnknownSubject
from portal.processes.cli import main
from portal.services.people import accounts, tokens
from portal.services.people.federation import outside_accounts
from tests.conftest import Portal
from tests.factories.servers.issuer import AUDIENCE, ISSUER, claims, sign
from tests.integration.people.outside_tokens.asking import (
    DOCUMENTS,
    MakePortal,
    client_of,
    outcome,
    status,
)


def test_unlinked_subject_is_reported(portal: Portal) -> None:
    client = client_of(portal)
    headers = {"Authorization": f"Bearer {sign(claims('somebody', preferred_username='ada'))}"}
    answer = client.get(DOCUMENTS, headers=headers)
    assert answer.status_code == 401
    assert answer.get_json()["error"]["code"] == "unknown_subject"


def test_signature_in_another_spelling_brings_no_ended_token_back(portal: Portal) -> None:
    token = sign(claims())
    client = client_of(portal)
    assert status(client, token) == 200
    headers = {"Authorization": f"Bearer {token}"}
    assert client.post("/api/auth/revoke", json={}, headers=headers).status_code == 204
    assert status(client, token) == 401
    # Some bits of a signature's last letter are ignored.
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    last = alphabet.index(token[-1])
    for other in range(last // 16 * 16, last // 16 * 16 + 16):
        assert status(client, token[:-1] + alphabet[other]) == 401
    assert status(client, sign(claims(jti="another"))) == 200


def test_outside_token_can_be_revoked_by_its_holder(portal: Portal) -> None:
    token, client = sign(claims()), client_of(portal)
    body = {"token": token}
    assert client.post("/api/auth/revoke", json=body, headers=portal.headers()).status_code == 204
    assert status(client, token) == 401


def test_ending_a_token_makes_no_account(make_portal: MakePortal) -> None:
    portal = make_portal(create_accounts=True)
    body, client = {"token": sign(claims(preferred_username="grace"))}, client_of(portal)
    assert client.post("/api/auth/revoke", json=body, headers=portal.headers()).status_code == 204
    assert portal.scalar("SELECT array_agg(name) FROM users") == ["admin"]


def test_closed_account_is_out_at_once(portal: Portal) -> None:
    token, client = sign(claims()), client_of(portal)
    assert status(client, token) == 200
    ada = accounts.find_user(portal.services, "ada")
    accounts.set_disabled(portal.services, portal.admin, ada.id, disabled=True)
    assert status(client, token) == 401
    assert status(client, sign(claims(jti="another"))) == 401
    accounts.set_disabled(portal.services, portal.admin, ada.id, disabled=False)
    assert status(client, token) == 401
    assert status(client, sign(claims(jti="a third"))) == 200


def test_link_that_is_taken_away_or_given_to_another_counts_at_once(portal: Portal) -> None:
    token, client = sign(claims()), client_of(portal)
    assert status(client, token) == 200
    portal.user("eve")
    outside_accounts.link(portal.services, name="eve", subject="7f3a")
    assert status(client, token) == 401
    fresh = sign(claims(jti="another"))
    assert tokens.authenticate(portal.services, fresh).user.name == "eve"
    assert outside_accounts.unlink(portal.services, subject="7f3a")
    assert status(client, fresh) == 401
    assert not outside_accounts.unlink(portal.services, subject="7f3a")


def test_outside_user_named_admin_gets_a_separate_account(make_portal: MakePortal) -> None:
    portal = make_portal(create_accounts=True)
    body = claims("evil", preferred_username="admin", roles=["portal-admin"], is_admin=True)
    who = tokens.authenticate(portal.services, sign(body))
    assert who.user.id != portal.admin.id
    assert who.user.name == "admin (sign-in.example.org)"
    assert not who.user.is_admin
    # Neither an identifier as a name nor another spelling of a name reaches an existing account.
    spelt = {str(portal.admin.id): "ADMIN", "admin": "ａｄｍｉｎ", "x": " admin "}
    for subject, name in spelt.items():
        token = sign(claims(subject, preferred_username=name))
        other = tokens.authenticate(portal.services, token)
        assert other.user.id not in {portal.admin.id, who.user.id}
        assert not other.user.is_admin
    # The account stays the same when the user's name changes.
    renamed = claims("evil", preferred_username="ada", jti="2")
    assert tokens.authenticate(portal.services, sign(renamed)).user.id == who.user.id


def test_account_without_a_password_accepts_none(make_portal: MakePortal) -> None:
    portal = make_portal(create_accounts=True)
    tokens.authenticate(portal.services, sign(claims(preferred_username="grace")))
    client = client_of(portal)
    for password in ("", "None", "null", "a long enough password"):
        body = {"username": "grace", "password": password}
        assert client.post("/api/auth/token", json=body).status_code in {401, 422}


def test_account_is_called_as_the_claim_says_where_that_is_a_name(make_portal: MakePortal) -> None:
    portal = make_portal(create_accounts=True)
    long = "g" * 300
    for number, name in enumerate(["grace", None, "a\u202eb", long, "", 7]):
        body = claims(f"subject {number}", preferred_username=name)
        expected = name if name in {"grace", 7} else f"subject {number}"
        assert outcome(portal.services, sign(body)) == str(expected)
    portal = make_portal(create_accounts=True, name_claim="email")
    body = claims("subject 100", email="hopper@example.org", preferred_username="hopper")
    assert outcome(portal.services, sign(body)) == "hopper@example.org"


def test_many_first_requests_make_one_account(make_portal: MakePortal) -> None:
    portal = make_portal(create_accounts=True)

    def come(number: int) -> Any:
        token = sign(claims(preferred_username="grace", jti=str(number % 2)))
        return tokens.authenticate(portal.services, token).user.id

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(come, range(8)))) == 1
    assert portal.scalar("SELECT count(*) FROM users WHERE name LIKE 'grace%'") == 1


# Claims, and the status of an administrator's page for each.
ROLES: tuple[tuple[dict[str, Any], int], ...] = (
    ({"roles": ["portal-admin", "x"]}, 200),
    ({"roles": "portal-admin"}, 200),
    ({"roles": True}, 200),
    ({"roles": ["portal-admin"], "scope": "read write"}, 403),
    ({"roles": ["portal-administrator"]}, 403),
    ({"roles": "x portal-admin"}, 403),
    ({"roles": {"portal-admin": 1}}, 403),
    ({"roles": "true"}, 403),
    ({}, 403),
)


def test_claim_decides_who_administers_where_it_is_set(make_portal: MakePortal) -> None:
    portal = make_portal(admin_claim="roles")
    portal.user("ada")
    outside_accounts.link(portal.services, name="ada", subject="7f3a")
    # An administrator's account has no such rights with a token that lacks the claim.
    outside_accounts.link(portal.services, name="admin", subject="root")
    client = client_of(portal)
    for subject in ("7f3a", "root"):
        met = [
            (given, status(client, sign(claims(subject, **given)), "/admin")) for given, _ in ROLES
        ]
        assert met == list(ROLES)


def test_account_decides_without_the_claim(portal: Portal) -> None:
    outside_accounts.link(portal.services, name="admin", subject="root")
    client = client_of(portal)
    assert status(client, sign(claims("root")), "/admin") == 200
    assert status(client, sign(claims("root", scope="write")), "/admin") == 403
    assert status(client, sign(claims("7f3a", roles=["portal-admin"])), "/admin") == 403


def test_unknown_user_cannot_be_linked(portal: Portal) -> None:
    with pytest.raises(NoSuchAccount):
        outside_accounts.link(portal.services, name=f"nobody {uuid4()}", subject="x")
    with pytest.raises(UnknownSubject):
        tokens.authenticate(portal.services, sign(claims("x")))


def test_operator_links_and_unlinks_on_the_command_line(
    portal: Portal, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {
        "DATABASE_URL": database_url,
        "PORTAL_DATA_DIR": str(tmp_path),
        "PORTAL_EMBEDDING__PROVIDER": "hashing",
        "PORTAL_JWT__OUTSIDE__AUDIENCE": AUDIENCE,
        "PORTAL_JWT__OUTSIDE__JWKS_URL": "https://sign-in.example.org/keys",
    }
    for name, value in (settings | {"PORTAL_JWT__OUTSIDE__ISSUER": ISSUER}).items():
        monkeypatch.setenv(name, value)

    def run(*arguments: str) -> tuple[int, str]:
        done = CliRunner().invoke(main, ["user", *arguments], catch_exceptions=False)
        return done.exit_code, done.output.strip()

    assert run("link", "ADA", "subject 1") == (0, "linked subject 1 to ADA")
    assert outcome(portal.services, sign(claims("subject 1"))) == "ada"
    assert run("unlink", "subject 1") == (0, "unlinked subject 1")
    assert outcome(portal.services, sign(claims("subject 1"))) is InvalidToken
    assert run("unlink", "subject 1") == (0, "subject 1 was not linked")
    assert run("link", "nobody", "subject 1")[0] == 1
    monkeypatch.delenv("PORTAL_JWT__OUTSIDE__AUDIENCE")
    monkeypatch.delenv("PORTAL_JWT__OUTSIDE__JWKS_URL")
    monkeypatch.delenv("PORTAL_JWT__OUTSIDE__ISSUER")
    code, said = run("link", "ada", "subject 1")
    assert code == 1
    assert "PORTAL_JWT__OUTSIDE__ISSUER" in said
