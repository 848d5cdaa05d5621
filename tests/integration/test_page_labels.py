"""What is printed on a page is what people read wherever a page is named; its number stays."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from portal import create_app
from portal.integrations.mcp import documents as mcp_documents
from portal.services import Services, accounts, conversations, exporting
from tests import factories_files as files
from tests.conftest import Portal
from tests.factories_answers import ask, asked, saying

# Long enough for a passage of its own each.
PREFACE = ["The preface thanks everybody who lent a telescope for this book."] * 4
CONTENTS = ["The contents name every comet and every village of the valley."] * 4
BODY = ["The body explains how comets are counted at night without a lamp."] * 4


def test_labels_stand_for_numbers_wherever_a_page_is_named(
    make_services: Callable[..., Services], tmp_path: Path
) -> None:
    services = make_services(ingest={"chunk_tokens": 50})
    accounts.ensure_first_administrator(services)
    portal = Portal(services, accounts.find_person(services, "admin"))
    path = files.labelled_pdf(tmp_path / "book.pdf", [PREFACE, CONTENTS, BODY])
    book = portal.add(path.read_bytes(), name="book.pdf")
    portal.add("A telescope without pages was lent too.")
    client, headers = create_app(services).test_client(), portal.headers()
    question = "Who lent a telescope?"

    body = {"query": question, "top_n": 10}
    found = client.post("/api/knowledge/search", json=body, headers=headers).json["results"]
    pages = {(hit["document_id"], hit["page"]): hit["page_label"] for hit in found}
    assert pages[str(book.id), 1] == "i"
    # The third page has a one on it, and says so.
    assert pages[str(book.id), 3] == "1"
    assert {label for (document, _), label in pages.items() if document != str(book.id)} == {None}
    assert "<span>Page i</span>" in client.get(f"/search?q={question}", headers=headers).text
    text = client.get(f"/documents/{book.id}", headers=headers).text
    marks = [text.index(f"<span>Page {label}</span>") for label in ("i", "ii", "1")]
    assert marks == sorted(marks)

    services = saying(services, "Everybody [1].")
    talk = conversations.create(services, portal.admin)
    sources = ask(services, portal.admin, talk.id, question).citations
    (citation,) = [one for one in sources if one.page == 1]
    assert citation.page_label == "i"
    assert ", page i\n" in asked(services)[0].system
    card = client.get(f"/citations/{citation.id}/card", headers=headers).text
    assert "<span>Page i</span>" in card
    exported = exporting.export_markdown(services, portal.admin, talk.id, "zh-CN").text
    assert "第 i 页" in exported
    fetched = mcp_documents.fetch(
        services, portal.admin, mcp_documents.FetchArguments(id=str(citation.chunk_id))
    )
    assert (fetched.metadata["page"], fetched.metadata["page_label"]) == (1, "i")

    chunks = client.get(f"/api/v1/jobs/{book.job_id}/chunks", headers=headers).json["data"]
    known = {"source_file": "book.pdf", "page_number": 2, "page_label": "ii"}
    assert known in [chunk["metadata"] for chunk in chunks["chunks"]]
