"""Attacks on sign-in limits with requests that might be counted differently than they are read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from flask.testing import FlaskClient

from portal import create_app
from portal.http import cookies
from portal.services import Services
from portal.services.people import accounts
from tests.conftest import PASSWORD
from tests.factories.cases import for_each

TOKEN = "/api/auth/token"
GUESSES = 60
JSON_TYPES = [
    "application/json",
    "application/json; charset=utf-8",
    "application/json; charset=utf-16",
    "APPLICATION/JSON",
    "application/vnd.portal+json",
]
OTHER_TYPES = [
    "text/plain",
    "text/plain; charset=utf-8",
    "text/json",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/json, text/plain",
    "application/xml",
    "",
]


@pytest.fixture
def anonymous(make_services: Callable[..., Services]) -> FlaskClient:
    """Return a client that is not signed in, with the default limits."""
    services = make_services(rate_limits={"enabled": True})
    accounts.ensure_first_administrator(services)
    accounts.create_user(services, name="eve", password=PASSWORD)
    return create_app(services).test_client()


def body(name: str, password: str) -> bytes:
    return json.dumps({"username": name, "password": password}).encode()


def send(client: FlaskClient, data: bytes, content_type: str, address: str = "127.0.0.1") -> int:
    headers = {"Content-Type": content_type} if content_type else {}
    environ = {"REMOTE_ADDR": address}
    return client.post(TOKEN, data=data, headers=headers, environ_base=environ).status_code


def csrf_token(client: FlaskClient) -> str:
    client.delete_cookie(cookies.SESSION)
    found = re.search(r'name="csrf_token" value="([^"]+)"', client.get("/login").text)
    assert found is not None
    return found[1]


def by_form(client: FlaskClient, names: list[str], password: str) -> int:
    form = {"csrf_token": csrf_token(client), "name": names, "password": password}
    return client.post("/login", data=form).status_code


def is_locked(client: FlaskClient) -> bool:
    """Return whether the right password is refused because of too many guesses."""
    return send(client, body("admin", PASSWORD), "application/json") == 429


@pytest.mark.parametrize("content_type", JSON_TYPES)
def test_every_spelling_of_json_is_counted(anonymous: FlaskClient, content_type: str) -> None:
    answers = [send(anonymous, body("admin", f"{n}"), content_type) for n in range(GUESSES)]
    assert answers == [401] * 10 + [429] * (GUESSES - 10)
    assert is_locked(anonymous)


@for_each("content_type", OTHER_TYPES)
def test_other_types_check_no_password(anonymous: FlaskClient, content_type: str) -> None:
    answers = {send(anonymous, body("admin", f"{n}"), content_type) for n in range(3)}
    assert answers == {415}
    assert send(anonymous, body("admin", PASSWORD), content_type) == 415
    assert "portal_device" not in str(anonymous.get(TOKEN).headers)


@for_each("path", [TOKEN, "/api/auth/refresh", "/api/auth/revoke", "/api/auth/tokens"])
def test_token_endpoints_accept_json_only(anonymous: FlaskClient, path: str) -> None:
    answer = anonymous.post(path, data=b"{}", content_type="text/plain")
    assert answer.status_code == 415
    assert "application/json" in answer.json["error"]["message"]


def test_body_without_a_length_is_refused_by_its_type_too(anonymous: FlaskClient) -> None:
    environ = {"wsgi.input_terminated": True, "HTTP_TRANSFER_ENCODING": "chunked"}
    answer = anonymous.post(
        TOKEN,
        data=body("admin", PASSWORD),
        content_type="text/plain",
        environ_overrides=environ | {"CONTENT_LENGTH": ""},
    )
    assert answer.status_code == 415


@pytest.mark.parametrize(
    "spelling",
    [
        '{"username": "nobody", "username": "admin", "password": "%s"}',
        '{"password": "x", "username": "admin", "password": "%s"}',
        '{"username": "admi\\u006e", "password": "%s"}',
        '\ufeff{"username": "admin", "password": "%s"}',
        '{"username": "  ADMIN\\u0000 ", "password": "%s"}',
        '{"username": "admin\\u00a0", "password": "%s"}',
    ],
    ids=["duplicate", "order", "escapes", "byte-order-mark", "case-and-nul", "spaces"],
)
def test_every_spelling_of_a_body_is_counted_as_it_is_read(
    anonymous: FlaskClient, spelling: str
) -> None:
    for n in range(GUESSES):
        send(anonymous, (spelling % n).encode(), "application/json")
    assert is_locked(anonymous)


def test_json_with_a_byte_order_mark_is_counted(anonymous: FlaskClient) -> None:
    for n in range(GUESSES):
        send(anonymous, body("admin", f"{n}").decode().encode("utf-8-sig"), "application/json")
    assert is_locked(anonymous)


@for_each("encoding", ["utf-16", "utf-16-le", "utf-32"])
def test_json_in_other_encodings_signs_no_user_in(anonymous: FlaskClient, encoding: str) -> None:
    right = body("admin", PASSWORD).decode().encode(encoding)
    assert send(anonymous, right, "application/json") == 400


@for_each("name", ["ADMİN", "admİn"])  # PostgreSQL's lower() makes both "admin".
def test_name_that_only_the_database_takes_for_another_signs_no_user_in(
    anonymous: FlaskClient, name: str
) -> None:
    assert send(anonymous, body(name, PASSWORD), "application/json") == 401


def test_json_sent_to_the_sign_in_page_locks_no_user_out(anonymous: FlaskClient) -> None:
    headers = {"X-CSRFToken": csrf_token(anonymous)}
    guess = {"username": "admin", "password": "guess"}
    answers = [anonymous.post("/login", json=guess, headers=headers).status_code for _ in range(12)]
    assert answers == [401] * 10 + [429] * 2  # Counted without a name.
    assert not is_locked(anonymous)


def test_a_duplicate_field_is_counted_as_it_is_read(anonymous: FlaskClient) -> None:
    answers = [by_form(anonymous, ["admin", f"other{n}"], "x") for n in range(12)]
    assert answers == [401] * 10 + [429] * 2


@for_each("path", [TOKEN, "/login", "/invite/x"])
@for_each("method", ["OPTIONS", "HEAD", "GET", "PUT"])
@for_each("kind", ["json", "data"])
def test_only_a_sign_in_earns_a_device_cookie(
    anonymous: FlaskClient, path: str, method: str, kind: str
) -> None:
    values = {"username": "admin", "name": "admin", "password": "guess"}
    answer = anonymous.open(path, method=method, **{kind: values})  # type: ignore[arg-type]
    assert cookies.DEVICE not in str(answer.headers.getlist("Set-Cookie"))


def test_options_request_does_not_make_an_address_known(anonymous: FlaskClient) -> None:
    """100 guesses an hour lock a name; only an address that has signed in gets more."""
    for n in range(100):
        send(anonymous, body("admin", f"{n}"), "application/json", f"192.0.2.{n}")
    json_data = {"username": "admin", "password": "x"}
    anonymous.options(TOKEN, json=json_data, environ_base={"REMOTE_ADDR": "192.0.2.200"})
    assert send(anonymous, body("admin", "x"), "application/json", "192.0.2.200") == 429


def test_device_cookie_is_valid_only_for_the_name_that_earned_it(anonymous: FlaskClient) -> None:
    assert by_form(anonymous, ["eve"], PASSWORD) == 303
    assert anonymous.get_cookie(cookies.DEVICE) is not None
    # The limits are the same as without the cookie: ten for a name, sixty for an address.
    assert [by_form(anonymous, ["admin"], "x") for n in range(15)] == [401] * 10 + [429] * 5
    others = [by_form(anonymous, [f"name {n}"], "x") for n in range(60)]
    assert others == [401] * 50 + [429] * 10
