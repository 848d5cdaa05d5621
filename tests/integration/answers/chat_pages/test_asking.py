"""Asking questions on the pages of conversations, without JavaScript."""

from __future__ import annotations

import re
from html import unescape

from portal.domain.answering import Abstained
from portal.domain.conversations import Role
from portal.domain.documents import DocumentSummary
from portal.errors import ChatUnavailable
from portal.services.documents import library
from tests.conftest import Portal
from tests.factories.answers import SaysWhatIsWritten
from tests.integration.answers.chat_pages.conftest import PANE, QUESTION, Chat, text_of


def test_first_question_creates_and_names_a_conversation(chat: Chat) -> None:
    answer = chat.post("/chat", content=QUESTION)
    address, _, anchor = answer.headers["Location"].partition("#")
    question, written = chat.messages(address)
    assert (answer.status_code, anchor) == (303, f"message-{written.id}")
    assert (question.role, question.content) == (Role.USER, QUESTION)
    page = chat.get(address)
    assert QUESTION in text_of(page)
    assert "It closes at six [1] ." in text_of(page)
    assert QUESTION in text_of(chat.get("/chat"))


def test_marker_opens_its_source_beside_the_conversation(chat: Chat) -> None:
    address = chat.begin()
    chat.ask(address)
    citation = chat.messages(address)[1].citations[0]
    page = chat.get(address).get_data(as_text=True)
    (link,) = re.findall(r'class="citation-marker[^"]*"\s+href="([^"]+)"', page)
    assert link == f"{address}?source={citation.id}#marker-{citation.id}"
    with_pane = chat.get(link.partition("#")[0]).get_data(as_text=True)
    pane = chat.get(link.partition("#")[0], **PANE).get_data(as_text=True)
    assert 'id="messages"' in with_pane
    assert 'id="messages"' not in pane
    for shown in (with_pane, pane):
        marked = re.findall(r"<mark[^>]*>([^<]*)</mark>", shown)
        assert unescape("".join(marked)) == citation.excerpt
        assert shown.count('data-testid="citation-panel"') == 1
        assert shown.count('id="quote"') == 1


def test_source_of_another_conversation_is_missing(chat: Chat) -> None:
    address, elsewhere = chat.begin(), chat.begin()
    chat.ask(address)
    citation = chat.messages(address)[1].citations[0]
    for source in (citation.id, "x", ""):
        assert chat.get(f"{elsewhere}?source={source}").status_code == 404
        assert chat.get(f"{elsewhere}?source={source}", **PANE).status_code == 404
    assert chat.get(elsewhere, **PANE).status_code == 404


def test_source_that_was_purged_is_reported_beside_the_conversation(
    chat: Chat, portal: Portal, office: DocumentSummary
) -> None:
    address = chat.begin()
    chat.ask(address)
    citation = chat.messages(address)[1].citations[0]
    library.delete_document(portal.services, portal.admin, office.id)
    library.purge_document(portal.services, portal.admin, office.id)
    pane = chat.get(f"{address}?source={citation.id}").get_data(as_text=True)
    assert "<mark" not in pane
    assert 'data-state="gone"' in pane


def test_source_opens_the_document_at_the_quoted_words(chat: Chat) -> None:
    address = chat.begin()
    chat.ask(address)
    citation = chat.messages(address)[1].citations[0]
    page = chat.get(f"{address}?source={citation.id}").get_data(as_text=True)
    link = unescape(re.search(r'href="(/documents/[^"]*citation=[^"]*#quote)"', page)[1])
    document = chat.get(link.partition("#")[0]).get_data(as_text=True)
    marked = re.findall(r"<mark[^>]*>([^<]*)</mark>", document)
    assert unescape("".join(marked)) == citation.excerpt
    assert document.count('id="quote"') == 1
    assert f'href="{address}#marker-{citation.id}"' in document


def test_each_id_occurs_once_on_a_page(chat: Chat, script: SaysWhatIsWritten) -> None:
    script.scripts = [["It closes at six [1]. Visitors must sign in [1]."]]
    address = chat.begin()
    chat.ask(address)
    chat.ask(address, "Who must sign in?")
    page = chat.get(address).get_data(as_text=True)
    ids = re.findall(r'\sid="([^"]+)"', page)
    assert page.count('data-testid="citation-marker"') == 4
    assert len(ids) == len(set(ids))


def test_refused_question_stays_in_its_field(chat: Chat) -> None:
    address = chat.begin()
    answer = chat.ask(address, "x" * 5000)
    assert answer.status_code == 422
    assert ">" + "x" * 5000 + "</textarea>" in answer.get_data(as_text=True)
    assert 'role="alert"' in answer.get_data(as_text=True)
    assert chat.messages(address) == ()
    answer = chat.post("/chat", content="x" * 5000)
    assert answer.status_code == 422
    assert "x" * 5000 in answer.get_data(as_text=True)
    assert chat.get("/chat").text.count('data-testid="conversation-row"') == 1


def test_unavailable_answer_shows_what_was_found(chat: Chat, script: SaysWhatIsWritten) -> None:
    script.scripts = [[ChatUnavailable(reason="it is asleep")]]
    address = chat.begin()
    chat.ask(address)
    page = chat.get(address)
    assert 'data-status="unavailable"' in page.get_data(as_text=True)
    assert "Answer unavailable." in text_of(page)
    assert "handbook" in text_of(page)
    assert 'data-testid="near-source"' in page.get_data(as_text=True)


def test_abstention_shows_the_nearest_chunks(chat: Chat, script: SaysWhatIsWritten) -> None:
    script.scripts = [[Abstained("Nothing in your documents answers this.")]]
    address = chat.begin()
    chat.ask(address)
    page = chat.get(address)
    assert "Nothing in your documents answers this." in text_of(page)
    assert "Related passages" in text_of(page)
    assert 'data-testid="near-source"' in page.get_data(as_text=True)
    assert "confidence" not in text_of(page).lower(), "they answer nothing"


def test_sentence_not_supported_by_its_source_is_marked(
    chat: Chat, script: SaysWhatIsWritten
) -> None:
    script.scripts = [
        ["The office closes at six [1]. The director earns 9,000 dollars a year [1]."]
    ]
    address = chat.begin()
    chat.ask(address)
    page = chat.get(address)
    wrapped = re.findall(r'<span class="unsupported">([^<]*)</span>', page.get_data(as_text=True))
    assert "director earns" in "".join(wrapped)
    assert "closes at six" not in "".join(wrapped)
    assert "1 sentence is not supported by its sources." in text_of(page)
    assert "not in the source" in text_of(page)


def test_follow_up_shows_its_search_query(chat: Chat) -> None:
    address = chat.begin()
    chat.ask(address)
    chat.ask(address, "And on Sundays?")
    message = chat.messages(address)[-1]
    assert message.replay is not None
    assert message.replay.search_query != "And on Sundays?"
    assert f"Searched for: {message.replay.search_query}" in text_of(chat.get(address))
