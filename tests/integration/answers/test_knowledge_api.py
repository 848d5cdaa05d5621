"""The knowledge API, as programs use it."""

from __future__ import annotations

import io
from pathlib import Path
from uuid import uuid4

import pytest
from flask.testing import FlaskClient
from sqlalchemy import text

from portal.domain import locks
from portal.domain.documents import Visibility
from portal.services.documents.ingestion import indexing
from tests.conftest import Portal
from tests.factories.cases import for_each

DOCUMENTS = "/api/knowledge/documents"
SEARCH = "/api/knowledge/search"
TEXT = "员工每年有十五天带薪年假。"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)


def post(client: FlaskClient, headers, *files: tuple[bytes, str], **form):
    data = {"file": [(io.BytesIO(content), name) for content, name in files]} | form
    return client.post(DOCUMENTS, headers=headers, data=data)


def count(client: FlaskClient, headers) -> int:
    return client.get(DOCUMENTS, headers=headers).json["total_count"]


def test_upload_is_accepted_listed_indexed_and_found(client: FlaskClient, portal: Portal) -> None:
    headers = portal.headers()
    answer = post(client, headers, (TEXT.encode("gb18030"), "年假.txt"))
    assert answer.status_code == 202
    document = answer.json["documents"][0]
    assert (document["title"], document["status"]) == ("年假", "queued")
    indexing.index_document(portal.services, document["job_id"])
    shown = client.get(f"{DOCUMENTS}/{document['id']}", headers=headers).json
    assert (shown["status"], shown["encoding"]) == ("ready", "gb18030")
    content = client.get(f"{DOCUMENTS}/{document['id']}/content", headers=headers).json
    assert content["text"] == TEXT
    original = client.get(f"{DOCUMENTS}/{document['id']}/file", headers=headers)
    assert original.data == TEXT.encode("gb18030")
    assert "attachment" in original.headers["Content-Disposition"]
    found = client.post(SEARCH, headers=headers, json={"query": "年假"}).json
    assert set(found) >= {"query", "results", "total_count", "search_method"}
    assert found["search_method"] == "hybrid"
    result = found["results"][0]
    assert result["document_id"] == document["id"]
    assert 0 <= result["confidence"] <= 1
    assert result["low_confidence"] is (result["confidence"] < 0.5)
    start, end = result["highlights"][0]
    assert "年假" in result["excerpt"][start:end]


@pytest.mark.parametrize(
    ("content", "name", "status", "code"),
    [
        (b"", "empty.txt", 422, "empty_file"),
        (PNG, "picture.pdf", 415, "unsupported_format"),
        (PNG, "picture.gif", 415, "unsupported_format"),
        (b"x" * (50 * 1024 * 1024 + 1), "large.txt", 413, "too_large"),
    ],
    ids=["empty", "png-as-pdf", "png", "large"],
)
def test_unusable_file_is_refused_and_nothing_stored(
    client: FlaskClient, portal: Portal, content: bytes, name: str, status: int, code: str
) -> None:
    headers = portal.headers()
    answer = post(client, headers, (content, name))
    assert (answer.status_code, answer.json["error"]["code"]) == (status, code)
    assert name in answer.json["error"]["message"]
    assert count(client, headers) == 0


def test_encrypted_pdf_is_refused_and_nothing_stored(
    client: FlaskClient, portal: Portal, tmp_path: Path
) -> None:
    from tests.factories.files import encrypted_pdf

    headers = portal.headers()
    content = encrypted_pdf(tmp_path / "locked.pdf", user_password="secret").read_bytes()
    answer = post(client, headers, (content, "locked.pdf"))
    assert (answer.status_code, answer.json["error"]["code"]) == (422, "encrypted_pdf")
    assert count(client, headers) == 0


def test_pdf_that_only_forbids_printing_is_accepted(
    client: FlaskClient, portal: Portal, tmp_path: Path
) -> None:
    from tests.factories.files import encrypted_pdf

    content = encrypted_pdf(tmp_path / "open.pdf", user_password="").read_bytes()
    assert post(client, portal.headers(), (content, "open.pdf")).status_code == 202


def test_one_bad_file_rejects_the_whole_upload(client: FlaskClient, portal: Portal) -> None:
    headers = portal.headers()
    assert post(client, headers, (b"good", "good.txt"), (b"", "bad.txt")).status_code == 422
    assert count(client, headers) == 0


def test_same_bytes_of_the_same_owner_are_stored_once(client: FlaskClient, portal: Portal) -> None:
    headers = portal.headers()
    first = post(client, headers, (b"same", "a.txt")).json["documents"][0]
    second = post(client, headers, (b"same", "b.txt")).json["documents"][0]
    assert (first["id"], first["is_duplicate"]) == (second["id"], False)
    assert second["is_duplicate"] is True
    other = post(client, portal.headers(portal.user("ada")), (b"same", "a.txt"))
    assert other.json["documents"][0]["id"] != first["id"]


def test_idempotency_key_repeats_the_answer(client: FlaskClient, portal: Portal) -> None:
    headers = portal.headers() | {"Idempotency-Key": "key-1"}
    first, second = (post(client, headers, (b"same", "a.txt")) for _ in range(2))
    assert (first.status_code, first.json) == (second.status_code, second.json)
    other = post(client, headers, (b"different", "a.txt"))
    assert (other.status_code, other.json["error"]["code"]) == (409, "idempotency_mismatch")
    with portal.services.database.begin() as session:  # As stored by older versions.
        session.execute(
            text(
                "UPDATE idempotency_keys SET response = jsonb_set(response, '{documents,0}', "
                "(response #> '{documents,0}') - 'job' - 'warnings')"
            )
        )
    old = post(client, headers, (b"same", "a.txt"))
    assert old.status_code == 202
    assert old.json["documents"] == [first.json["documents"][0] | {"job": None}]


def test_failed_request_frees_its_idempotency_key(client: FlaskClient, portal: Portal) -> None:
    headers = portal.headers() | {"Idempotency-Key": "key-1"}
    assert post(client, headers, (b"", "a.txt")).status_code == 422
    assert post(client, headers, (b"text", "a.txt")).status_code == 202


def test_repeated_request_conflicts_only_while_the_first_runs(
    client: FlaskClient, portal: Portal
) -> None:
    headers = portal.headers() | {"Idempotency-Key": "key-1"}
    with portal.services.database.hold(locks.IDEMPOTENCY, f"{portal.admin.id} key-1"):
        busy = post(client, headers, (b"text", "a.txt"))
        assert (busy.status_code, busy.json["error"]["code"]) == (409, "idempotency_in_flight")
    first = post(client, headers, (b"text", "a.txt"))
    with portal.services.database.begin() as session:  # As if the process died before responding.
        session.execute(text("UPDATE idempotency_keys SET response = NULL"))
    again = post(client, headers, (b"text", "a.txt"))
    assert (first.status_code, again.status_code) == (202, 202)
    assert again.json["documents"][0]["id"] == first.json["documents"][0]["id"]


def test_file_of_invisible_characters_fails_as_empty(client: FlaskClient, portal: Portal) -> None:
    document = portal.add("\u200b\u200b \n\u202e")
    assert document.status == "failed"
    assert document.failure
    assert document.failure.code == "empty_file"


def test_search_explains_itself_when_asked(client: FlaskClient, portal: Portal) -> None:
    portal.add(TEXT)
    body = {"query": "年假", "explain": True}
    explanation = client.post(SEARCH, headers=portal.headers(), json=body).json["explanation"]
    assert explanation["keyword_backend"] == "pg_textsearch"
    assert explanation["fusion"] == "weighted"
    assert explanation["candidates"] == 1


def test_delete_restore_and_purge(client: FlaskClient, portal: Portal) -> None:
    document = portal.add(TEXT)
    headers, path = portal.headers(), f"{DOCUMENTS}/{document.id}"
    assert client.delete(path, headers=headers).status_code == 204
    assert client.get(path, headers=headers).status_code == 404
    assert client.post(SEARCH, headers=headers, json={"query": "年假"}).json["results"] == []
    assert client.post(f"{path}/restore", headers=headers).json["status"] == "ready"
    assert client.delete(f"{path}?purge=true", headers=headers).status_code == 204
    assert client.post(f"{path}/restore", headers=headers).status_code == 404
    with portal.services.database.begin() as session:
        from sqlalchemy import text

        for table in ("document_chunks", "chunk_embeddings", "document_revisions", "stored_files"):
            assert session.scalar(text(f"SELECT count(*) FROM {table}")) == 0, table
        title = session.scalar(text("SELECT title FROM documents WHERE purged_at IS NOT NULL"))
        assert title == "note"


def test_list_pages_by_cursor_and_filters(client: FlaskClient, portal: Portal) -> None:
    for number in range(5):
        portal.add(f"text {number}", name=f"note {number}.txt", domain="lab" if number else None)
    headers, seen, cursor = portal.headers(), [], ""
    while cursor is not None:
        query = {"limit": 2} | ({"cursor": cursor} if cursor else {})
        page = client.get(DOCUMENTS, headers=headers, query_string=query).json
        seen += [document["title"] for document in page["documents"]]
        cursor = page["next_cursor"]
    assert seen == [f"note {number}" for number in (4, 3, 2, 1, 0)]
    by_domain = client.get(DOCUMENTS, headers=headers, query_string={"domain": "lab"}).json
    assert by_domain["total_count"] == 4
    by_title = client.get(DOCUMENTS, headers=headers, query_string={"q": "note 3"}).json
    assert [document["title"] for document in by_title["documents"]] == ["note 3"]


def test_refusal_says_what_is_wrong(client: FlaskClient, portal: Portal) -> None:
    bodies = {
        '{"query": "  "}': "query is blank",
        '{"query": "a", "weights": {"vector": 0, "text": 0}}': "weights are both 0",
    }
    headers = portal.headers() | {"Content-Type": "application/json", "Accept-Language": "en"}
    for body, said in bodies.items():
        answer = client.post(SEARCH, headers=headers, data=body)
        assert answer.status_code == 422
        assert said in answer.json["error"]["message"]


@for_each(
    ("body", "status"),
    [
        ("{", 400),
        ("[]", 422),
        ("{}", 422),
        ('{"query": ""}', 422),
        ('{"query": "  "}', 422),
        ('{"query": "a", "unknown": 1}', 422),
        ('{"query": "a", "top_n": 0}', 422),
        ('{"query": "a", "top_n": 101}', 422),
        ('{"query": "a", "mode": "magic"}', 422),
        ('{"query": "a", "weights": {"vector": 0, "text": 0}}', 422),
        ('{"query": "a", "weights": {"vector": -1, "text": 2}}', 422),
        ('{"query": "a", "threshold": NaN}', 422),
        ('{"query": "a", "conversation_id": "x"}', 422),
        ('{"query": "%s"}' % ("a" * 4097), 422),
        ('{"query": "a\\u0000b"}', 200),
        ('{"query": "a\\ud800b"}', 200),
        ('{"query": "a", "conversation_id": "00000000-0000-0000-0000-000000000000"}', 404),
    ],
)
def test_search_refuses_what_is_not_a_search(
    client: FlaskClient, portal: Portal, body: str, status: int
) -> None:
    headers = portal.headers() | {"Content-Type": "application/json"}
    answer = client.post(SEARCH, headers=headers, data=body)
    assert answer.status_code == status
    if status != 200:
        assert answer.json["error"]["code"]
        assert answer.json["error"]["request_id"] == answer.headers["X-Request-ID"]


def test_errors_are_in_the_readers_language(client: FlaskClient, portal: Portal) -> None:
    headers = portal.headers() | {"Accept-Language": "zh-CN"}
    message = client.get(f"{DOCUMENTS}/{uuid4()}", headers=headers).json["error"]["message"]
    assert any("\u4e00" <= character <= "\u9fff" for character in message)


def test_vector_store_switched_off_answers_503_where_vectors_are_needed(
    portal: Portal, make_services
) -> None:
    from portal import create_app

    client = create_app(make_services(vector_store_enabled=False)).test_client()
    headers = portal.headers()
    portal.add(TEXT)
    assert client.post(SEARCH, headers=headers, json={"query": "年假"}).status_code == 503
    by_words = client.post(SEARCH, headers=headers, json={"query": "年假", "mode": "keyword"})
    assert len(by_words.json["results"]) == 1


def test_private_document_is_not_listed_for_others(client: FlaskClient, portal: Portal) -> None:
    portal.add(TEXT, visibility=Visibility.PRIVATE)
    headers = portal.headers(portal.user("other"))
    assert client.get(DOCUMENTS, headers=headers).json["documents"] == []
