"""Citations of documents that were replaced, deleted, purged or unshared."""

from __future__ import annotations

import hashlib
import re
import threading
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from flask.testing import FlaskClient
from sqlalchemy import text

from portal.domain.conversations import Citation, Message, SourceState
from portal.domain.documents import Visibility
from portal.errors import NotFound
from portal.services.answers import citing, conversations
from portal.services.answers.quoted_ranges import quoted_range
from portal.services.documents import library
from portal.services.documents.erasing import ERASED, without_quotations
from portal.services.documents.ingestion import indexing
from portal.store.answers import citations
from portal.store.documents.ingestion import files, jobs
from tests.conftest import Portal
from tests.factories.answers import ask, parts_of, saying
from tests.factories.blocking import wait_until_blocked
from tests.factories.uploads import upload

LEAVE = "Employees may take fifteen days of annual leave. Unused leave expires in March."
SENTENCE = "Employees may take fifteen days of annual leave."
QUESTION = "How many days of annual leave may employees take?"


def cite(portal: Portal, said: str = f"{SENTENCE} [1]", user: Any = None) -> Message:
    """Ask the question in a new conversation and return the answer."""
    user = user or portal.admin
    talk = conversations.create(portal.services, user)
    return ask(saying(portal.services, said), user, talk.id, QUESTION)


def again(portal: Portal, answer: Message, user: Any = None) -> Citation:
    """Load the answer again and return its first citation."""
    stored = conversations.get_message(portal.services, user or portal.admin, answer.id)
    return stored.citations[0]


def replace_text(portal: Portal, document_id: UUID, content: str) -> None:
    """Upload a new version of the document and index it."""
    with portal.services.database.begin() as session:
        file_id = files.add_file(session, upload(content))
        job_id = jobs.add_job(session, document_id=document_id, file_id=file_id)
    indexing.index_document(portal.services, job_id)


def test_quote_stands_where_it_says_and_is_verified(portal: Portal) -> None:
    document = portal.add(LEAVE)
    citation = cite(portal).citations[0]
    _, body = library.read_text(portal.services, portal.admin, document.id)
    assert body[citation.char_start : citation.char_end] == citation.excerpt == SENTENCE
    assert citation.quote_sha256 == hashlib.sha256(SENTENCE.encode()).hexdigest()
    found = citing.verify(portal.services, portal.admin, citation.id)
    assert (found.stands, found.found_sha256) == (True, citation.quote_sha256)
    assert (citation.state, citation.can_open) == (SourceState.CURRENT, True)


def test_text_that_was_tampered_with_is_noticed(client: FlaskClient, portal: Portal) -> None:
    portal.add(LEAVE)
    citation = cite(portal).citations[0]
    with portal.services.database.begin() as session:
        session.execute(
            text("UPDATE document_revisions SET text = replace(text, 'fifteen', 'fifty--')")
        )
    path = f"/api/citations/{citation.id}/verify"
    body = client.get(path, headers=portal.headers()).json
    assert body["stands"] is False
    assert body["found_sha256"] != body["quote_sha256"] == citation.quote_sha256


def test_replaced_document_still_shows_what_was_cited(portal: Portal) -> None:
    document = portal.add(LEAVE)
    answer = cite(portal)
    replace_text(portal, document.id, "Employees may take twenty days.")
    citation = again(portal, answer)
    assert (citation.state, citation.can_open) == (SourceState.REPLACED, True)
    assert citation.excerpt == SENTENCE
    assert citing.verify(portal.services, portal.admin, citation.id).stands is True
    around = citing.quoted_text(portal.services, portal.admin, citation.id)
    assert parts_of(around) == ("", SENTENCE, " Unused leave expires in March.")
    assert around.starts_text
    assert around.ends_text
    _, now = library.read_text(portal.services, portal.admin, document.id)
    assert "fifteen" not in now


def test_rereading_the_same_text_keeps_the_citation_current(portal: Portal) -> None:
    document = portal.add(LEAVE)
    answer = cite(portal)
    replace_text(portal, document.id, LEAVE)
    assert again(portal, answer).state is SourceState.CURRENT


def test_trashed_document_still_shows_what_was_cited(portal: Portal) -> None:
    document, ada = portal.add(LEAVE), portal.user("ada")
    answer = cite(portal, user=ada)
    library.delete_document(portal.services, portal.admin, document.id)
    citation = again(portal, answer, ada)
    assert (citation.state, citation.can_open) == (SourceState.TRASHED, False)
    assert citation.excerpt == SENTENCE
    # Only those who may restore the document see the rest of it.
    assert parts_of(citing.quoted_text(portal.services, ada, citation.id)) == ("", SENTENCE, "")
    library.restore_document(portal.services, portal.admin, document.id)
    assert again(portal, answer, ada).state is SourceState.CURRENT


def test_purge_keeps_the_citation_without_its_words(client: FlaskClient, portal: Portal) -> None:
    document = portal.add(LEAVE, title="Leave policy")
    said = f"> {SENTENCE} [1]\n\nIn short: half a month [1]."
    answer = cite(portal, said)
    library.purge_document(portal.services, portal.admin, document.id)
    citation = again(portal, answer)
    assert (citation.state, citation.can_open) == (SourceState.GONE, False)
    assert (citation.title, citation.excerpt) == ("Leave policy", "")
    assert citation.quote_sha256 == hashlib.sha256(SENTENCE.encode()).hexdigest()
    assert citation.gone_at
    assert citation.gone_at >= citation.cited_at
    assert citing.verify(portal.services, portal.admin, citation.id).stands is None
    with pytest.raises(NotFound):
        citing.quoted_text(portal.services, portal.admin, citation.id)
    stored = conversations.get_message(portal.services, portal.admin, answer.id)
    assert stored.content == f"> {ERASED} [1]\n\nIn short: half a month [1]."
    for sentence in stored.support:
        assert 0 <= sentence.start <= sentence.end <= len(stored.content)
    body = client.get(f"/api/messages/{answer.id}", headers=portal.headers()).json
    assert body["citations"][0]["url"] is None
    assert words_left(portal) == []


def test_purge_finds_quotations_made_without_a_model(portal: Portal) -> None:
    """Quotations change numbers in brackets and shorten long texts."""
    long = "The annual leave of employees is fifteen days, " + "as agreed with the council, " * 30
    document = portal.add(f"{long}so it is [3].\n\nNothing else [4] is said of fifteen days.")
    talk = conversations.create(portal.services, portal.admin)
    for question in (QUESTION, "What else is said of fifteen days?"):
        assert "fifteen days" in ask(portal.services, portal.admin, talk.id, question).content
    library.purge_document(portal.services, portal.admin, document.id)
    for answer in conversations.messages(portal.services, portal.admin, talk.id)[1::2]:
        assert ERASED in answer.content
        assert "fifteen days" not in answer.content


def test_purge_while_an_answer_is_stored_waits_and_erases_it(
    portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = portal.add(LEAVE)
    store, purges = citations.replace_citations, []

    def purge() -> None:
        library.purge_document(portal.services, portal.admin, document.id)

    def store_meanwhile(*arguments: Any) -> None:
        calls.append(1)
        if len(calls) == 2:  # The first call stores the sources, the second the answer.
            purges.append(threading.Thread(target=purge))
            purges[0].start()
            wait_until_blocked(portal.services)
        store(*arguments)

    calls: list[int] = []
    monkeypatch.setattr(citations, "replace_citations", store_meanwhile)
    answer = cite(portal)
    purges[0].join(30)
    assert answer.content == f"{SENTENCE} [1]"
    stored = conversations.get_message(portal.services, portal.admin, answer.id)
    assert stored.content == f"{ERASED} [1]"
    assert words_left(portal) == []


@pytest.mark.parametrize("act", ["asked again", "deleted"])
def test_messages_are_locked_in_the_same_order_as_by_a_purge(portal: Portal, act: str) -> None:
    """In any other order the two could deadlock."""
    portal.add(LEAVE)
    services = saying(portal.services, f"{SENTENCE} [1]")
    ids: list[UUID] = []
    while not ids or min(ids) == ids[0]:  # The first message must not have the lowest id by chance.
        talk = conversations.create(portal.services, portal.admin).id
        for _ in range(2):
            ask(services, portal.admin, talk, QUESTION)
        ids = [one.id for one in conversations.messages(portal.services, portal.admin, talk)]

    def change() -> None:
        if act == "deleted":
            conversations.delete(services, portal.admin, talk)
            conversations.erase_old(services, now=datetime.now(UTC) + timedelta(hours=2))
        else:
            ask(services, portal.admin, talk, QUESTION, replace_from=ids[0])

    changing = threading.Thread(target=change)
    with portal.services.database.begin() as session:
        session.execute(text("SELECT FROM messages WHERE id = :id FOR UPDATE"), {"id": min(ids)})
        changing.start()
        wait_until_blocked(portal.services)
        with portal.services.database.begin() as other:
            free = text("SELECT id FROM messages WHERE id = ANY(:ids) FOR UPDATE SKIP LOCKED")
            assert set(other.scalars(free, {"ids": ids})) == set(ids) - {min(ids)}
    changing.join(30)
    assert not changing.is_alive()


def words_left(portal: Portal) -> list[str]:
    """Return the tables that contain a word of the document."""
    with portal.services.database.begin() as session:
        tables = session.scalars(
            text(
                "SELECT quote_ident(relname) FROM pg_class WHERE relkind IN ('r', 'p')"
                " AND relnamespace = 'public'::regnamespace"
            )
        ).all()
        return [
            table
            for table in tables
            if session.scalar(
                text(f"SELECT EXISTS (SELECT FROM {table} t WHERE t::text ILIKE '%fifteen days%')")
            )
        ]


def test_citation_outlives_even_the_row_of_its_document(portal: Portal) -> None:
    portal.add(LEAVE)
    answer = cite(portal)
    with portal.services.database.begin() as session:
        session.execute(text("DELETE FROM documents"))
    citation = again(portal, answer)
    assert (citation.state, citation.document_id, citation.excerpt) == (SourceState.GONE, None, "")


def test_document_made_private_disappears_for_others(portal: Portal) -> None:
    document, ada = portal.add(LEAVE), portal.user("ada")
    answer = cite(portal, user=ada)
    mine = cite(portal)
    library.change_document(
        portal.services, portal.admin, document.id, visibility=Visibility.PRIVATE
    )
    citation = again(portal, answer, ada)
    assert (citation.state, citation.excerpt, citation.document_id) == (SourceState.GONE, "", None)
    assert citation.heading is citation.chunk_id is citation.revision_id is None
    # Neither its existence nor the time when it was hidden may be visible.
    assert citation.gone_at is None
    assert citing.verify(portal.services, ada, citation.id).stands is None
    with pytest.raises(NotFound):
        citing.quoted_text(portal.services, ada, citation.id)
    assert again(portal, mine).excerpt == SENTENCE
    library.change_document(
        portal.services, portal.admin, document.id, visibility=Visibility.SHARED
    )
    assert again(portal, answer, ada).excerpt == SENTENCE


def test_private_trash_is_gone_for_other_users(portal: Portal) -> None:
    document, ada = portal.add(LEAVE), portal.user("ada")
    answer = cite(portal, user=ada)
    library.change_document(
        portal.services, portal.admin, document.id, visibility=Visibility.PRIVATE
    )
    library.delete_document(portal.services, portal.admin, document.id)
    assert again(portal, answer, ada).state is SourceState.GONE


def test_citation_keeps_its_id_from_the_first_word_on(portal: Portal) -> None:
    portal.add(LEAVE)
    first = cite(portal, f"{SENTENCE} [1]")
    assert again(portal, first).id == first.citations[0].id
    assert citing.get_citation(portal.services, portal.admin, first.citations[0].id).marker == 1


def test_quote_around_marks_the_words_in_a_long_text(portal: Portal) -> None:
    filler = " ".join(f"Filler sentence number {n} about nothing." for n in range(200))
    portal.add(f"{filler} {SENTENCE} {filler}")
    citation = cite(portal).citations[0]
    assert citation.excerpt == SENTENCE
    around = citing.quoted_text(portal.services, portal.admin, citation.id, around=100)
    before, quote, after = parts_of(around)
    assert (len(before), quote, len(after)) == (100, SENTENCE, 100)
    assert not around.starts_text
    assert not around.ends_text


@pytest.mark.parametrize(
    ("content", "quoted"),
    [
        ("One is red. [1]", "One is red."),
        ("One is red. Two is blue. [1]", "One is red. Two is blue."),
        ("Two is blue [2]. Three is green [1].", "Three is green."),
        ("Something else entirely [1].", "One is red. Two is blue. Three is green."),
        ("No marker at all.", "One is red. Two is blue. Three is green."),
        ("`[1]` One is red.", "One is red. Two is blue. Three is green."),
        ("[1]", "One is red. Two is blue. Three is green."),
        ("", "One is red. Two is blue. Three is green."),
    ],
)
def test_quotation_is_what_supports_the_sentences(content: str, quoted: str) -> None:
    chunk = "One is red. Two is blue. Three is green."
    start, end = quoted_range(chunk, content, 1)
    assert chunk[start:end] == quoted


@pytest.mark.parametrize(
    ("content", "left"),
    [
        ("> 员工享有十五天年假。 [1]", f"> {ERASED} [1]"),
        ("「员工享有十五天年假。」[1] 好的。", f"「{ERASED}」[1] 好的。"),
        (r"> 结余\*不\*结转\!。 [1]", f"> {ERASED} [1]"),
        ("员工享有十五天年假 [1]。", f"{ERASED} [1]。"),
        ("员工享有 [1] 十五天年假。", ERASED),
        ("> … 未用的在三月失效 … [1]", f"> … {ERASED} … [1]"),
        ("> 见注(3)所述。 [1]", f"> {ERASED} [1]"),
        ("大约半个月的年假 [1]。", "大约半个月的年假 [1]。"),
        ("好的。", "好的。"),
    ],
)
def test_only_the_documents_own_sentences_are_erased(content: str, left: str) -> None:
    chunk = "员工享有十五天年假。好的。结余*不*结转!。未用的在三月失效。见注[3]所述。"
    assert without_quotations(content, (), [chunk])[0] == left


@pytest.mark.parametrize("padding", ["*", " ", "_"])
def test_padded_text_is_searched_for_erased_words_in_linear_time(padding: str) -> None:
    """Quadratic time would be too slow: answers are searched each second while they are written."""
    content = f"| a{padding * 100_000}|"
    assert without_quotations(content, (), ["other words"])[0] == content


TABLE_BELOW_LONG_TEXT = (
    "# Handbook\n\n"
    + "\n\n".join(f"Paragraph {n} about nothing in particular." for n in range(80))
    + "\n\n## Leave\n\n| Kind | Days |\n|---|---|\n"
    + "\n".join(f"| {'Bereavement' if n == 60 else f'Kind {n}'} | {n} |" for n in range(120))
)


def test_cited_text_is_laid_out_like_the_document(client: FlaskClient, portal: Portal) -> None:
    portal.add(TABLE_BELOW_LONG_TEXT, name="handbook.md")
    question = "How many days of bereavement leave are there?"
    talk = conversations.create(portal.services, portal.admin)
    said = saying(portal.services, "Bereavement | 60 [1]")
    answer = ask(said, portal.admin, talk.id, question)
    page = client.get(f"/citations/{answer.citations[0].id}", headers=portal.headers()).text
    shown = page[page.index('data-testid="quoted-text"') :]
    assert '<mark id="quote" class="quote">Bereavement</mark></td>' in shown
    assert '<th scope="col">Kind</th>' in shown  # The header is further up in the document.
    assert " | " not in shown
    # No row is cut where the text around the quotation begins and ends.
    rows = re.findall(r"<tr><td[^>]*>(.*?)</td><td[^>]*>(.*?)</td></tr>", shown)
    assert len(rows) > 20
    assert shown.count("<tr><td") == len(rows)
    for kind, days in rows:
        assert "mark" in kind or kind == f"Kind {days}"
