"""Accounts behind tokens of an outside issuer: whose they are, their role, and revocation."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest
from click.testing import CliRunner

from portal.errors import InvalidToken, NoSuchAccount, UnknownSubject
from portal.processes.cli import main
from portal.services.people import accounts, tokens
from portal.services.people.federation import outside_accounts
from tests.conftest import Portal
from tests.factories.servers.issuer import AUDIENCE, ISSUER, claims, sign
from tests.integration.people.outside_tokens.conftest import (
    DOCUMENTS,
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


def test_respelled_signature_does_not_revive_a_revoked_token(portal: Portal) -> None:
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
    assert status(client, token) == 200
    ada = accounts.find_user(portal.services, "ada")
    for caller, after in ((portal.admin, 200), (ada, 401)):
        answer = client.post("/api/auth/revoke", json=body, headers=portal.headers(caller))
        assert answer.status_code == 204
        assert status(client, token) == after


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


def test_removed_or_transferred_link_takes_effect_at_once(portal: Portal) -> None:
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


def test_account_decides_who_administers(portal: Portal) -> None:
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
