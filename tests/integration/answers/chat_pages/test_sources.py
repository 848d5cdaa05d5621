"""Sources of an answer beside its conversation."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from flask import Flask, get_template_attribute
from sqlalchemy import text

from portal.domain.conversations import SourceState
from portal.domain.documents import DocumentSummary
from portal.services.documents import library
from portal.services.documents.ingestion import indexing
from portal.store.documents.ingestion import files, jobs
from portal.web.answers.rendering import changed_count, quoted_header
from portal.web.presenters import percent
from tests.conftest import Portal
from tests.factories.uploads import upload
from tests.integration.answers.chat_pages.conftest import FRAGMENT, PANE, Chat, text_of


def test_panel_card_and_replay_show_the_source(chat: Chat) -> None:
    address = chat.begin()
    chat.ask(address)
    message = chat.messages(address)[1]
    citation = message.citations[0]
    sources = f"{address}?sources={message.id}&at={citation.marker}"
    panel = chat.get(sources, **PANE).get_data(as_text=True)
    assert "<html" not in panel
    assert len(re.findall(r'aria-current="true"', panel)) == 1
    assert "<html" in chat.get(sources).get_data(as_text=True)
    card = text_of(chat.get(f"/citations/{citation.id}/card", **FRAGMENT))
    assert "handbook" in card
    assert "closes at six" in card
    assert f"{percent(citation.confidence)}%" in card
    assert ("Low confidence" in card) is citation.low_confidence
    replay = text_of(chat.get(f"{address}/messages/{message.id}/replay"))
    assert message.replay is not None
    assert message.replay.selection_hash in replay
    assert "1 of 1" in replay
    assert "scripted-1" in replay
    assert "The quote matches the stored text." in replay


def test_card_of_a_table_row_names_the_column_of_each_cell(chat: Chat, portal: Portal) -> None:
    rows = "".join(f"Desk {number},{number * 10} EUR,{number + 11}\n" for number in range(1, 200))
    portal.add(f"Article,Price,Days\n{rows}Lamp closes at six,88 EUR,21\n", name="prices.csv")
    address = chat.begin()
    chat.ask(address, "What does the lamp that closes at six cost?")
    citation = chat.messages(address)[1].citations[0]
    assert citation.excerpt == "Lamp closes at six | 88 EUR | 21"
    for language, said in (("en", "Days: 21"), ("zh", "Days：21")):
        headers = FRAGMENT | {"Accept-Language": language}
        card = chat.get(f"/citations/{citation.id}/card", **headers).text
        assert f"<li>{said}</li>" in card
        assert "<table" not in card


@pytest.mark.parametrize(
    ("excerpt", "header"),
    [
        ("Lamp_2 | 88 | ", ("Article", "Price (CNY)", "Days")),
        ("Lamp_2 | 88", ("Article", "Price (CNY)", "Days")),
        ("Lamp_2 | 99", ()),
        ("Lamp_2", ()),
    ],
)
def test_quoted_rows_have_the_header_of_the_answer(
    app: Flask, chat: Chat, excerpt: str, header: tuple[str, ...]
) -> None:
    address = chat.begin()
    chat.ask(address)
    message = chat.messages(address)[1]
    table = "> | Article | Price (CNY) | Days |\n> | --- | --- | --- |\n> | Lamp\\_2 | **88** |  |"
    citation = replace(message.citations[0], excerpt=excerpt)
    message = replace(message, content=f"{table}\n>\n> [1]", citations=(citation,))
    assert quoted_header(message, citation) == header
    with app.test_request_context():
        quotation = get_template_attribute("macros/text.html", "quotation")
        shown = quotation(excerpt, quoted_header(message, citation))
    assert shown.count('<th scope="col">') == len(header)


def test_citation_page_marks_a_quote_that_no_longer_matches(
    chat: Chat, portal: Portal, office: DocumentSummary
) -> None:
    address = chat.begin()
    chat.ask(address)
    message = chat.messages(address)[1]
    sources = chat.get(f"{address}?sources={message.id}").get_data(as_text=True)
    check = re.search(r'href="([^"]+)"\s+data-testid="check-quote"', sources)
    assert check is not None
    with portal.services.database.begin() as session:
        session.execute(text("UPDATE document_revisions SET text = replace(text, 'six', 'ten')"))
    assert "The quote is no longer in the stored text." in text_of(chat.get(check[1]))


def test_only_cited_sources_count_as_changed(chat: Chat, office: DocumentSummary) -> None:
    address = chat.begin()
    chat.ask(address)
    message = chat.messages(address)[1]
    gone = replace(message.citations[0], state=SourceState.GONE)
    for was_cited, count in ((False, 0), (True, 1)):
        citations = (*message.citations, replace(gone, was_cited=was_cited))
        assert changed_count(replace(message, citations=citations)) == count


@pytest.mark.parametrize(
    ("purge", "said"),
    [(False, "Document in the trash"), (True, "Document deleted")],
)
def test_old_citation_opens_after_its_document_is_deleted(
    chat: Chat, portal: Portal, office: DocumentSummary, purge: bool, said: str
) -> None:
    address = chat.begin()
    chat.ask(address)
    message = chat.messages(address)[1]
    library.delete_document(portal.services, portal.admin, office.id)
    if purge:
        library.purge_document(portal.services, portal.admin, office.id)
    page = chat.get(address)
    panel = chat.get(f"{address}?sources={message.id}")
    assert said in text_of(panel)
    # No confidence is shown for words that cannot be read.
    source = chat.get(f"{address}?source={message.citations[0].id}")
    card = chat.get(f"/citations/{message.citations[0].id}/card", **FRAGMENT)
    for shown in (panel, source, card):
        assert ('data-testid="confidence"' in shown.text) is not purge
        assert "May not match" not in shown.text
    replay = text_of(chat.get(f"{address}/messages/{message.id}/replay"))
    assert ("Confidence " in replay) is not purge
    assert "1 source has changed" in text_of(page)
    cited = chat.get(f"/citations/{message.citations[0].id}")
    assert cited.status_code == 200
    assert ("closes at six" in text_of(cited)) is not purge
    assert ("The quote matches the stored text." in text_of(cited)) is not purge
    assert ("the quote cannot be checked" in text_of(cited)) is purge
    assert "/documents/" + str(office.id) not in page.get_data(as_text=True)


def test_replaced_document_opens_at_the_words_that_were_cited(
    chat: Chat, portal: Portal, office: DocumentSummary
) -> None:
    address = chat.begin()
    chat.ask(address)
    with portal.services.database.begin() as session:
        file_id = files.add_file(session, upload("It never closes now."))
        job_id = jobs.add_job(session, document_id=office.id, file_id=file_id)
    indexing.index_document(portal.services, job_id)
    message = chat.messages(address)[1]
    panel = chat.get(f"{address}?sources={message.id}")
    assert "The document has changed" in text_of(panel)
    # In the head of the pane, which stays in sight above the quoted words.
    pane = chat.get(f"{address}?source={message.citations[0].id}").get_data(as_text=True)
    head = pane.partition('class="side-content source-pane"')[2].partition("</header>")[0]
    assert 'data-state="replaced"' in head
    path = f"/documents/{office.id}?citation={message.citations[0].id}"
    page = chat.get(path).get_data(as_text=True)
    assert 'class="earlier-text"' in page
    assert re.findall(r'<mark id="quote"[^>]*>([^<]*)', page) == [message.citations[0].excerpt]
    assert "It never closes now." in page
    assert 'data-testid="replaced-notice"' in page
    other = portal.add("Plums.", name="plums.txt")
    elsewhere = chat.get(f"/documents/{other.id}?citation={message.citations[0].id}")
    assert "no longer exists" in text_of(elsewhere)
    assert "closes at six" not in text_of(elsewhere)
