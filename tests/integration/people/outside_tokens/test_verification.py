"""Verification of tokens of an outside issuer: claims, keys and scopes."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import jwt
import pytest

from portal.domain.people import TokenKind
from portal.errors import InvalidToken
from portal.services import Services
from portal.services.people import tokens
from tests.conftest import Portal
from tests.factories.servers.issuer import (
    AUDIENCE,
    ISSUER,
    JwksServer,
    claims,
    ec_key,
    jwk,
    jwks_server,
    public_pem,
    rsa_key,
    sign,
    sign_by_hand,
)
from tests.integration.people.outside_tokens.conftest import client_of, outcome, status

NOW = int(datetime.now(UTC).timestamp())


def own_claims(portal: Portal) -> dict[str, Any]:
    """Return the claims of the portal's own token for an administrator."""
    body = tokens.read_claims(portal.services, portal.token(portal.admin), kinds={TokenKind.ACCESS})
    return body | {"jti": str(body["jti"]), "sub": str(body["sub"]), "typ": body["typ"].value}


def test_valid_token_authenticates_the_linked_user(portal: Portal) -> None:
    who = tokens.authenticate(portal.services, sign(claims()))
    assert who.user.name == "ada"
    assert who.token_kind is TokenKind.OUTSIDE
    client = client_of(portal)
    assert status(client, sign(claims())) == 200
    assert status(client, sign(claims(aud=["other", AUDIENCE]))) == 200
    assert status(client, portal.token(portal.admin)) == 200


# Each has one wrong claim; None omits it.
WRONG_CLAIMS: tuple[dict[str, Any], ...] = (
    {"exp": NOW - 3600},
    {"exp": None},
    {"exp": "soon"},
    {"exp": 10**400},
    {"exp": float("inf")},
    {"nbf": NOW + 3600},
    {"iat": NOW + 3600},
    {"iat": None},
    {"aud": "another-service"},
    {"aud": None},
    {"aud": [AUDIENCE.upper()]},
    {"iss": f"{ISSUER}/"},
    {"iss": None},
    {"iss": ["https://elsewhere.example.org", ISSUER]},
    {"sub": None},
    {"sub": ""},
    {"sub": 7},
    {"sub": "7f3a\0"},
    {"sub": "\ud800"},
    {"sub": " 7f3a"},
    {"sub": "7F3A"},
    {"sub": "x" * 300},
)


def test_token_with_a_wrong_or_missing_claim_is_refused(portal: Portal) -> None:
    let_in = []
    for changed in WRONG_CLAIMS:
        body = {name: value for name, value in (claims() | changed).items() if value is not None}
        # Encoded by hand, because the library checks what it signs.
        content = json.dumps(body).encode()
        token = jwt.PyJWS().encode(content, rsa_key("one"), "RS256", {"kid": "one"})
        if outcome(portal.services, token) is not InvalidToken:
            let_in.append(changed)
    assert let_in == []


def test_only_the_issuers_keys_and_the_configured_algorithm_are_accepted(portal: Portal) -> None:
    """Each is a known attack on careless signature checks."""
    ours = portal.services.secret_key
    pem = public_pem(rsa_key("one"))
    forged = {
        "unsigned": jwt.encode(claims(), None, algorithm="none", headers={"kid": "one"}),
        "signed with what everybody knows": sign_by_hand(claims(), pem, "one"),
        "that, without a name": sign_by_hand(claims(), pem, None),
        "our secret, their issuer": jwt.encode(claims(), ours, algorithm="HS256"),
        "our secret, their issuer, our subject": jwt.encode(
            own_claims(portal) | {"iss": ISSUER, "aud": AUDIENCE}, ours, algorithm="HS256"
        ),
        "their key, our issuer": sign(own_claims(portal)),
        "their key, our issuer, their audience": sign(claims(iss="portal")),
        "another key": sign(claims(), rsa_key("foreign")),
        "another key, no name": sign(claims(), rsa_key("foreign"), kid=None),
        "another algorithm of the same key": sign(claims(), algorithm="RS512"),
        "the same, other padding": sign(claims(), algorithm="PS256"),
        "another kind of key": sign(claims(), ec_key("foreign"), algorithm="ES256"),
    }
    met = {words: outcome(portal.services, token) for words, token in forged.items()}
    assert met == dict.fromkeys(forged, InvalidToken)


# Headers by which a forged token names the key to check it with.
HEADERS: tuple[dict[str, Any], ...] = (
    {"kid": "../../etc/passwd"},
    {"kid": "one\0"},
    {"kid": "' OR 1=1 --"},
    {"kid": "https://evil.example.org/keys"},
    {"kid": ""},
    {"kid": "x" * 5000},
    {"kid": "two", "jku": "URL"},
    {"kid": "two", "x5u": "URL"},
    {"kid": "two", "jwk": "KEY"},
    {"kid": "two", "x5c": ["MIIB"]},
    {"kid": "one", "crit": ["exp"]},
    {"kid": "one", "crit": []},
)


def test_header_of_a_token_cannot_choose_the_key(portal: Portal, server: JwksServer) -> None:
    foreign = rsa_key("foreign")
    with jwks_server() as evil:
        evil.publish(jwk(foreign, "two"))
        words = {"URL": f"{evil.url}/keys", "KEY": jwk(foreign, "two")}
        let_in = []
        for headers in HEADERS:
            filled = {
                name: words.get(value, value) if isinstance(value, str) else value
                for name, value in headers.items()
            }
            token = sign(claims(), foreign, headers=filled)
            if outcome(portal.services, token) is not InvalidToken:
                let_in.append(headers)
        assert let_in == []
        assert evil.requests == []
    assert set(server.requests) == {"/keys"}


# Claims, the status of reading and the status of writing.
SCOPES: tuple[tuple[dict[str, Any], int, int], ...] = (
    ({}, 200, 201),
    ({"scope": "read"}, 200, 403),
    ({"scope": "openid read"}, 200, 403),
    ({"scope": "read write"}, 200, 201),
    ({"scope": "write"}, 200, 201),
    ({"scp": ["write"]}, 200, 201),
    ({"scope": "openid profile"}, 403, 403),
    ({"scope": "readwrite"}, 403, 403),
    ({"scope": ""}, 403, 403),
    ({"scope": {"read": True}}, 200, 403),
    ({"scope": 7}, 401, 401),
)


def test_scope_claim_is_honoured(portal: Portal) -> None:
    client = client_of(portal)
    met = []
    for given, _, _ in SCOPES:
        token = sign(claims(**given))
        reads = status(client, token)
        met.append((given, reads, status(client, token, "/api/conversations", "POST")))
    assert met == list(SCOPES)


def test_outside_token_creates_no_personal_token(portal: Portal) -> None:
    headers = {"Authorization": f"Bearer {sign(claims())}"}
    answer = client_of(portal).post("/api/auth/tokens", json={"name": "x"}, headers=headers)
    assert answer.status_code == 403
    assert answer.get_json()["error"]["code"] == "needs_session"


def test_outside_token_is_refused_without_an_outside_issuer(
    services: Services, server: JwksServer
) -> None:
    with pytest.raises(InvalidToken):
        tokens.authenticate(services, sign(claims()))
    assert server.requests == []
