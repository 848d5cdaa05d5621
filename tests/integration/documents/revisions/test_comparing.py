"""Earlier texts of a document, and the differences between them."""

from __future__ import annotations

import re
from typing import Any

import pytest
from flask.testing import FlaskClient

from portal.domain.documents import Visibility
from portal.errors import NotFound
from portal.services.documents import library
from portal.services.documents.versions import comparisons, revision_changes, revisions
from tests.conftest import Portal
from tests.factories.uploads import upload
from tests.integration.documents.revisions.versions import FIRST, SECOND, THIRD, body, read, send


def test_texts_that_would_take_too_long_are_not_compared(
    portal: Portal, client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers = portal.headers() | {"Accept-Language": "en"}
    document = portal.add("a\rb\rc")
    with monkeypatch.context() as patch:
        patch.setattr(comparisons, "MAX_UNITS", 5)
        send(portal, document.id, "a\rb\u2028d")
        read(portal, document.id)
        # Published without a count of changes.
        newest = revisions.list_revisions(portal.services, portal.admin, document.id).items[0]
        assert (newest.number, newest.characters_added) == (2, None)
        address = f"/api/knowledge/documents/{document.id}/revisions/2/differences"
        refused = client.get(address, headers=headers)
        assert (refused.status_code, refused.json["error"]["code"]) == (413, "too_many_lines")
        page = client.get(f"/documents/{document.id}/revisions/2?against=1", headers=headers)
        assert page.status_code == 200
        assert "more than 5 lines and sentences" in page.text
        patch.setattr(comparisons, "MAX_CHARACTERS", 3)
        assert client.get(address, headers=headers).json["error"]["code"] == "texts_too_long"

    # Comparisons run one at a time; results are cached, and shown only to those who may see them.
    monkeypatch.setattr(comparisons, "_TIMEOUT_S", 0)
    with portal.services.comparisons._place:
        busy = client.get(address, headers=headers)
    assert (busy.status_code, busy.json["error"]["code"]) == (503, "overloaded")
    assert int(busy.headers["Retry-After"]) > 0
    told = client.get(address, headers=headers)
    assert told.status_code == 200
    with portal.services.comparisons._place:
        assert client.get(address, headers=headers).json == told.json
        library.change_document(
            portal.services, portal.admin, document.id, visibility=Visibility.PRIVATE
        )
        ada = portal.headers(portal.user("ada"))
        assert client.get(address, headers=ada).status_code == 404


def test_text_is_published_even_if_counting_changes_fails(
    portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_much(_old: str, _new: str) -> None:
        raise MemoryError

    monkeypatch.setattr(revision_changes, "compare", too_much)
    document = portal.add(FIRST)
    send(portal, document.id, SECOND)
    read(portal, document.id)
    assert body(portal, document.id) == SECOND
    newest = revisions.list_revisions(portal.services, portal.admin, document.id).items[0]
    assert (newest.is_current, newest.characters_added) == (True, None)
    # The document is purged between two statements.
    monkeypatch.setattr(revisions.revision_store, "read_body", lambda *_, **__: None)
    with pytest.raises(NotFound):
        revisions.read_text(portal.services, portal.admin, document.id, 1)


def test_api_adds_lists_reads_and_compares_revisions(portal: Portal, client: FlaskClient) -> None:
    headers = portal.headers() | {"Accept-Language": "en"}
    document = portal.add(FIRST)
    address = f"/api/knowledge/documents/{document.id}/revisions"

    def post(content: str, key: str | None = None) -> Any:
        keyed = {"Idempotency-Key": key} if key else {}
        data = {"file": (upload(content), "new.txt")}
        return client.post(address, data=data, headers=headers | keyed)

    same = post(FIRST)
    assert (same.status_code, same.json["is_duplicate"]) == (202, True)
    assert same.json["job"]["status"] == "ready"
    sent = post(SECOND, "a-key")
    assert (sent.status_code, sent.json["is_duplicate"], sent.json["id"]) == (
        202, False, str(document.id),
    )  # fmt: skip
    assert sent.json["job"]["status"] == "queued"
    assert post(SECOND, "a-key").json == sent.json
    assert post(THIRD, "a-key").status_code == 409
    assert client.post(address, data={"title": "x"}, headers=headers).status_code == 400
    assert post("").json["error"]["code"] == "empty_file"
    assert client.delete(f"{address}/unread", headers=headers).status_code == 409
    read(portal, document.id)

    listed = client.get(address, headers=headers).json
    assert listed["total_count"] == 2
    assert [(revision["number"], revision["is_current"]) for revision in listed["revisions"]] == [
        (2, True), (1, False),
    ]  # fmt: skip
    first = client.get(f"{address}?limit=1", headers=headers).json
    rest = client.get(f"{address}?limit=1&cursor={first['next_cursor']}", headers=headers).json
    assert [*first["revisions"], *rest["revisions"]] == listed["revisions"]
    assert rest["next_cursor"] is None
    for cursor in ("x", "9" * 200, "-1", "9" * 10, "0" * 20 + "9" * 20):
        assert client.get(f"{address}?cursor={cursor}", headers=headers).status_code == 400
    assert client.get(f"{address}/1/content", headers=headers).json["text"] == FIRST
    assert client.get(f"{address}/1/file", headers=headers).data == FIRST.encode()
    told = client.get(f"{address}/2/differences", headers=headers).json
    assert (told["against"], told["characters_added"], told["characters_removed"]) == (1, 6, 7)
    assert [(stretch["kind"], stretch["text"]) for stretch in told["stretches"]][1:3] == [
        ("removed", "fifteen"), ("added", "twenty"),
    ]  # fmt: skip
    back = client.get(f"{address}/1/differences?against=2", headers=headers).json
    assert back["characters_added"] == 7
    for missing in ("3/content", f"{10**12}/content", "1/differences", "0/file"):
        assert client.get(f"{address}/{missing}", headers=headers).status_code == 404, missing
    # Text that looks like markup is escaped on the pages.
    post(f"{SECOND}\n<script>alert(1)</script>\n")
    read(portal, document.id)
    page = client.get(f"/documents/{document.id}/revisions/3?against=1", headers=headers)
    assert page.status_code == 200
    assert "<ins>twenty</ins>" in page.text
    assert "<script>alert" not in page.text
    assert "&lt;script&gt;alert" in page.text
    for path in ("", "/1", "/1?part=7", "/1?part=99999", "/2/file", "/3?against=2&part=99"):
        answer = client.get(f"/documents/{document.id}/revisions{path}", headers=headers)
        assert answer.status_code == 200, path


def test_text_of_a_version_is_laid_out_in_whole_lines(client: FlaskClient, portal: Portal) -> None:
    rows = "\n".join(f"| Item number {n} | {n} euros |" for n in range(2500))
    document = portal.add(f"# Prices\n\n| What | Price |\n|---|---|\n{rows}", name="prices.md")
    address, cells = f"/documents/{document.id}/revisions/1", []
    for part in (1, 2, 3):
        page = client.get(address, query_string={"part": part}, headers=portal.headers()).text
        shown = page[page.index('data-testid="revision-text"') :]
        assert '<th scope="col">Price</th>' in shown
        assert " | " not in shown
        cells += re.findall(r"<td>(.*?)</td>", shown)
    assert cells == [cell for n in range(2500) for cell in (f"Item number {n}", f"{n} euros")]
