"""Rereading a document with another encoding or with OCR, and warnings about missing text."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from sqlalchemy import text

from portal import create_app
from portal.domain.documents import DocumentStatus, MediaType
from portal.ingest.formats.pages import page_recognition
from portal.ingest.media_types import known_suffixes
from portal.services.documents.ingestion import rereading
from portal.text.titles import MAX_DOMAIN_CHARACTERS, MAX_TITLE_CHARACTERS
from tests.conftest import Portal
from tests.factories import files
from tests.integration.documents.revisions.versions import read

# Short enough to be detected as another encoding in which all its bytes are valid.
AMBIGUOUS = "Привет. ".encode("cp1251") * 20


def test_another_encoding_is_chosen_on_the_page_or_by_the_api(portal: Portal) -> None:
    client = create_app(portal.services).test_client()
    document = portal.add(AMBIGUOUS, name="note.txt")
    address, headers = f"/api/knowledge/documents/{document.id}", portal.headers()
    first = client.get(f"{address}/content", headers=headers).json
    recognised = client.get(address, headers=headers).json["encoding"]
    assert recognised == "cp1252"

    def again(encoding: object) -> tuple[int, str]:
        answer = client.post(f"{address}/reindex", json={"encoding": encoding}, headers=headers)
        return answer.status_code, (answer.json["error"] or {}).get("code", "")

    # An impossible encoding is refused and changes nothing.
    assert again("utf-8") == (422, "undecodable_as")
    for unknown in ("zip", "base64", "no-such-thing", "utf\0", "x" * 41, 5):
        assert again(unknown)[0] in {400, 422}, unknown
    assert client.get(address, headers=headers).json["status"] == "ready"
    wide = portal.add("Words in two bytes each.".encode("utf-16-le"), name="wide.txt")
    for wrong in ("cp1252", "gb18030"):  # Every byte is valid there, but every second one is NUL.
        answer = client.post(f"/api/knowledge/documents/{wide.id}/reindex",
                             json={"encoding": wrong}, headers=headers)  # fmt: skip
        assert (answer.status_code, answer.json["error"]["code"]) == (422, "undecodable_as"), wrong
    # A NUL past the part of the file that is checked before it is stored.
    damaged = portal.add(b"Words of a report. " * 4_000 + b"twi\0ce", name="damaged.txt")
    told = client.get(f"/api/knowledge/documents/{damaged.id}", headers=headers).json
    assert told["encoding"] == "utf-8"
    assert told["warnings"] == ["U+0000 (NUL), shown as “�” in the text: 1"]
    shown = client.get(f"/documents/{damaged.id}", headers=headers | {"Accept-Language": "en"}).text
    assert told["warnings"][0] in shown
    # A possible encoding starts a rereading; the current text stays until it is done.
    assert again("windows-1251") == (202, "")
    assert again("windows-1251") == (409, "conflict")
    assert client.get(f"{address}/content", headers=headers).json == first
    read(portal, document.id)
    second = client.get(f"{address}/content", headers=headers).json
    assert second["text"] == AMBIGUOUS.decode("cp1251")
    assert second["revision_id"] != first["revision_id"]
    assert client.get(address, headers=headers).json["encoding"] == "cp1251"

    page = client.get(f"/documents/{document.id}", headers=headers).text
    assert '<span data-testid="document-encoding">CP1251</span>' in page
    assert '<option value="gb18030">GB18030</option>' in page
    sent = client.post(f"/documents/{document.id}/reindex", headers=headers,
                       data={"encoding": "utf-8"})  # fmt: skip
    assert sent.status_code == 422
    assert "is not valid UTF-8" in sent.text
    # Without a choice, the encoding is detected as it was the first time.
    sent = client.post(f"/documents/{document.id}/reindex", headers=headers, data={"encoding": ""})
    assert sent.status_code == 303
    read(portal, document.id)
    assert client.get(f"{address}/content", headers=headers).json["text"] == first["text"]
    # Each reading is a revision, so that citations of earlier ones keep their text.
    with portal.services.database.begin() as session:
        revisions = session.scalars(
            text("SELECT encoding FROM document_revisions WHERE document_id = :id "
                 "ORDER BY revision_number"),
            {"id": document.id},
        )  # fmt: skip
        assert list(revisions) == [recognised, "cp1251", recognised]


def test_pages_without_text_cause_a_warning_everywhere(
    portal: Portal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_recognition, "is_installed", lambda: False)
    client = portal.client()
    partly = portal.add(files.partly_scanned_pdf(tmp_path / "a.pdf").read_bytes(), name="a.pdf")
    assert partly.status is DocumentStatus.READY
    said = "no text on pages 3–9, only pictures or drawings. This portal does not read"
    listed = client.get("/api/knowledge/documents").json["documents"]
    for model in (
        *listed,
        client.get(f"/api/knowledge/documents/{partly.id}").json,
    ):
        assert [warning[: len(said)] for warning in model["warnings"]] == [said]
    for page in ("/documents", f"/documents/{partly.id}"):
        shown = client.get(page, headers={"Accept-Language": "en"}).text
        assert "document-warning" in shown
        assert said in shown

    scan = portal.add(files.pdf_without_text(tmp_path / "b.pdf", 3).read_bytes(), name="b.pdf")
    assert scan.status is DocumentStatus.FAILED
    error = client.get(f"/api/knowledge/documents/{scan.id}").json["error"]
    assert error["code"] == "no_text_in_pdf"
    assert "no text on pages 1–3" in error["message"]
    assert "ask an administrator to install text recognition" in error["message"]
    # Only text files offer an encoding; a PDF is reread with the tools installed since.
    answer = client.post(
        f"/api/knowledge/documents/{partly.id}/reindex", json={"encoding": "gb18030"}
    )
    assert answer.status_code == 422
    rereading.reread(portal.services, portal.admin, partly.id)
    read(portal, partly.id)


def test_uploaded_web_page_is_shown_in_a_sandbox(portal: Portal, tmp_path: Path) -> None:
    client = portal.client()
    web = portal.add(files.WEB_PAGE, name="page.html")
    original = client.get(f"/documents/{web.id}/file")
    policy = original.headers["Content-Security-Policy"].split("; ")
    assert original.mimetype == "text/html"
    # A sandbox without allowances: no scripts, forms, cookies or requests of the portal.
    assert policy[0] == "default-src 'none'"
    assert policy[-1] == "sandbox"
    assert not [rule for rule in policy if rule.startswith(("script", "connect", "form"))]
    source = client.get(f"/documents/{web.id}/file?source=1")
    assert source.mimetype == "text/plain"
    assert client.get(f"/documents/{web.id}").status_code == 200
    listed = client.get("/api/knowledge/documents?type=html").json
    assert [document["type"] for document in listed["documents"]] == ["HTML"]


def _longest(name: str, page: str) -> int:
    """Return the maximum length of the page's field of this name."""
    (field,) = re.findall(rf'<input\b[^>]*?\bname="{name}"[^>]*>', page)
    return int(re.findall(r'maxlength="(\d+)"', field)[0])


def test_forms_allow_every_accepted_type_and_length(portal: Portal) -> None:
    client = portal.client()
    document = portal.add("有标题的文字".encode(), name="a.txt")
    for address in ("/documents", f"/documents/{document.id}"):
        page = client.get(address).text
        (accept,) = re.findall(r'accept="([^"]+)"', page)
        assert set(accept.split(",")) == {*known_suffixes(), *MediaType}
        assert _longest("domain", page) == MAX_DOMAIN_CHARACTERS
    assert _longest("title", page) == MAX_TITLE_CHARACTERS
    longest = {"title": "题" * MAX_TITLE_CHARACTERS, "domain": "域" * MAX_DOMAIN_CHARACTERS}
    edited = client.post(f"/documents/{document.id}/edit", data={**longest, "visibility": "shared"})
    assert edited.status_code == 303
    taken = client.post(
        "/api/knowledge/documents",
        data={"file": (io.BytesIO(files.WEB_PAGE.encode()), "notes.txt")},
    )
    assert taken.json["documents"][0]["media_type"] == "text/html"
