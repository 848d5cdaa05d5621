"""Tokens of an outside issuer: which count, whom they speak for, and what ends them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import jwt
import pytest
from click.testing import CliRunner
from flask.testing import FlaskClient
from sqlalchemy import text

from portal import create_app
from portal.cli import main
from portal.domain.people import TokenKind
from portal.errors import (
    InvalidSetting,
    InvalidToken,
    IssuerUnavailable,
    NoSuchAccount,
    PortalError,
    UnknownSubject,
    WrongCredentials,
)
from portal.services import Services, accounts, outside_accounts, sessions, tokens
from portal.services.issuer_keys import IssuerKeys, create_issuer_keys, parse_keys
from portal.settings import OutsideIssuerSettings, load_settings
from portal.store import migrations
from tests.conftest import Portal
from tests.factories_issuer import (
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
)

DOCUMENTS = "/api/knowledge/documents"
MakePortal = Callable[..., Portal]
NOW = int(datetime.now(UTC).timestamp())


class Clock:
    """Monotonic seconds that go when they are told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def server() -> Iterator[JwksServer]:
    with jwks_server() as running:
        yield running


@pytest.fixture
def make_portal(make_services: Callable[..., Services], server: JwksServer) -> MakePortal:
    """A portal that takes tokens of the outside issuer beside its own."""

    def make(**outside: Any) -> Portal:
        given = {"issuer": ISSUER, "audience": AUDIENCE}
        if "key_file" not in outside:
            given["jwks_url"] = f"{server.url}/keys"
        services = make_services(jwt={"outside": given | outside})
        accounts.ensure_first_administrator(services)
        return Portal(services, accounts.find_person(services, "admin"))

    return make


@pytest.fixture
def portal(make_portal: MakePortal) -> Portal:
    """With ada, whom the issuer calls 7f3a."""
    portal = make_portal()
    portal.person("ada")
    outside_accounts.link(portal.services, name="ada", subject="7f3a")
    return portal


def client_of(portal: Portal) -> FlaskClient:
    app = create_app(portal.services)
    app.config["PROPAGATE_EXCEPTIONS"] = False
    return app.test_client()


def status(client: FlaskClient, token: str, path: str = DOCUMENTS, method: str = "GET") -> int:
    headers = {"Authorization": f"Bearer {token}"}
    body = {} if method == "POST" else None
    return client.open(path, method=method, headers=headers, json=body).status_code


def own_claims(portal: Portal) -> dict[str, Any]:
    """What a token of ours says, of someone who may administer."""
    body = tokens.read_claims(portal.services, portal.token(portal.admin), kinds={TokenKind.ACCESS})
    return body | {"jti": str(body["jti"]), "sub": str(body["sub"]), "typ": body["typ"].value}


def test_good_token_speaks_for_who_was_linked(portal: Portal) -> None:
    who = tokens.authenticate(portal.services, sign(claims()))
    assert who.person.name == "ada"
    assert who.token_kind is TokenKind.OUTSIDE
    client = client_of(portal)
    assert status(client, sign(claims())) == 200
    assert status(client, sign(claims(aud=["other", AUDIENCE]))) == 200
    assert status(client, portal.token(portal.admin)) == 200


def test_subject_that_nobody_is_linked_to_is_told_so(portal: Portal) -> None:
    client = client_of(portal)
    headers = {"Authorization": f"Bearer {sign(claims('somebody', preferred_username='ada'))}"}
    answer = client.get(DOCUMENTS, headers=headers)
    assert answer.status_code == 401
    assert answer.get_json()["error"]["code"] == "unknown_subject"


# Each wrong in one claim; None leaves it out.
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
        # Encoded as a signer would who does not check what it signs.
        content = json.dumps(body).encode()
        token = jwt.PyJWS().encode(content, rsa_key("one"), "RS256", {"kid": "one"})
        if outcome(portal.services, token) is not InvalidToken:
            let_in.append(changed)
    assert let_in == []


def outcome(services: Services, token: str) -> object:
    """The error that a token meets, or the name that it opens the portal as."""
    try:
        return tokens.authenticate(services, token).person.name
    except PortalError as error:
        return InvalidToken if isinstance(error, InvalidToken) else type(error)


def test_no_key_but_theirs_opens_and_no_algorithm_but_the_one_that_is_set(portal: Portal) -> None:
    """Each of these is a known attack on who checks signatures carelessly."""
    ours = portal.services.secret_key
    pem = public_pem(rsa_key("one"))
    forged = {
        "unsigned": jwt.encode(claims(), None, algorithm="none", headers={"kid": "one"}),
        "signed with what everybody knows": _hmac(claims(), pem, "one"),
        "that, without a name": _hmac(claims(), pem, None),
        "our secret, their issuer": jwt.encode(claims(), ours, algorithm="HS256"),
        "our secret, their issuer, our subject": jwt.encode(
            own_claims(portal) | {"iss": ISSUER, "aud": AUDIENCE}, ours, algorithm="HS256"
        ),
        "their key, our issuer": sign(own_claims(portal)),
        "their key, our issuer, their audience": sign(claims(iss="portal")),
        "another key": sign(claims(), rsa_key("stranger")),
        "another key, no name": sign(claims(), rsa_key("stranger"), kid=None),
        "another algorithm of the same key": sign(claims(), algorithm="RS512"),
        "the same, other padding": sign(claims(), algorithm="PS256"),
        "another kind of key": sign(claims(), ec_key("stranger"), algorithm="ES256"),
    }
    met = {words: outcome(portal.services, token) for words, token in forged.items()}
    assert met == dict.fromkeys(forged, InvalidToken)


def _hmac(body: dict[str, Any], secret: bytes, kid: str | None) -> str:
    """HS256 by hand: the library itself refuses to sign with a public key."""

    def part(content: bytes) -> bytes:
        return base64.urlsafe_b64encode(content).rstrip(b"=")

    header = {"alg": "HS256", "typ": "JWT"} | ({"kid": kid} if kid else {})
    signed = part(json.dumps(header).encode()) + b"." + part(json.dumps(body).encode())
    digest = hmac.new(secret, signed, hashlib.sha256).digest()
    return (signed + b"." + part(digest)).decode()


# What a token of a stranger may say of the key that it wants to be checked with.
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


def test_header_never_says_which_key_counts(portal: Portal, server: JwksServer) -> None:
    stranger = rsa_key("stranger")
    with jwks_server() as evil:
        evil.publish(jwk(stranger, "two"))
        words = {"URL": f"{evil.url}/keys", "KEY": jwk(stranger, "two")}
        let_in = []
        for headers in HEADERS:
            filled = {
                name: words.get(value, value) if isinstance(value, str) else value
                for name, value in headers.items()
            }
            token = sign(claims(), stranger, headers=filled)
            if outcome(portal.services, token) is not InvalidToken:
                let_in.append(headers)
        assert let_in == []
        assert evil.requests == []
    assert set(server.requests) == {"/keys"}


def test_signature_in_another_spelling_brings_no_ended_token_back(portal: Portal) -> None:
    token = sign(claims())
    client = client_of(portal)
    assert status(client, token) == 200
    headers = {"Authorization": f"Bearer {token}"}
    assert client.post("/api/auth/revoke", json={}, headers=headers).status_code == 204
    assert status(client, token) == 401
    # The last letter of a signature holds bits that count for nothing.
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    last = alphabet.index(token[-1])
    for other in range(last // 16 * 16, last // 16 * 16 + 16):
        assert status(client, token[:-1] + alphabet[other]) == 401
    assert status(client, sign(claims(jti="another"))) == 200


def test_token_of_theirs_can_be_ended_by_whoever_holds_it(portal: Portal) -> None:
    token, client = sign(claims()), client_of(portal)
    body = {"token": token}
    assert client.post("/api/auth/revoke", json=body, headers=portal.headers()).status_code == 204
    assert status(client, token) == 401


def test_closed_account_is_out_at_once(portal: Portal) -> None:
    token, client = sign(claims()), client_of(portal)
    assert status(client, token) == 200
    ada = accounts.find_person(portal.services, "ada")
    accounts.set_disabled(portal.services, portal.admin, ada.id, disabled=True)
    assert status(client, token) == 401
    assert status(client, sign(claims(jti="another"))) == 401
    accounts.set_disabled(portal.services, portal.admin, ada.id, disabled=False)
    assert status(client, token) == 401
    assert status(client, sign(claims(jti="a third"))) == 200


def test_link_that_is_taken_away_or_given_to_another_counts_at_once(portal: Portal) -> None:
    token, client = sign(claims()), client_of(portal)
    assert status(client, token) == 200
    portal.person("eve")
    outside_accounts.link(portal.services, name="eve", subject="7f3a")
    assert status(client, token) == 401
    fresh = sign(claims(jti="another"))
    assert tokens.authenticate(portal.services, fresh).person.name == "eve"
    assert outside_accounts.unlink(portal.services, subject="7f3a")
    assert status(client, fresh) == 401
    assert not outside_accounts.unlink(portal.services, subject="7f3a")


def test_stranger_called_admin_gets_an_account_of_their_own(make_portal: MakePortal) -> None:
    portal = make_portal(create_accounts=True)
    body = claims("evil", preferred_username="admin", roles=["portal-admin"], is_admin=True)
    who = tokens.authenticate(portal.services, sign(body))
    assert who.person.id != portal.admin.id
    assert who.person.name == "admin (sign-in.example.org)"
    assert not who.person.is_admin
    # Nor by being called like somebody's identifier, nor by another spelling of the name.
    spelt = {str(portal.admin.id): "ADMIN", "admin": "ａｄｍｉｎ", "x": " admin "}
    for subject, name in spelt.items():
        token = sign(claims(subject, preferred_username=name))
        other = tokens.authenticate(portal.services, token)
        assert other.person.id not in {portal.admin.id, who.person.id}
        assert not other.person.is_admin
    # Once made it stays theirs, whatever they are called later.
    renamed = claims("evil", preferred_username="ada", jti="2")
    assert tokens.authenticate(portal.services, sign(renamed)).person.id == who.person.id


def test_nobody_signs_in_with_a_password_to_an_account_without_one(
    make_portal: MakePortal,
) -> None:
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
        return tokens.authenticate(portal.services, token).person.id

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(come, range(8)))) == 1
    with portal.services.database.begin() as session:
        assert session.scalar(text("SELECT count(*) FROM users WHERE name LIKE 'grace%'")) == 1


# Claims, what reading answers to them, and what writing does.
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


# Claims, and what the administration answers to them.
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
    portal.person("ada")
    outside_accounts.link(portal.services, name="ada", subject="7f3a")
    # Also whose account administers does not by a token that does not say so.
    outside_accounts.link(portal.services, name="admin", subject="root")
    client = client_of(portal)
    for subject in ("7f3a", "root"):
        met = [
            (given, status(client, sign(claims(subject, **given)), "/admin")) for given, _ in ROLES
        ]
        assert met == list(ROLES)


def test_without_that_claim_the_account_decides(portal: Portal) -> None:
    outside_accounts.link(portal.services, name="admin", subject="root")
    client = client_of(portal)
    assert status(client, sign(claims("root")), "/admin") == 200
    assert status(client, sign(claims("root", scope="write")), "/admin") == 403
    assert status(client, sign(claims("7f3a", roles=["portal-admin"])), "/admin") == 403


def test_token_of_theirs_makes_none_of_ours(portal: Portal) -> None:
    headers = {"Authorization": f"Bearer {sign(claims())}"}
    answer = client_of(portal).post("/api/auth/tokens", json={"name": "x"}, headers=headers)
    assert answer.status_code == 403
    assert answer.get_json()["error"]["code"] == "needs_session"


def test_without_an_outside_issuer_none_of_theirs_counts(
    services: Services, server: JwksServer
) -> None:
    with pytest.raises(InvalidToken):
        tokens.authenticate(services, sign(claims()))
    assert server.requests == []


# --- keys ---------------------------------------------------------------------------------------


def test_new_key_of_the_issuer_counts_and_a_withdrawn_one_ends(
    portal: Portal, server: JwksServer
) -> None:
    clock = Clock()
    read = lambda: _download(server)  # noqa: E731 - as short as what it stands for
    keys = IssuerKeys(read, algorithm="RS256", clock=clock)
    services = replace(portal.services, issuer_keys=keys)
    old, new = sign(claims()), sign(claims(jti="2"), rsa_key("two"), kid="two")
    assert tokens.authenticate(services, old)
    server.publish(jwk(rsa_key("two"), "two"))
    with pytest.raises(InvalidToken):
        tokens.authenticate(services, new)  # It was read a moment ago.
    clock.now += 61
    assert tokens.authenticate(services, new)
    with pytest.raises(InvalidToken):
        tokens.authenticate(services, sign(claims(jti="3")))
    assert len(server.requests) == 2


def _download(server: JwksServer) -> bytes:
    server.requests.append("read")
    return server.body


def test_made_up_key_names_reach_the_issuer_once_a_minute(server: JwksServer) -> None:
    clock = Clock()
    keys = IssuerKeys(lambda: _download(server), algorithm="RS256", clock=clock)
    for minute in range(3):
        assert [keys.find(str(number)) for number in range(50)] == [None] * 50
        assert len(server.requests) == minute + 1
        clock.now += 61


def test_known_keys_go_on_while_the_issuer_is_away_for_a_day_and_no_longer(
    server: JwksServer,
) -> None:
    clock = Clock()
    keys = create_keys(server, clock)
    assert keys.find("one")
    server.status = 500
    for _ in range(20):
        clock.now += 3600
        assert keys.find("one")
        with pytest.raises(IssuerUnavailable):
            keys.find("two")
    clock.now += 6 * 3600
    with pytest.raises(IssuerUnavailable):
        keys.find("one")
    server.status = 200
    clock.now += 61
    assert keys.find("one")


def create_keys(server: JwksServer, clock: Clock) -> IssuerKeys:
    outside = OutsideIssuerSettings(issuer=ISSUER, audience=AUDIENCE, jwks_url=f"{server.url}/keys")
    keys = create_issuer_keys(outside)
    assert keys is not None
    keys._clock = clock
    return keys


# What an address may answer that says nothing of keys.
USELESS = (
    (500, b""),
    (404, b"{}"),
    (302, b""),
    (200, b""),
    (200, b"<html>"),
    (200, b"[]"),
    (200, b'{"keys": {}}'),
    (200, b'{"keys": ["x", null, {}, {"kty": "RSA"}, {"kty": "oct", "k": "YWJj"}]}'),
    (200, b"[" * 100_000),
    (200, b"\xff\xfe"),
    (200, b'{"keys": []}' + b" " * 300_000),
)


def test_issuer_that_publishes_nothing_useful_is_a_503_and_never_a_500(
    portal: Portal, server: JwksServer
) -> None:
    for server.status, server.body in USELESS:
        server.requests.clear()
        services = replace(portal.services, issuer_keys=create_keys(server, Clock()))
        assert outcome(services, sign(claims())) is IssuerUnavailable
        assert server.requests == ["/keys"]
    client = client_of(portal)
    assert status(client, sign(claims())) == 503
    assert status(client, sign(claims()), "/documents") == 503
    assert status(client, sign(claims()), "/login") == 200
    assert status(client, portal.token(portal.admin)) == 200


def test_issuer_that_hangs_holds_nobody_longer_than_two_seconds(
    portal: Portal, server: JwksServer
) -> None:
    server.is_held = True
    client = client_of(portal)
    started = time.monotonic()
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: _ask(portal), range(8)))
    assert answers == ["IssuerUnavailable"] * 8
    assert time.monotonic() - started < 5.0  # Two seconds, and what a busy machine adds.
    assert status(client, portal.token(portal.admin)) == 200
    assert len(server.requests) == 1


def _ask(portal: Portal) -> str:
    try:
        tokens.authenticate(portal.services, sign(claims()))
    except IssuerUnavailable as error:
        return type(error).__name__
    return "let in"


def test_known_keys_do_not_wait_for_an_issuer_that_hangs(server: JwksServer) -> None:
    clock = Clock()
    keys = create_keys(server, clock)
    assert keys.find("one")
    server.is_held = True
    clock.now += 400
    started = time.monotonic()
    assert all(keys.find("one") for _ in range(100))
    assert time.monotonic() - started < 1.0


def test_issuer_that_cannot_be_reached_is_a_503(make_portal: MakePortal) -> None:
    portal = make_portal(jwks_url="http://127.0.0.1:9/keys")
    assert status(client_of(portal), sign(claims())) == 503


def test_keys_that_do_not_fit_are_passed_over() -> None:
    private = jwt.algorithms.RSAAlgorithm.to_jwk(rsa_key("one"), as_dict=True)
    entries = [
        private | {"kid": "private"},
        jwk(rsa_key("one"), "for another use") | {"use": "enc"},
        jwk(rsa_key("one"), "for another algorithm", alg="RS512"),
        jwk(rsa_key("short", 1024), "short"),
        jwk(ec_key("one"), "curve"),
        jwk(rsa_key("two"), "good", alg="RS256"),
    ]
    found = parse_keys(json.dumps({"keys": entries}).encode(), "RS256")
    assert [name for name, _ in found.keys] == ["good"]


def test_token_without_a_key_name_is_checked_with_the_only_key(
    portal: Portal, server: JwksServer
) -> None:
    assert tokens.authenticate(portal.services, sign(claims(), kid=None))


def test_token_without_a_key_name_is_refused_where_there_are_several(
    portal: Portal, server: JwksServer
) -> None:
    server.publish(jwk(rsa_key("one"), "one"), jwk(rsa_key("two"), "two"))
    with pytest.raises(InvalidToken):
        tokens.authenticate(portal.services, sign(claims(), kid=None))


@pytest.mark.parametrize("kind", ["pem", "jwks"])
def test_keys_may_come_from_a_file(make_portal: MakePortal, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "keys"
    key = ec_key("one")
    content = {"pem": public_pem(key), "jwks": json.dumps({"keys": [jwk(key, "one")]}).encode()}
    path.write_bytes(content[kind])
    portal = make_portal(key_file=str(path), algorithm="ES256")
    outside_accounts.link(portal.services, name="admin", subject="7f3a")
    assert tokens.authenticate(portal.services, sign(claims(), key, algorithm="ES256"))
    with pytest.raises(InvalidToken):
        tokens.authenticate(portal.services, sign(claims()))


@pytest.mark.parametrize("content", [b"", b"x", b"-----BEGIN PUBLIC KEY-----\nx", b'{"keys": []}'])
def test_file_without_a_key_stops_the_start(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "keys"
    outside = OutsideIssuerSettings(issuer=ISSUER, audience=AUDIENCE, key_file=path)
    path.write_bytes(content)
    with pytest.raises(InvalidSetting) as caught:
        create_issuer_keys(outside)
    assert "PORTAL_JWT__OUTSIDE__KEY_FILE" in str(caught.value)
    path.unlink()
    with pytest.raises(InvalidSetting):
        create_issuer_keys(outside)


@pytest.mark.parametrize(
    ("outside", "name"),
    [
        ({"issuer": ISSUER, "jwks_url": "https://x.example.org"}, "AUDIENCE"),
        ({"issuer": ISSUER, "audience": "p"}, "JWKS_URL"),
        ({"issuer": ISSUER, "audience": "p", "jwks_url": "http://x.example.org"}, "JWKS_URL"),
        ({"issuer": ISSUER, "audience": "p", "jwks_url": "file:///etc/passwd"}, "JWKS_URL"),
        ({"issuer": ISSUER, "audience": "p", "jwks_url": "http://localhost.evil"}, "JWKS_URL"),
        ({"jwks_url": "https://x.example.org"}, "JWKS_URL"),
        ({"algorithm": "HS256"}, "ALGORITHM"),
        ({"algorithm": "none"}, "ALGORITHM"),
    ],
    ids=str,
)
def test_half_a_setting_stops_the_start(outside: dict[str, str], name: str) -> None:
    with pytest.raises(InvalidSetting) as caught:
        load_settings(jwt={"outside": outside})
    assert f"PORTAL_JWT__OUTSIDE__{name}" in str(caught.value)


def test_issuer_may_not_be_called_as_we_are() -> None:
    outside = {"issuer": "portal", "audience": "p", "jwks_url": "https://x.example.org"}
    with pytest.raises(InvalidSetting):
        load_settings(jwt={"outside": outside})


def test_unknown_person_cannot_be_linked(portal: Portal) -> None:
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


def test_going_back_to_before_scopes_leaves_no_token_that_could_do_more(
    make_portal: MakePortal, database_url: str
) -> None:
    """Older code looks at no scopes and knows neither outside tokens nor absent passwords."""
    portal = make_portal(create_accounts=True)
    assert outcome(portal.services, sign(claims(preferred_username="grace"))) == "grace"
    own = portal.token(portal.admin)
    _, reading = sessions.create_personal_token(
        portal.services, portal.admin, name="dashboard", ttl_s=600
    )
    migrations.downgrade(database_url, "0006")
    migrations.migrate(database_url)
    assert outcome(portal.services, reading) is InvalidToken
    assert outcome(portal.services, own) == "admin"
    with portal.services.database.begin() as session:
        assert session.scalar(text("SELECT count(*) FROM tokens WHERE kind = 'outside'")) == 0
        assert session.scalar(text("SELECT password_hash FROM users WHERE name = 'grace'")) == ""
    with pytest.raises(WrongCredentials):
        sessions.sign_in(portal.services, name="grace", password="")
