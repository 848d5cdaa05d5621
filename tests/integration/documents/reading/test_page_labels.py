"""Pages are shown with their printed labels; page numbers stay the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

from portal import create_app
from portal.integrations.mcp import documents as mcp_documents
from portal.services import Services
from portal.services.answers import conversations, exporting
from tests.conftest import Portal
from tests.factories import files
from tests.factories.answers import ask, asked, saying

# Each page is long enough for its own chunk.
PREFACE = ["The preface thanks everybody who lent a telescope for this book."] * 4
CONTENTS = ["The contents name every comet and every village of the valley."] * 4
BODY = ["The body explains how comets are counted at night without a lamp."] * 4


def test_labels_are_shown_instead_of_page_numbers_everywhere(
    make_services: Callable[..., Services], tmp_path: Path
) -> None:
    services = make_services(ingest={"chunk_tokens": 50})
    portal = Portal.of(services)
    path = files.labelled_pdf(tmp_path / "book.pdf", [PREFACE, CONTENTS, BODY])
    book = portal.add(path.read_bytes(), name="book.pdf")
    portal.add("A telescope without pages was lent too.")
    client, headers = create_app(services).test_client(), portal.headers()
    question = "Who lent a telescope?"

    body = {"query": question, "top_n": 10}
    found = client.post("/api/knowledge/search", json=body, headers=headers).json["results"]
    pages = {(hit["document_id"], hit["page"]): hit["page_label"] for hit in found}
    assert pages[str(book.id), 1] == "i"
    # The third page is labelled "1".
    assert pages[str(book.id), 3] == "1"
    assert {label for (document, _), label in pages.items() if document != str(book.id)} == {None}
    assert "<span>Page i</span>" in client.get(f"/search?q={question}", headers=headers).text
    text = client.get(f"/documents/{book.id}?view=text", headers=headers).text
    named = ("Page i<", "Page ii<", "Pages ii to 1<")
    marks = [text.index(f"<span>{name}") for name in named]
    assert marks == sorted(marks)

    services = saying(services, "Everybody [1].")
    talk = conversations.create(services, portal.admin)
    sources = ask(services, portal.admin, talk.id, question).citations
    (citation,) = [source for source in sources if source.page == 1]
    assert citation.page_label == "i"
    assert ", page i\n" in asked(services)[0].system
    card = client.get(f"/citations/{citation.id}/card", headers=headers).text
    assert "<span>Page i</span>" in card
    again = saying(services, f"Everybody [{[source.page for source in sources].index(1) + 1}].")
    ask(again, portal.admin, talk.id, question)
    exported = exporting.export(services, portal.admin, talk.id, "zh-CN").content.decode()
    assert "第 i 页" in exported
    assert "A telescope without pages" not in exported.rpartition("### ")[2]  # Not cited.
    fetched = mcp_documents.fetch(
        services, portal.admin, mcp_documents.FetchArguments(id=str(citation.chunk_id))
    )
    assert (fetched.metadata["page"], fetched.metadata["page_label"]) == (1, "i")

    chunks = client.get(f"/api/v1/jobs/{book.job_id}/chunks", headers=headers).json["data"]
    known = {"source_file": "book.pdf", "page_number": 2, "page_label": "ii"}
    assert known in [chunk["metadata"] for chunk in chunks["chunks"]]


MANUAL = """# Manual

## Holidays

Thirty days a year.

## Parking

Gate C is open at night.

## Canteen

Soup is served from eleven.
"""


def test_page_and_heading_are_those_of_the_words_found_in_a_chunk(
    portal: Portal, tmp_path: Path
) -> None:
    path = files.labelled_pdf(tmp_path / "book.pdf", [PREFACE[:1], CONTENTS[:1], BODY[:1]])
    book = portal.add(path.read_bytes(), name="book.pdf")
    manual = portal.add(MANUAL, name="manual.md")
    client = portal.client()

    def found(query: str, document_id: UUID) -> Any:
        answer = client.post("/api/knowledge/search", json={"query": query})
        results = answer.json["results"]
        (hit,) = [result for result in results if result["document_id"] == str(document_id)]
        return hit

    for query, page, label in (
        ("Who lent a telescope?", 1, "i"),
        ("every village of the valley", 2, "ii"),
        ("counted without a lamp", 3, "1"),
    ):
        hit = found(query, book.id)
        assert (hit["page"], hit["page_label"]) == (page, label), query
    for query, heading in (
        ("thirty days", "Manual › Holidays"),
        ("which gate", "Manual › Parking"),
        ("soup from eleven", "Manual › Canteen"),
    ):
        assert found(query, manual.id)["heading"] == heading
    assert "<span>Pages i to 1</span>" in client.get(f"/documents/{book.id}?view=text").text
    # A citation gives the page of the quoted words.
    talk = conversations.create(portal.services, portal.admin)
    cited = ask(portal.services, portal.admin, talk.id, "Is a lamp used when comets are counted?")
    (citation,) = [one for one in cited.citations if "lamp" in one.excerpt]
    assert (citation.page, citation.page_label) == (3, "1")
