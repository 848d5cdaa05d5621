"""Expensive request bodies are refused before they are parsed."""

from __future__ import annotations

import gzip
import io
import json
import tracemalloc
from typing import Any
from uuid import uuid4

import pytest
from flask.testing import FlaskClient

from portal.domain.people import Scope
from portal.errors import MalformedRequest, NestedTooDeeply, TooManyValues
from portal.http.marks import marks_of
from portal.limits.bodies import MAX_DEPTH, MAX_FIELDS, check_json_shape
from portal.services.people import sessions
from tests.conftest import Portal

SEARCH = "/api/knowledge/search"
KB = 1024
# Each pair of characters would become a dictionary of 64 bytes.
FLOOD = b'{"query": "leave", "extra": [' + b"{}," * (31 * KB * KB // 3) + b"{}]}"
FILES = {
    "uploads.upload",
    "revisions.upload",
    "knowledge.upload_documents",
    "revisions_api.add_revision",
}


@pytest.fixture
def headers(portal: Portal) -> dict[str, str]:
    """Return the headers of a read-only token."""
    user = portal.user("reader")
    _, secret = sessions.create_personal_token(
        portal.services, user, name="search", ttl_s=3600, scopes=[Scope.READ]
    )
    return {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}


class Endless(io.RawIOBase):
    """A body without a length that counts the bytes read."""

    def __init__(self) -> None:
        self.read_bytes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        size = len(buffer)
        buffer[:] = b"[" * size
        self.read_bytes += size
        return size


def test_a_flood_of_values_is_refused_without_reading_it(
    client: FlaskClient, headers: dict[str, str]
) -> None:
    tracemalloc.start()
    try:
        answer = client.post(SEARCH, data=FLOOD, headers=headers)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert answer.status_code == 413
    assert answer.json["error"]["code"] == "body_too_large"
    assert "256 kB" in answer.json["error"]["message"]
    assert peak < 8 * KB * KB


def test_body_without_a_length_is_read_only_up_to_the_limit(
    client: FlaskClient, headers: dict[str, str]
) -> None:
    body = Endless()
    answer = client.post(
        SEARCH,
        headers=headers | {"Transfer-Encoding": "chunked"},
        environ_overrides={
            "wsgi.input": body,
            "wsgi.input_terminated": True,
            "CONTENT_LENGTH": "",
        },
    )
    assert answer.status_code == 413
    assert body.read_bytes <= 2 * 256 * KB


def test_every_endpoint_accepts_256_kb_unless_it_sets_another_limit(
    client: FlaskClient, portal: Portal
) -> None:
    headers = portal.headers() | {"Content-Type": "application/json"}
    more = {
        "chunks.add_chunks": 32 * KB,
        "chunk_search.search_batch": 8 * KB,
        "chunk_search.search_semantic": 512,
    }
    for rule in client.application.url_map.iter_rules():
        for method in (rule.methods or set()) - {"GET", "HEAD", "OPTIONS"}:
            values = {
                name: 1 if type(converter).__name__ == "IntegerConverter" else uuid4()
                for name, converter in rule._converters.items()
            }
            path = client.application.url_map.bind("localhost").build(
                rule.endpoint, values, method=method
            )
            is_public = marks_of(client.application.view_functions[rule.endpoint]).is_public
            limit = 64 if is_public else more.get(rule.endpoint, 256)
            for content_type in ("application/json", "application/x-www-form-urlencoded"):
                answer = client.open(
                    path,
                    method=method,
                    headers=headers | {"Content-Type": content_type},
                    environ_overrides={
                        "wsgi.input": Endless(),
                        "CONTENT_LENGTH": str(limit * KB + 1),
                    },
                )
                is_type_refused = answer.status_code == 415 and path.startswith("/api/auth/")
                assert answer.status_code == 413 or is_type_refused, (method, path)
                assert is_type_refused or str(limit).encode() in answer.data, (method, path)


def test_only_upload_endpoints_accept_files(client: FlaskClient) -> None:
    views = client.application.view_functions
    assert {name for name, view in views.items() if marks_of(view).accepts_files} == FILES


def test_too_many_and_too_deep_values_are_refused(
    client: FlaskClient, headers: dict[str, str]
) -> None:
    many = client.post(SEARCH, data=b"[" + b"{}," * 20_000 + b"{}]", headers=headers)
    assert (many.status_code, many.json["error"]["code"]) == (413, "too_many_values")
    deep = client.post(SEARCH, data=b'{"query":' + b"[" * 9000 + b"]" * 9000, headers=headers)
    assert (deep.status_code, deep.json["error"]["code"]) == (400, "malformed_request")
    assert "nested" in deep.json["error"]["message"]


def test_flood_in_another_encoding_is_refused(client: FlaskClient, headers: dict[str, str]) -> None:
    for encoding in ("utf-16", "utf-16-le", "utf-32"):
        flood = json.dumps({"query": "leave", "extra": [{}] * 20_000}).encode(encoding)
        answer = client.post(SEARCH, data=flood[: 250 * KB], headers=headers)
        assert answer.status_code == 400, encoding


def test_compressed_bodies_are_refused(client: FlaskClient, headers: dict[str, str]) -> None:
    for encoding in ("gzip", "deflate", "br", "identity, gzip"):
        answer = client.post(
            SEARCH,
            data=gzip.compress(b'{"query": "leave"}'),
            headers=headers | {"Content-Encoding": encoding},
        )
        assert (answer.status_code, answer.json["error"]["code"]) == (415, "encoded_body")
    plain = client.post(
        SEARCH, data=b'{"query": "leave"}', headers=headers | {"Content-Encoding": "identity"}
    )
    assert plain.status_code == 200


def test_fields_of_forms_and_query_strings_are_limited(client: FlaskClient, portal: Portal) -> None:
    fields = "&".join(f"f{number}=" for number in range(MAX_FIELDS + 1))
    form = client.post("/login", data=fields, content_type="application/x-www-form-urlencoded")
    assert form.status_code == 413
    listed = client.get(f"/api/knowledge/documents?{fields}", headers=portal.headers())
    assert listed.status_code == 413
    parts = {f"f{number}": "" for number in range(MAX_FIELDS + 1)}
    multipart = client.post(
        "/login", data=parts, content_type="multipart/form-data", headers=portal.headers()
    )
    assert multipart.status_code == 413


def test_error_repeats_no_values_of_the_body(
    client: FlaskClient, headers: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    secret = "the words of a letter"
    for body in (
        {"query": "leave", "extra": secret},
        {"query": {"words": secret}},
        {"query": "leave", secret: 1, "top_k": secret},
    ):
        answer = client.post(SEARCH, json=body, headers=headers)
        assert answer.status_code == 422
        values = json.dumps(answer.json, ensure_ascii=False)
        # The message names the field, so that it can be corrected, but does not echo its value.
        assert secret not in values or secret in body
    assert secret not in caplog.text


@pytest.mark.parametrize(
    "text",
    [
        b'"' + b'\\"' * 200_000,
        b'["' + b"\\" * 200_001,
        b'{"a": "' + b"[{," * 100_000 + b'"}',
        "年假".encode() * 100_000,
        b"]" * 10,
        b"",
    ],
)
def test_brackets_in_strings_are_not_counted(text: bytes) -> None:
    check_json_shape(text, max_values=10)


def test_values_and_depth_are_counted_exactly() -> None:
    check_json_shape(b"[1, 2, {}]", max_values=4)
    with pytest.raises(TooManyValues):
        check_json_shape(b"[1, 2, {}]", max_values=3)
    check_json_shape(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH, max_values=1000)
    with pytest.raises(NestedTooDeeply):
        check_json_shape(b'{"a":' * (MAX_DEPTH + 1), max_values=1000)
    with pytest.raises(TooManyValues):
        check_json_shape(b"]" * 1000, max_values=100)
    with pytest.raises(MalformedRequest):
        check_json_shape(b"[\0]", max_values=100)
