"""The upload form without a script."""

from __future__ import annotations

import errno
import io
import re
from typing import Any

import pytest
from flask.testing import FlaskClient

from portal import create_app
from portal.domain.documents import Visibility
from portal.services.documents.intake import uploads
from tests.conftest import Portal
from tests.integration.documents.uploads.conftest import DOCUMENTS, MB, rows_of, send

PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)


def test_form_stores_valid_files_and_reports_the_outcome_of_each(small: Portal) -> None:
    portal, client = small, create_app(small.services).test_client()
    headers, ada = portal.headers(), portal.user("ada")
    portal.add(b"known", name="known.txt")
    portal.add(b"foreign", name="foreign.txt", owner=ada, visibility=Visibility.PRIVATE)
    files = [
        (b"good", "good.txt"),
        (PNG, "picture.pdf"),
        (b"known", "copy.txt"),
        (b"x" * (MB + 1), "large.txt"),
        (b"foreign", "mine.txt"),
    ]
    answer = send(client, headers, *files)
    assert answer.status_code == 200
    queue = answer.text.partition('data-testid="upload-summary"')[2].partition("</ul>")[0]
    states = re.findall(r'data-testid="upload-item"\s+data-state="(\w+)"', queue)
    assert states == ["failed", "failed", "known"]
    assert "2 of 5 uploaded, 1 already there, 2 failed" in " ".join(answer.text.split())
    assert all(word in answer.text for word in ("picture.pdf", "PNG", "larger than the limit"))
    titles = {item["title"] for item in client.get(DOCUMENTS, headers=headers).json["documents"]}
    assert titles == {"good", "known", "mine", "foreign"}
    all_bad = send(client, headers, (PNG, "picture.pdf"), (b"", "empty.txt"))
    assert all_bad.status_code == 415
    assert "0 of 2 uploaded, 2 failed" in " ".join(all_bad.text.split())
    # The domain in the upload form does not filter the document list.
    wished = {"file": (io.BytesIO(PNG), "picture.pdf"), "domain": "law"}
    assert 'class="document-row"' in client.post("/documents", headers=headers, data=wished).text
    copied = send(client, headers, (b"new", "new.txt"), (b"known", "copy.txt"))
    assert "1 of 2 uploaded, 1 already there" in " ".join(copied.text.split())
    few = send(client, headers, (b"1", "1.txt"), (b"2", "2.txt"))
    assert (few.status_code, few.location) == (303, "/documents")


@pytest.mark.parametrize(
    ("address", "fields", "named"),
    [
        (DOCUMENTS, {"visiblity": "private"}, "visiblity"),
        (DOCUMENTS, {"Visibility": "private"}, "Visibility"),
        (f"{DOCUMENTS}?visibility=private", {}, "visibility"),
        (DOCUMENTS, {"visibility": ["private", "shared"]}, "visibility"),
    ],
)
def test_misspelt_visibility_publishes_nothing(
    portal: Portal, address: str, fields: dict[str, Any], named: str
) -> None:
    data = {"file": (io.BytesIO(b"salaries"), "salaries.txt"), **fields}
    answer = portal.app().test_client().post(address, headers=portal.headers(), data=data)
    assert answer.status_code == 422
    assert named in answer.json["error"]["message"]
    assert "csrf_token" not in answer.json["error"]["message"]
    assert rows_of(portal, "documents") == 0


def test_polled_list_adds_no_history_entry(client: FlaskClient, portal: Portal) -> None:
    headers = portal.headers() | {"HX-Request": "true", "HX-Target": "document-results"}
    filtered = client.get("/documents?q=a&status=", headers=headers)
    assert filtered.headers["HX-Push-Url"] == "/documents?q=a"
    refreshed = client.get("/documents?q=a", headers=headers | {"X-Refresh": "true"})
    assert "HX-Push-Url" not in refreshed.headers


def test_list_refreshed_after_an_upload_includes_the_folder_tree(
    client: FlaskClient, portal: Portal
) -> None:
    headers = portal.headers() | {"HX-Request": "true", "HX-Target": "document-results"}
    assert 'id="folder-tree"' not in client.get("/documents", headers=headers).text
    refreshed = client.get("/documents", headers=headers | {"X-Refresh": "true"}).text
    assert re.search(r'<nav id="folder-tree"[^>]*hx-swap-oob="true"', refreshed)


def test_form_stops_at_a_full_disk_and_says_what_was_stored(
    client: FlaskClient, portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_upload, tried = uploads.store_upload, []

    def store(*given: Any, **named: Any) -> Any:
        tried.append(named["file_name"])
        if len(tried) == 2:
            raise OSError(errno.ENOSPC, "no space left")
        return store_upload(*given, **named)

    monkeypatch.setattr(uploads, "store_upload", store)
    files = [(b"%d" % number, f"{number}.txt") for number in range(4)]
    answer = send(client, portal.headers(), *files)
    assert answer.status_code == 200
    assert "1 of 4 uploaded, 3 failed" in " ".join(answer.text.split())
    assert tried == ["0.txt", "1.txt"]


def test_form_with_an_unknown_visibility_stores_nothing(
    client: FlaskClient, portal: Portal
) -> None:
    for more in ({}, {"HX-Request": "true"}):
        data = {"file": [(io.BytesIO(b"text"), "a.txt")], "visibility": "secret"}
        headers = portal.headers() | more
        assert client.post("/documents", headers=headers, data=data).status_code == 422
    assert rows_of(portal, "documents") == 0


def test_form_reports_that_an_existing_copy_is_shared(client: FlaskClient, portal: Portal) -> None:
    portal.add(b"known", name="known.txt")
    data = {"file": [(io.BytesIO(b"known"), "known.txt")], "visibility": "private"}
    headers = portal.headers() | {"HX-Request": "true"}
    answer = client.post("/documents", headers=headers, data=data)
    assert "visible to everyone" in answer.text


def test_long_titles_are_shortened_in_the_notice(client: FlaskClient, portal: Portal) -> None:
    names = [f"{number}{'长' * 250}.txt" for number in range(5)]
    answer = send(client, portal.headers(), *((name.encode(), name) for name in names))
    assert answer.status_code == 303
    assert max(map(len, answer.headers.getlist("Set-Cookie"))) < 4000


def test_refused_upload_keeps_its_visibility_and_domain(
    client: FlaskClient, portal: Portal
) -> None:
    headers = {**portal.headers(), "Accept": "text/html"}
    sent = {"visibility": "private", "domain": "law"}
    for file in ((io.BytesIO(b""), "empty.txt"), (io.BytesIO(b""), "")):
        page = client.post("/documents", headers=headers, data=sent | {"file": file}).text
        field = page.partition('data-testid="upload-for"')[2].partition("</select>")[0]
        assert "selected" in field.partition('value="private"')[2]
        assert 'value="law"' in page
    sent["visibility"] = "shared"
    page = client.post("/documents", headers=headers, data=sent).text
    assert "selected" not in page.partition('data-testid="upload-for"')[2].partition("</select>")[0]
