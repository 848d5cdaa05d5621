"""Keys of an outside issuer: where they come from, how they rotate, and when there are none."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import jwt
import pytest

from portal.errors import InvalidToken, IssuerUnavailable
from portal.services.people import tokens
from portal.services.people.federation.issuer_keys import IssuerKeys, create_issuer_keys, parse_keys
from portal.settings import OutsideIssuerSettings
from tests.conftest import Portal
from tests.factories.clock import Clock
from tests.factories.servers.issuer import (
    AUDIENCE,
    ISSUER,
    JwksServer,
    claims,
    ec_key,
    jwk,
    rsa_key,
    sign,
)
from tests.integration.people.outside_tokens.conftest import MakePortal, client_of, outcome, status


def test_new_key_of_the_issuer_is_accepted_and_a_withdrawn_one_is_not(
    portal: Portal, server: JwksServer
) -> None:
    clock = Clock()
    read = lambda: _download(server)  # noqa: E731 - as short as what it stands for
    keys = IssuerKeys(read, algorithms=["RS256"], clock=clock)
    services = replace(portal.services, issuer_keys=keys)
    old, new = sign(claims()), sign(claims(jti="2"), rsa_key("two"), kid="two")
    assert tokens.authenticate(services, old)
    server.publish(jwk(rsa_key("two"), "two"))
    with pytest.raises(InvalidToken):
        tokens.authenticate(services, new)  # The keys were fetched a moment ago.
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
    keys = IssuerKeys(lambda: _download(server), algorithms=["RS256"], clock=clock)
    for minute in range(3):
        assert [keys.find(str(number), "RS256") for number in range(50)] == [None] * 50
        assert len(server.requests) == minute + 1
        clock.now += 61


def test_known_keys_are_used_for_a_day_while_the_issuer_is_away(
    server: JwksServer,
) -> None:
    clock = Clock()
    keys = create_keys(server, clock)
    assert keys.find("one", "RS256")
    server.status = 500
    for _ in range(20):
        clock.now += 3600
        assert keys.find("one", "RS256")
        with pytest.raises(IssuerUnavailable):
            keys.find("two", "RS256")
    clock.now += 6 * 3600
    with pytest.raises(IssuerUnavailable):
        keys.find("one", "RS256")
    server.status = 200
    clock.now += 61
    assert keys.find("one", "RS256")


def create_keys(server: JwksServer, clock: Clock) -> IssuerKeys:
    outside = OutsideIssuerSettings(issuer=ISSUER, audience=AUDIENCE, jwks_url=f"{server.url}/keys")
    keys = create_issuer_keys(outside)
    assert keys is not None
    keys._document._clock = clock
    return keys


# Responses without usable keys.
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


def test_hanging_issuer_delays_a_request_by_two_seconds_at_most(
    portal: Portal, server: JwksServer
) -> None:
    server.is_held = True
    client = client_of(portal)
    started = time.monotonic()
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: _ask(portal), range(8)))
    assert answers == ["IssuerUnavailable"] * 8
    assert time.monotonic() - started < 5.0  # A timeout of two seconds, on a busy machine.
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
    assert keys.find("one", "RS256")
    server.is_held = True
    clock.now += 400
    started = time.monotonic()
    assert all(keys.find("one", "RS256") for _ in range(100))
    assert time.monotonic() - started < 1.0


def test_issuer_that_cannot_be_reached_is_a_503(make_portal: MakePortal) -> None:
    portal = make_portal(jwks_url="http://127.0.0.1:9/keys")
    assert status(client_of(portal), sign(claims())) == 503


def test_unsuitable_keys_are_skipped() -> None:
    private = jwt.algorithms.RSAAlgorithm.to_jwk(rsa_key("one"), as_dict=True)
    entries = [
        private | {"kid": "private"},
        jwk(rsa_key("one"), "for another use") | {"use": "enc"},
        jwk(rsa_key("one"), "for another algorithm", alg="RS512"),
        jwk(rsa_key("short", 1024), "short"),
        jwk(ec_key("one"), "curve"),
        jwk(rsa_key("two"), "good", alg="RS256"),
    ]
    found = parse_keys(json.dumps({"keys": entries}).encode(), ["RS256"])
    assert [key.name for key in found.keys] == ["good"]


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
