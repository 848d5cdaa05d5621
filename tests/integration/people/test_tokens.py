"""Tokens: who gets one, how long it lasts, and what revokes it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import jwt
import pytest
from flask.testing import FlaskClient

from portal.errors import InvalidToken, NameTaken, NotFound, WeakPassword, WrongCredentials
from portal.http import cookies
from portal.services.people import accounts, invitations, sessions, tokens
from tests.conftest import PASSWORD, Portal
from tests.factories.cases import for_each

LIST = "/api/knowledge/documents"


def sign_in(client: FlaskClient, name: str = "admin", password: str = PASSWORD):
    return client.post("/api/auth/token", json={"username": name, "password": password})


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def forged(portal: Portal, *, key: str | None = None, algorithm: str = "HS256", **claims) -> str:
    now = datetime.now(UTC)
    body = tokens.read_claims(
        portal.services, portal.token(portal.admin), kinds={tokens.TokenKind.ACCESS}
    )
    body |= {"jti": str(body["jti"]), "sub": str(body["sub"]), "typ": body["typ"].value}
    body |= {"iat": int(now.timestamp())} | claims
    return jwt.encode(body, key or portal.services.secret_key, algorithm=algorithm)


def test_sign_in_gives_an_access_and_a_refresh_token(client: FlaskClient) -> None:
    pair = sign_in(client).json
    assert pair["token_type"] == "Bearer"
    assert client.get(LIST, headers=bearer(pair["access_token"])).status_code == 200
    renewed = client.post("/api/auth/refresh", json={"refresh_token": pair["refresh_token"]})
    assert renewed.status_code == 200
    assert client.get(LIST, headers=bearer(renewed.json["access_token"])).status_code == 200


def test_wrong_name_and_wrong_password_answer_alike(client: FlaskClient) -> None:
    answers = [sign_in(client, "nobody"), sign_in(client, "admin", "wrong password")]
    assert [answer.status_code for answer in answers] == [401, 401]
    bodies = [dict(answer.json["error"], request_id="") for answer in answers]
    assert bodies[0] == bodies[1]


def test_guessing_is_limited_for_its_user_name_only(client: FlaskClient) -> None:
    answers = [sign_in(client, "admin", f"guess number {n}").status_code for n in range(12)]
    assert answers == [401] * 10 + [429] * 2
    refused = sign_in(client, "admin", "one more guess")
    assert int(refused.headers["Retry-After"]) > 0
    assert refused.json["error"]["code"] == "rate_limited"
    assert sign_in(client, "someone else", "guess").status_code == 401


def test_other_spellings_of_a_name_share_its_attempts(client: FlaskClient) -> None:
    names = ["admin", "ADMIN", " admin ", "admin\0", "admin\0\0", "\0admin"] * 2
    answers = [sign_in(client, name, "guess").status_code for name in names]
    assert answers == [401] * 10 + [429] * 2


def test_refresh_token_is_not_an_access_token(client: FlaskClient) -> None:
    pair = sign_in(client).json
    assert client.get(LIST, headers=bearer(pair["refresh_token"])).status_code == 401
    answer = client.post("/api/auth/refresh", json={"refresh_token": pair["access_token"]})
    assert answer.status_code == 401


def test_second_use_of_a_refresh_token_ends_the_family(client: FlaskClient) -> None:
    pair = sign_in(client).json
    renewed = client.post("/api/auth/refresh", json={"refresh_token": pair["refresh_token"]}).json
    again = client.post("/api/auth/refresh", json={"refresh_token": pair["refresh_token"]})
    assert again.status_code == 401
    assert client.get(LIST, headers=bearer(renewed["access_token"])).status_code == 401


def test_revoking_ends_the_session_at_once(client: FlaskClient) -> None:
    pair = sign_in(client).json
    headers = bearer(pair["access_token"])
    assert client.post("/api/auth/revoke", json={}, headers=headers).status_code == 204
    assert client.get(LIST, headers=headers).status_code == 401


@for_each(
    "claims",
    [
        {"exp": 1},
        {"iss": "someone else"},
        {"aud": "someone else"},
        {"iat": int((datetime.now(UTC) + timedelta(hours=1)).timestamp())},
        {"typ": "admin"},
        {"jti": "not a uuid"},
        {"sub": "00000000-0000-0000-0000-000000000000"},
    ],
)
def test_token_with_a_wrong_claim_is_refused(portal: Portal, claims: dict[str, object]) -> None:
    with pytest.raises(InvalidToken):
        tokens.authenticate(portal.services, forged(portal, **claims))


def test_expiry_is_forgiven_a_minute_and_no_more(portal: Portal) -> None:
    now = datetime.now(UTC).timestamp()
    assert tokens.authenticate(portal.services, forged(portal, exp=int(now - 30)))
    with pytest.raises(InvalidToken):
        tokens.authenticate(portal.services, forged(portal, exp=int(now - 90)))


def test_known_token_expires(portal: Portal, monkeypatch: pytest.MonkeyPatch) -> None:
    token = forged(portal)
    assert tokens.authenticate(portal.services, token)

    class YearsLater(datetime):
        @classmethod
        def now(cls, tz=None):
            return super().now(tz) + timedelta(days=9999)

    monkeypatch.setattr(tokens, "datetime", YearsLater)
    with pytest.raises(InvalidToken):
        tokens.authenticate(portal.services, token)


@for_each(
    "token",
    ["", "x", "a.b.c", "eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.", "\u0000", "é.é.é", "Bearer x"],
)
def test_malformed_token_is_refused(portal: Portal, token: str) -> None:
    with pytest.raises(InvalidToken):
        tokens.authenticate(portal.services, token)


def test_session_cookie_works_behind_a_proxy_that_asks_for_a_password(
    portal: Portal, client: FlaskClient
) -> None:
    client.set_cookie(cookies.SESSION, portal.token(portal.admin))
    basic = {"Authorization": "Basic YWRhOnBhc3N3b3Jk"}
    assert client.get("/documents", headers=basic).status_code == 200
    assert client.get("/api/auth/tokens", headers=basic).status_code == 200
    # Browsers send both automatically, so requests that change something need a form token.
    assert client.post("/api/auth/revoke", json={}, headers=basic).status_code == 403
    assert client.get("/documents", headers=basic).status_code == 200


def test_only_the_configured_algorithm_and_key_are_accepted(portal: Portal) -> None:
    key = "another key that is long enough for the algorithm to take it without a warning, really"
    for token in (forged(portal, key=key), forged(portal, algorithm="HS512", key=key)):
        with pytest.raises(InvalidToken):
            tokens.authenticate(portal.services, token)


def test_new_password_ends_every_token(portal: Portal) -> None:
    user = portal.user("ada")
    token = portal.token(user)
    accounts.change_password(portal.services, user, current=PASSWORD, new="another long one")
    with pytest.raises(InvalidToken):
        tokens.authenticate(portal.services, token)
    assert sessions.sign_in(portal.services, name="ada", password="another long one")


def test_disabled_user_is_out_at_once(portal: Portal) -> None:
    user = portal.user("ada")
    token = portal.token(user)
    accounts.set_disabled(portal.services, portal.admin, user.id, disabled=True)
    with pytest.raises(InvalidToken):
        tokens.authenticate(portal.services, token)
    with pytest.raises(WrongCredentials):
        sessions.sign_in(portal.services, name="ada", password=PASSWORD)
    accounts.set_disabled(portal.services, portal.admin, user.id, disabled=False)
    assert sessions.sign_in(portal.services, name="ada", password=PASSWORD)


def test_invitation_creates_one_account(portal: Portal) -> None:
    secret = invitations.invite(portal.services, portal.admin).secret
    assert secret
    with pytest.raises(WeakPassword):
        invitations.accept_invitation(portal.services, secret, name="ada", password="short")
    invitations.accept_invitation(portal.services, secret, name="ada", password=PASSWORD)
    with pytest.raises(NotFound):
        invitations.accept_invitation(portal.services, secret, name="eve", password=PASSWORD)


def test_taken_name_leaves_the_invitation_open(portal: Portal) -> None:
    secret = invitations.invite(portal.services, portal.admin).secret
    assert secret
    with pytest.raises(NameTaken):
        invitations.accept_invitation(portal.services, secret, name="ADMIN", password=PASSWORD)
    assert invitations.find_invitation(portal.services, secret)
