"""The page of a document's text: parts, structure, outline and find, without JavaScript."""

from __future__ import annotations

import re
from html import unescape

import pytest
from flask import Flask
from flask.testing import FlaskClient

from portal import create_app
from portal.domain.documents import DocumentSummary
from portal.web.documents.reading.document import CHUNKS_PER_PAGE
from tests.conftest import Portal

GUIDE = """# Guide

## Ovens

- Clean the Oven.
- Log it.

```
bake(loaf)
```

| Bread | Minutes |
|---|---|
| Rye | 55 |

## Cooling

The oven
cools overnight.
"""


@pytest.fixture
def app(portal: Portal) -> Flask:
    return create_app(portal.services)


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return app.test_client()


@pytest.fixture
def guide(portal: Portal) -> DocumentSummary:
    return portal.add(GUIDE, name="guide.md")


def test_structure_of_a_document_is_shown(
    client: FlaskClient, portal: Portal, guide: DocumentSummary
) -> None:
    page = client.get(f"/documents/{guide.id}", headers=portal.headers()).text
    assert re.search(
        r'<ul class="passage-list">\s*<li class="bulleted"[^>]*>Clean the Oven.</li>', page
    )
    assert "<code>bake(loaf)</code>" in page
    assert re.search("<td[^>]*>Rye</td><td[^>]*>55</td>", page)
    assert "Rye | 55" not in page


def test_find_counts_and_marks_all_matches_and_chooses_one(
    client: FlaskClient, portal: Portal, guide: DocumentSummary
) -> None:
    headers = portal.headers() | {"Accept-Language": "en"}
    page = client.get(f"/documents/{guide.id}?find=OVEN&match=2", headers=headers).text
    marks = re.findall(r'<mark( id="found")? class="found">([^<]*)</mark>', page)
    assert marks == [("", "Oven"), (' id="found"', "Oven"), ("", "oven")]
    assert "2 of 3" in page
    across_lines = client.get(f"/documents/{guide.id}?find=oven+cools", headers=headers).text
    assert "1 of 1" in across_lines
    nothing = client.get(f"/documents/{guide.id}?find=<b>.*", headers=headers).text
    assert "No matches" in nothing
    assert "<b>" not in nothing


def test_outline_leads_to_the_heading(
    client: FlaskClient, portal: Portal, guide: DocumentSummary
) -> None:
    page = client.get(f"/documents/{guide.id}", headers=portal.headers()).text
    links = re.findall(r'href="([^"]*at=\d+)#(at-\d+)">([^<]+)<', page)
    assert [title for *_, title in links] == ["Guide", "Ovens", "Cooling"]
    for address, anchor, title in links:
        there = client.get(unescape(address), headers=portal.headers()).text
        assert re.search(rf'id="{anchor}">\s*{title}\s*<', there)


def test_parts_follow_one_another_without_gap_or_overlap(
    client: FlaskClient, portal: Portal
) -> None:
    text = "\n\n".join(f"Paragraph {n}. " + f"Word{n} follows. " * 60 for n in range(60))
    long = portal.add(text, name="long.txt")
    headers = portal.headers()
    address, seen = f"/documents/{long.id}", []
    page = client.get(address, headers=headers).text
    while True:
        seen += re.findall(r'data-chunk-id="([^"]+)"', page)
        below = re.search(r'id="text-below".*?hx-get="([^"]+)"', page, flags=re.DOTALL)
        if below is None:
            break
        target = {"HX-Request": "true", "HX-Target": "text-below"}
        page = client.get(unescape(below[1]), headers=headers | target).text
        assert "<html" not in page
    assert len(seen) == len(set(seen)) == long.chunk_count > CHUNKS_PER_PAGE
    target = {"HX-Request": "true", "HX-Target": "text-above"}
    above = client.get(f"{address}?part=1&before=3", headers=headers | target).text
    assert re.findall(r'data-chunk-id="([^"]+)"', above) == seen[:3]


def test_markdown_opens_as_a_page_in_a_sandbox_without_scripts(
    client: FlaskClient, portal: Portal
) -> None:
    text = "---\ntitle: A & B\n---\n# Ovens\n\n| Bread |\n|---|\n| Rye |\n\n<script>a()</script>\n"
    document = portal.add(text, name="ovens <b>.md")
    address = f"/documents/{document.id}/file"
    shown = client.get(address, headers=portal.headers())
    assert shown.mimetype == "text/html"
    assert "<h1>Ovens</h1>" in shown.text
    assert "<td>Rye</td>" in shown.text
    assert "title: A &amp; B" in shown.text
    assert "<title>ovens &lt;b&gt;.md</title>" in shown.text
    policy = shown.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")
    assert policy.endswith("sandbox")
    source = client.get(f"{address}?source=1", headers=portal.headers())
    assert (source.mimetype, source.text) == ("text/plain", text)
    saved = client.get(f"{address}?download=1", headers=portal.headers())
    assert saved.headers["Content-Disposition"].startswith("attachment")
    assert saved.text == text


def test_refused_edit_keeps_what_was_typed(
    client: FlaskClient, portal: Portal, guide: DocumentSummary
) -> None:
    typed = {"title": "Baking", "tags": "x" * 60, "domain": "food", "visibility": "private"}
    answer = client.post(f"/documents/{guide.id}/edit", headers=portal.headers(), data=typed)
    assert answer.status_code == 422
    form = answer.text.partition('class="edit-form')[2].partition("</form>")[0]
    for value in ("Baking", "x" * 60, "food"):
        assert f'value="{value}"' in form
    assert "selected" in form.partition('value="private"')[2].partition(">")[0]
