"""Files made to break their readers end with the right error or text, and cost little."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote
from uuid import UUID

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from portal.domain.documents import DocumentStatus
from portal.ingest.formats.pages import page_recognition
from portal.services.documents import library
from portal.services.documents.ingestion import indexing
from tests.conftest import Portal
from tests.factories.files.hostile import READY, Hostile, hostile_files
from tests.factories.files.more_hostile import more_hostile_files

MAX_MEMORY_KB = 1 << 20
BOUNDARY = "a-boundary-of-our-own"


@pytest.fixture(autouse=True)
def _no_text_recognition(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disable OCR, which takes seconds a page and has its own tests."""
    monkeypatch.setattr(page_recognition, "is_installed", lambda: False)


def send(client: FlaskClient, portal: Portal, header: str, data: bytes) -> TestResponse:
    """Upload a file with exactly this part header, which a test client would rewrite."""
    body = f"--{BOUNDARY}\r\n{header}\r\n\r\n".encode() + data + f"\r\n--{BOUNDARY}--\r\n".encode()
    return client.post(
        "/api/knowledge/documents",
        data=body,
        content_type=f"multipart/form-data; boundary={BOUNDARY}",
        headers=portal.headers(),
    )


def send_named(client: FlaskClient, portal: Portal, name: str, data: bytes) -> TestResponse:
    """Upload with the file name as browsers encode it: UTF-8, quotes and line ends escaped."""
    for sign, code in (('"', "%22"), ("\r", "%0D"), ("\n", "%0A")):
        name = name.replace(sign, code)
    return send(client, portal, f'Content-Disposition: form-data; name="file"; filename="{name}"',
                data)  # fmt: skip


@pytest.mark.parametrize("make", [hostile_files, more_hostile_files])
def test_each_hostile_file_ends_with_the_expected_outcome(
    client: FlaskClient, portal: Portal, tmp_path: Path, make: Callable[[], Iterator[Hostile]]
) -> None:
    wrong: dict[str, str] = {}
    before = _peak_kb(forget=True)
    hostile = list(make())
    for file in hostile:
        answer = send_named(client, portal, file.name, file.data(tmp_path))
        assert answer.status_code < 500, file.name
        ended = _outcome(portal, answer)
        if problem := _problem(client, portal, file, answer, ended):
            wrong[file.name[:40]] = problem
    assert not wrong, json.dumps(wrong, indent=1, ensure_ascii=False)
    assert len(hostile) >= 60
    _no_document_is_stuck(portal)
    assert _peak_kb() - before < MAX_MEMORY_KB


def _peak_kb(*, forget: bool = False) -> int:
    """Return this process's peak memory; with `forget`, reset it first, because other tests raise
    it too. Readers run in separate processes with their own limits."""
    if forget:
        Path("/proc/self/clear_refs").write_text("5")
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0])


def _outcome(portal: Portal, answer: TestResponse) -> str:
    """Return READY, or the error code of the upload or of the job."""
    if answer.status_code != 202:
        return str(answer.json["error"]["code"])
    (document,) = answer.json["documents"]
    assert not document["is_duplicate"], document["file_name"]
    indexing.index_document(portal.services, UUID(document["job_id"]))
    summary = library.get_summary(portal.services, portal.admin, UUID(document["id"]))
    return summary.failure.code if summary.failure else summary.status.value


def _problem(
    client: FlaskClient, portal: Portal, file: Hostile, answer: TestResponse, ended: str
) -> str:
    """Describe what is wrong; empty if nothing is."""
    if ended not in file.outcome.split("|"):
        return f"ended as {ended}, not {file.outcome}"
    if answer.status_code != 202:
        return ""
    (document,) = answer.json["documents"]
    if file.stored_as not in {None, document["file_name"]}:
        return f"is called {document['file_name']!r}"
    return _reading_problem(client, portal, file, document["id"]) if ended == READY else ""


def _reading_problem(client: FlaskClient, portal: Portal, file: Hostile, identifier: str) -> str:
    address, headers = f"/documents/{identifier}", portal.headers()
    text = client.get(f"/api/knowledge{address}/content", headers=headers).json["text"]
    if file.says not in text or file.never in text:
        return f"reads {text[:80]!r}"
    if "<" in text + file.name and "<script>alert" in client.get(address, headers=headers).text:
        return "runs its script in our page"
    return ""


def _no_document_is_stuck(portal: Portal) -> None:
    page = library.list_documents(portal.services, portal.admin, limit=200)
    statuses = Counter(item.status for item in page.items)
    assert set(statuses) == {DocumentStatus.READY, DocumentStatus.FAILED}


NAMES_BY_RFC_5987 = {
    "filename*=UTF-8''%E6%89%8B%E5%86%8C%20%E2%91%A0.txt": "手册 ①.txt",
    "filename=\"x.txt\"; filename*=UTF-8''%E6%89%8B%E5%86%8C.txt": "手册.txt",
    "filename*=utf-8'zh'%E6%89%8B%E5%86%8C2.txt": "手册2.txt",
    "filename*=ISO-8859-1''%E9t%E9.txt": "été.txt",
    "filename*=UTF-8''..%2F..%2Fetc%2Fpasswd.txt": "passwd.txt",
    'filename="plain \\"quoted\\" name.txt"': 'plain "quoted" name.txt',
}


def test_rfc_5987_names_are_decoded_and_sent_back(client: FlaskClient, portal: Portal) -> None:
    for parameters, name in NAMES_BY_RFC_5987.items():
        header = f'Content-Disposition: form-data; name="file"; {parameters}'
        answer = send(client, portal, header, f"words of {name}".encode())
        (document,) = answer.json["documents"]
        assert document["file_name"] == name
        original = f"/api/knowledge/documents/{document['id']}/file"
        sent_back = client.get(original, headers=portal.headers()).headers["Content-Disposition"]
        assert sent_back == f"attachment; filename*=UTF-8''{quote(name, safe='')}"
