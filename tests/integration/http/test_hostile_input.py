"""Input crafted to exhaust the portal is refused early, or costs no more than an error page."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
from flask.testing import FlaskClient

from portal import create_app
from portal.domain.documents.chunks import NewChunk
from portal.domain.people import User
from portal.domain.search.metadata_filter import MAX_MEMBERS, parse_filter
from portal.services import Services
from portal.services.documents import chunks
from portal.store.search.filters.narrowing import narrowing
from portal.store.search.selection import enabled
from portal.store.search.selection.scope import Scope
from portal.text.terms.query_syntax import parse_query
from tests.conftest import Portal
from tests.factories.cases import for_each

DEEP = b"[" * 50_000
LONG = b'{"username": "' + b"a" * 1_000_000 + b'", "password": "guess"}'
# No index helps with a list of these: every chunk is compared with every value.
MANY = {"a": {"$nin": list(range(MAX_MEMBERS))}}


# --- bodies ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("path", "status"), [("/login", 400), ("/api/auth/token", 400)])
def test_deeply_nested_json_is_a_bad_request(client: FlaskClient, path: str, status: int) -> None:
    answer = client.post(path, data=DEEP, content_type="application/json")
    assert answer.status_code == status


@for_each("path", ["/login", "/api/auth/token", "/api/auth/refresh"])
def test_large_anonymous_body_is_refused(client: FlaskClient, path: str) -> None:
    answer = client.post(path, data=LONG, content_type="application/json")
    assert answer.status_code == 413
    assert "64 kB" in answer.text


@for_each(
    ("body", "content_type", "status", "words"),
    [
        (b"{", "application/json", 400, "not JSON"),
        (b"", "application/json", 400, "not JSON"),
        (b'{"query": "\xff"}', None, 400, "not JSON"),
        (b"query=leave", "application/x-www-form-urlencoded", 415, "Send JSON"),
        (b"<query>leave</query>", "application/xml", 415, "Send JSON"),
        # `curl --data` declares its body as a form.
        (b'{"query": "leave"}', "application/x-www-form-urlencoded", 200, "leave"),
    ],
)
def test_invalid_json_and_another_content_type_are_distinguished(
    portal: Portal, body: bytes, content_type: str | None, status: int, words: str
) -> None:
    answer = portal.client().post(
        "/api/knowledge/search", data=body, content_type=content_type, headers=portal.headers()
    )
    assert answer.status_code == status, answer.text
    assert words in answer.text


def test_refusal_says_what_is_required(client: FlaskClient) -> None:
    error = client.post("/api/auth/token", json={"username": "ada"}).get_json()["error"]
    assert error["message"] == "Invalid value: password is required."
    assert error["details"] == {"json": {"password": ["is required"]}}


def test_anonymous_files_are_refused(client: FlaskClient) -> None:
    file = {"name": "admin", "file": (io.BytesIO(LONG), "long.json")}
    assert client.post("/login", data=file).status_code == 413


def test_json_body_is_limited_and_an_upload_only_by_the_setting(portal: Portal) -> None:
    client = portal.client()
    body = b'{"query": "' + b"a" * (33 * 1024 * 1024) + b'"}'
    answer = client.post("/api/v1/search/text", data=body, content_type="application/json")
    assert answer.status_code == 413
    file = {"file": (io.BytesIO(body), "long.txt")}
    answer = client.post("/api/knowledge/documents", data=file)
    assert answer.status_code == 202


# --- metadata filters -----------------------------------------------------------------------------


def test_expensive_metadata_filter_ends_at_the_search_timeout(
    portal: Portal, make_services: Callable[..., Services]
) -> None:
    job_id = portal.add("Annual leave is fifteen days.").job_id
    assert job_id is not None
    for _ in range(5):
        new = [NewChunk("Annual leave.", metadata={"a": -place}) for place in range(100)]
        chunks.add_chunks(portal.services, portal.admin, job_id, new)
    services = make_services(search={"statement_timeout_s": 0.001, "cache_ttl_s": 0})
    client = create_app(services).test_client()
    asked: dict[str, Any] = {"query": "leave", "metadata_filter": MANY}
    answer = client.post("/api/v1/search/text", json=asked, headers=portal.headers())
    assert answer.status_code == 503


def test_memory_of_a_search_does_not_grow_with_its_conditions(admin: User) -> None:
    wanted = parse_filter({".".join(["k" * 200] * 8): {"$nin": ["v" * 100] * MAX_MEMBERS}})
    long = narrowing(parse_query(""), metadata=wanted)
    keys = {Scope(admin, None, one).key() for one in (long, narrowing(parse_query("")))}
    assert len(keys) == 2
    assert all(len(repr(key)) < enabled._ENTRY_BYTES for key in keys)


@pytest.fixture
def admin(portal: Portal) -> User:
    return portal.admin


def test_file_without_a_name_is_refused_with_the_reason(
    client: FlaskClient, portal: Portal
) -> None:
    def send(parameter: str) -> Any:
        disposition = f'Content-Disposition: form-data; name="file"{parameter}'
        part = f"--x\r\n{disposition}\r\n\r\nLeave.\r\n--x--\r\n"
        return client.post(
            "/api/knowledge/documents",
            data=part.encode(),
            content_type="multipart/form-data; boundary=x",
            headers=portal.headers(),
        )

    nameless = send("")
    assert nameless.status_code == 400
    assert "file name" in nameless.json["error"]["message"]
    assert send('; filename=""').status_code == 202
    assert send("; filename*=UTF-8''%FF%FE").status_code == 202
