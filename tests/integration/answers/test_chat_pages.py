"""Conversation pages and document switches: without JavaScript, as fragments, and streamed."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape
from uuid import UUID, uuid4

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import text
from werkzeug.test import TestResponse

from portal import create_app
from portal.domain.answering import Abstained
from portal.domain.conversations import Message, MessageStatus, Role
from portal.domain.documents import DocumentSummary
from portal.domain.people import User
from portal.errors import ChatUnavailable
from portal.services.answers import conversations
from portal.services.documents import library, selections
from portal.services.documents.ingestion import indexing
from portal.store.documents.ingestion import files, jobs
from portal.web.presenters import percent
from tests.conftest import Portal
from tests.factories.answers import SaysWhatIsWritten
from tests.factories.uploads import upload

OFFICE = "The office closes at six. Visitors must sign in at the front desk."
QUESTION = "When does the office close?"
EVENTS = {"Accept": "text/event-stream", "HX-Request": "true"}
FRAGMENT = {"HX-Request": "true"}
PANE = {**FRAGMENT, "HX-Target": "chat-side"}
EVIL = "<img src=x onerror=alert(1)>\"'><script>alert(2)</script>"


def text_of(answer: TestResponse | str) -> str:
    """Return the visible text in one line."""
    page = answer if isinstance(answer, str) else answer.get_data(as_text=True)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page)).split())


def events_of(answer: TestResponse) -> list[tuple[str, dict[str, str]]]:
    blocks = answer.get_data(as_text=True).split("\n\n")
    found = [re.fullmatch(r"event: (\w+)\ndata: (.*)", block) for block in blocks]
    return [(match[1], json.loads(match[2])) for match in found if match]


class Chat:
    """A user's browser, without JavaScript unless a test says otherwise."""

    def __init__(self, app: Flask, portal: Portal, user: User) -> None:
        self.client: FlaskClient = app.test_client()
        self.portal, self.user = portal, user
        self.headers = portal.headers(user) | {"Accept-Language": "en"}

    def get(self, path: str, **headers: str) -> TestResponse:
        return self.client.get(path, headers=self.headers | headers)

    def post(self, path: str, headers: dict[str, str] | None = None, **form: str) -> TestResponse:
        return self.client.post(path, data=form, headers=self.headers | (headers or {}))

    def begin(self) -> str:
        """Create an empty conversation; return its address."""
        answer = self.post("/chat")
        assert answer.status_code == 303
        return str(answer.headers["Location"])

    def ask(self, address: str, question: str = QUESTION) -> TestResponse:
        return self.post(f"{address}/messages", content=question)

    def messages(self, address: str) -> tuple[Message, ...]:
        conversation_id = UUID(address.rsplit("/", 1)[1])
        return conversations.messages(self.portal.services, self.user, conversation_id)


@pytest.fixture
def script() -> SaysWhatIsWritten:
    return SaysWhatIsWritten([["It closes ", "at six [1]."]])


@pytest.fixture
def app(portal: Portal, script: SaysWhatIsWritten) -> Flask:
    app = create_app(replace(portal.services, chat=script))
    app.config["PROPAGATE_EXCEPTIONS"] = False
    return app


@pytest.fixture
def office(portal: Portal) -> DocumentSummary:
    return portal.add(OFFICE, name="handbook.md")


@pytest.fixture
def chat(app: Flask, portal: Portal, office: DocumentSummary) -> Chat:
    return Chat(app, portal, portal.user("ada"))


# --- asking without scripts -----------------------------------------------------------------------


def test_first_question_begins_a_conversation_that_it_names(chat: Chat) -> None:
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


def test_each_id_stands_once_on_a_page(chat: Chat, script: SaysWhatIsWritten) -> None:
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


def test_answer_unavailable_shows_what_was_found(chat: Chat, script: SaysWhatIsWritten) -> None:
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


def test_sentence_that_its_source_does_not_hold_is_marked(
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


def test_follow_up_says_what_was_searched_for(chat: Chat) -> None:
    address = chat.begin()
    chat.ask(address)
    chat.ask(address, "And on Sundays?")
    message = chat.messages(address)[-1]
    assert message.replay is not None
    assert message.replay.search_query != "And on Sundays?"
    assert f"Searched for: {message.replay.search_query}" in text_of(chat.get(address))


# --- the stream -----------------------------------------------------------------------------------


def test_answer_comes_as_events(chat: Chat) -> None:
    address = chat.begin()
    answer = chat.post(f"{address}/messages", EVENTS, content=QUESTION)
    assert answer.content_type.startswith("text/event-stream")
    assert answer.headers["X-Accel-Buffering"] == "no"
    names, values = zip(*events_of(answer), strict=True)
    assert (names[0], names[-1]) == ("begun", "done")
    assert {"html"} <= set(names[1:-1]) <= {"html", "text"}
    assert QUESTION in values[0]["html"]
    assert 'data-status="done"' in values[-1]["html"]
    assert 'data-testid="citation-marker"' in values[-1]["html"]
    assert "<noscript>" not in values[-1]["html"]
    assert values[-1]["title"] == QUESTION


def test_signs_of_a_table_are_never_shown_while_it_is_written(
    chat: Chat, script: SaysWhatIsWritten
) -> None:
    pieces = ["From ", "the ", "list:\n", "\n", "> | Plan | Price |\n", "> | --- | --- |\n"]
    script.scripts[:] = [[*pieces, "> | Te", "am | 4", "9 |\n", ">\n", "> ", "[1]"]]
    events = events_of(chat.post(f"{chat.begin()}/messages", EVENTS, content=QUESTION))
    assert "<td>49</td>" in events[-1][1]["html"]
    shown = [values.get("text") or text_of(values["html"]) for _, values in events[1:-1]]
    assert "From the list:" in "".join(shown)
    assert not any("|" in words or ">" in words for words in shown)


def test_stream_that_cannot_begin_is_a_fragment(chat: Chat) -> None:
    for address in (f"/chat/{uuid4()}", chat.begin()):
        answer = chat.post(f"{address}/messages", EVENTS, content=" ")
        assert answer.status_code in {404, 422}
        assert 'data-testid="notification"' in answer.get_data(as_text=True)
        assert "<html" not in answer.get_data(as_text=True)


def test_reader_who_leaves_ends_the_answer(chat: Chat, script: SaysWhatIsWritten) -> None:
    script.scripts = [[f"word{number} " for number in range(500)]]
    address = chat.begin()
    path = f"{address}/messages"
    answer = chat.client.post(
        path, data={"content": QUESTION}, headers=chat.headers | EVENTS, buffered=False
    )
    stream = iter(answer.response)
    for _ in range(3):
        next(stream)
    answer.close()
    written = chat.messages(address)[1]
    assert written.status is MessageStatus.STOPPED
    assert written.content.startswith("word0")
    assert "Stopped before finishing." in text_of(chat.get(address))


def test_unread_answer_is_stopped_by_a_button(chat: Chat, script: SaysWhatIsWritten) -> None:
    script.scripts = [[f"word{number} " for number in range(500)]]
    address = chat.begin()
    answer = chat.client.post(
        f"{address}/messages",
        data={"content": QUESTION},
        headers=chat.headers | EVENTS,
        buffered=False,
    )
    message = chat.messages(address)[1]
    assert 'hx-trigger="every 2s"' in chat.get(address).get_data(as_text=True)
    stopped = chat.post(f"{address}/messages/{message.id}/stop", FRAGMENT)
    assert 'data-status="stopped"' in stopped.get_data(as_text=True)
    answer.close()
    assert script.open_streams == 0
    assert chat.messages(address)[1].status is MessageStatus.STOPPED


def test_retry_and_edit_take_the_place_of_what_was_there(
    chat: Chat, script: SaysWhatIsWritten
) -> None:
    address = chat.begin()
    chat.ask(address)
    question, answer = chat.messages(address)
    script.scripts = [["At six o'clock [1]."]]
    chat.post(f"{address}/messages/{answer.id}/retry")
    assert [m.content for m in chat.messages(address)] == [QUESTION, "At six o'clock [1]."]
    form = chat.get(f"{address}/messages/{question.id}/edit")
    assert f'value="{question.id}"' in form.get_data(as_text=True)
    changed = "Who must sign in?"
    chat.post(f"{address}/messages", content=changed, replace_from=str(question.id))
    assert chat.messages(address)[0].content == changed
    assert len(chat.messages(address)) == 2


# --- sources --------------------------------------------------------------------------------------


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


@pytest.mark.parametrize(
    ("purge", "said"),
    [(False, "Document in the trash"), (True, "Document deleted")],
)
def test_old_citation_opens_after_its_document_left(
    chat: Chat, portal: Portal, office: DocumentSummary, purge: bool, said: str
) -> None:
    address = chat.begin()
    chat.ask(address)
    message = chat.messages(address)[1]
    library.delete_document(portal.services, portal.admin, office.id)
    if purge:
        library.purge_document(portal.services, portal.admin, office.id)
    page = chat.get(address)
    assert said in text_of(chat.get(f"{address}?sources={message.id}"))
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
    path = f"/documents/{office.id}?citation={message.citations[0].id}"
    page = chat.get(path).get_data(as_text=True)
    assert re.findall(r'<mark id="quote"[^>]*>([^<]*)', page) == [message.citations[0].excerpt]
    assert "It never closes now." in page
    assert 'data-testid="replaced-notice"' in page
    other = portal.add("Plums.", name="plums.txt")
    elsewhere = chat.get(f"/documents/{other.id}?citation={message.citations[0].id}")
    assert "no longer exists" in text_of(elsewhere)
    assert "closes at six" not in text_of(elsewhere)


# --- switches -------------------------------------------------------------------------------------


def test_switch_on_the_list_of_documents(chat: Chat, office: DocumentSummary) -> None:
    def toggle() -> tuple[str, str]:
        page = chat.get("/documents").get_data(as_text=True)
        state = re.search(r'role="switch"[^>]*aria-checked="(\w+)"[^>]*data-document-id', page)
        assert state
        return state[1], text_of(chat.get("/documents"))

    path = f"/documents/{office.id}/selection"
    assert toggle()[0] == "true"
    assert "On (system default)" in toggle()[1]
    assert chat.post(path, state="off").status_code == 303
    assert toggle()[0] == "false"
    assert "Off (your default)" in toggle()[1]
    fragment = chat.post(path, FRAGMENT, state="inherit").get_data(as_text=True)
    assert fragment.count('data-testid="selection-toggle"') == 1
    assert 'aria-checked="true"' in fragment
    assert chat.post(path, state="perhaps").status_code == 400


def test_switches_of_a_conversation_count_for_its_next_answer(
    chat: Chat, office: DocumentSummary
) -> None:
    address, other = chat.begin(), chat.begin()
    drawer = f"{address}/documents"
    assert "Using 1 of 1 documents" in text_of(chat.get(drawer))
    fragment = chat.post(f"{drawer}/{office.id}", FRAGMENT, state="off").get_data(as_text=True)
    assert "Using 0 of 1 documents" in fragment
    assert "Off in this conversation" in fragment
    chat.ask(address)
    chat.ask(other)
    assert chat.messages(address)[1].citations == ()
    assert chat.messages(other)[1].citations != ()
    assert chat.post(drawer, state="inherit").status_code == 303
    assert "On (system default)" in text_of(chat.get(drawer))
    assert "Using 1 of 1 documents" in text_of(chat.get(address))


def test_drawer_is_searched_by_title(chat: Chat, portal: Portal) -> None:
    portal.add("Plums.", name="plums.txt")
    address = chat.begin()
    listed = {**FRAGMENT, "HX-Target": "selection-list"}
    found = text_of(chat.get(f"{address}/documents?q=plum", **listed))
    assert "plums" in found
    assert "handbook" not in found
    assert "No documents match" in text_of(chat.get(f"{address}/documents?q=zzz", **listed))


def test_all_switches_at_once(chat: Chat, portal: Portal) -> None:
    portal.add("Plums.", name="plums.txt")
    address = chat.begin()
    conversation_id = UUID(address.rsplit("/", 1)[1])
    for state, count in (("off", 0), ("on", 2), ("inherit", 2)):
        answer = chat.post(f"{address}/documents", FRAGMENT, state=state)
        assert f"Using {count} of 2 documents" in text_of(answer)
        counted = selections.count(portal.services, chat.user, conversation_id)
        assert counted == (count, 2)


# --- managing conversations -----------------------------------------------------------------------


def test_conversation_is_found_renamed_exported_and_deleted(chat: Chat) -> None:
    address = chat.begin()
    chat.ask(address)
    assert chat.post(f"{address}/rename", title="Opening hours").status_code == 303
    assert "Opening hours" in text_of(chat.get("/chat?q=opening"))
    assert "No conversations match “zzz”." in text_of(chat.get("/chat?q=zzz"))
    assert chat.post(f"{address}/rename", title=" ").status_code == 422
    export = chat.get(f"{address}/export")
    assert export.mimetype == "text/markdown"
    assert "Opening%20hours.md" in export.headers["Content-Disposition"]
    assert "closes at six" in export.get_data(as_text=True)
    assert chat.post(f"{address}/delete").status_code == 303
    assert chat.get(address).status_code == 404
    assert "Opening hours" not in text_of(chat.get("/chat"))
    assert chat.post(f"{address}/restore").status_code == 303
    assert "closes at six" in chat.get(address).text


def test_pinned_conversations_stand_above_the_others(chat: Chat) -> None:
    first, second = chat.begin(), chat.begin()
    chat.post(f"{first}/rename", title="First")
    chat.post(f"{second}/rename", title="Second")
    assert "Pinned" not in text_of(chat.get("/chat"))
    assert chat.post(f"{first}/pin", next=first).location == first
    listed = text_of(chat.get("/chat"))
    assert listed.index("Pinned") < listed.index("First") < listed.index("Second")
    assert listed.count("First") == 1
    assert "Unpin “First”" in chat.get("/chat").text
    # Searched for, they are found as well.
    assert "First" in text_of(chat.get("/chat?q=first"))
    assert chat.post(f"{first}/pin", off="1").status_code == 303
    assert "Pinned" not in text_of(chat.get("/chat"))


def test_reason_of_bad_feedback_is_one_click(chat: Chat) -> None:
    address = chat.begin()
    chat.ask(address)
    path = f"{address}/messages/{chat.messages(address)[1].id}/feedback"
    assert "feedback-reasons" not in chat.get(address).text
    assert "Outdated" in chat.post(path, FRAGMENT, feedback="not_useful").text
    for reason, kept in (("outdated", "outdated"), ("wrong", "wrong"), ("wrong", None)):
        assert chat.post(path, FRAGMENT, reason=reason).status_code == 200
        message = chat.messages(address)[1]
        assert (message.feedback, message.feedback_reason) == ("not_useful", kept)
    assert chat.post(path, reason="boring").status_code == 400
    chat.post(path, reason="incomplete")
    chat.post(path, feedback="useful")
    assert chat.messages(address)[1].feedback_reason is None


def test_feedback_is_given_and_taken_back(chat: Chat) -> None:
    address = chat.begin()
    chat.ask(address)
    message = chat.messages(address)[1]
    path = f"{address}/messages/{message.id}/feedback"
    assert 'aria-pressed="true"' in chat.post(path, FRAGMENT, feedback="useful").text
    assert chat.messages(address)[1].feedback == "useful"
    assert 'aria-pressed="true"' not in chat.post(path, FRAGMENT, feedback="useful").text
    assert chat.post(path, feedback="splendid").status_code == 400


# --- other users, attacks -------------------------------------------------------------------------


def test_objects_of_other_users_are_not_found(
    chat: Chat, app: Flask, portal: Portal, office: DocumentSummary
) -> None:
    address = chat.begin()
    chat.ask(address)
    question, message = chat.messages(address)
    mine, other = chat.begin(), Chat(app, portal, portal.admin)
    citation = message.citations[0].id
    reads = [address, f"{address}/documents", f"{address}/export", f"{address}/rename"]
    reads += [f"{address}/messages/{message.id}{end}" for end in ("", "/replay")]
    reads += [f"{address}?sources={message.id}", f"{address}?documents=1"]
    reads += [f"{address}/messages/{question.id}/edit"]
    reads += [f"/citations/{citation}", f"/citations/{citation}/card"]
    for path in reads:
        assert other.get(path).status_code == 404, path
    writes = [
        (f"{address}/messages", {"content": QUESTION}),
        (f"{address}/messages/{message.id}/retry", {}),
        (f"{address}/messages/{message.id}/stop", {}),
        (f"{address}/messages/{message.id}/feedback", {"feedback": "useful"}),
        (f"{address}/documents", {"state": "off"}),
        (f"{address}/documents/{office.id}", {"state": "off"}),
        (f"{address}/rename", {"title": "x"}),
        (f"{address}/pin", {}),
        (f"{address}/delete", {}),
        (f"{address}/restore", {}),
    ]
    for path, form in writes:
        assert other.post(path, **form).status_code == 404, path
    # A message is not found under another conversation, even of the same user.
    assert chat.get(f"{mine}?sources={message.id}").status_code == 404
    assert chat.post(f"{mine}/messages/{message.id}/retry").status_code == 404
    assert len(chat.messages(address)) == 2


def test_form_of_another_site_is_refused(chat: Chat, portal: Portal) -> None:
    address = chat.begin()
    chat.client.set_cookie("portal_session", portal.token(chat.user))
    for path in (f"{address}/messages", "/chat", f"{address}/documents"):
        answer = chat.client.post(path, data={"content": QUESTION, "state": "off"})
        assert answer.status_code == 403, path
    assert chat.messages(address) == ()


def test_no_text_becomes_a_tag(
    chat: Chat, portal: Portal, office: DocumentSummary, script: SaysWhatIsWritten
) -> None:
    portal.add(f"{OFFICE} {EVIL}", name="evil.txt", title=f"Evil {EVIL}"[:200])
    script.scripts = [
        [f"{EVIL} six [1]. ![x](http://evil.example/x.png) [y](http://evil.example) [2]"]
    ]
    address = chat.begin()
    streamed = chat.post(f"{address}/messages", EVENTS, content=f"{QUESTION} {EVIL}")
    message = chat.messages(address)[1]
    pages = [values.get("html", "") for _, values in events_of(streamed)]
    replay = f"{address}/messages/{message.id}/replay"
    pages += [chat.get(path).text for path in (address, "/chat", f"{address}/documents", replay)]
    sources = f"{address}?sources={message.id}&at=1"
    pages.append(chat.get(sources, **PANE).get_data(as_text=True))
    for citation in message.citations:
        pages.append(chat.get(f"/citations/{citation.id}/card", **FRAGMENT).text)
        pages.append(chat.get(f"/citations/{citation.id}").text)
    for page in pages:
        assert not re.search(r"<img|<script>|onerror=alert\(1\)>(?!.*&)", page)
        assert not re.search(r"""(href|src|action|hx-\w+)=["']?(https?:)?//""", page)
