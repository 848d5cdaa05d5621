"""Answers that end before their model does, and answers that run at the same time."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from sqlalchemy import text

from portal.domain.answering import (
    ChatEvent,
    ChatRequest,
    SearchCall,
    TextDelta,
)
from portal.domain.conversations import (
    AnswerBegun,
    Message,
    MessageStatus,
    TextWritten,
)
from portal.errors import DatabaseUnavailable, NotFound, TooManyAnswers
from portal.services.answers import answering, conversations, drafts, streaming
from portal.services.documents import library
from portal.services.people import accounts
from tests.conftest import Portal
from tests.factories.answers import answer_of, ask, asked, saying
from tests.integration.answers.conftest import QUESTION


def test_closing_the_stream_stops_the_answer_and_keeps_its_text(portal: Portal, talk) -> None:
    services = saying(portal.services, ["Fifteen days [1]", " and more."])
    stream = answering.ask(services, portal.admin, talk, QUESTION)
    while not isinstance(next(stream), TextWritten):
        pass
    stream.close()
    stream.close()
    assert services.chat.open_streams == services.answer_slots.taken == 0
    _, answer = conversations.messages(services, portal.admin, talk)
    assert (answer.status, answer.content) == (MessageStatus.STOPPED, "Fifteen days [1]")
    assert answer.citations[0].was_cited


def test_closing_an_unread_stream_stops_the_answer(portal: Portal, talk) -> None:
    services = saying(portal.services, "Never asked for.")
    answering.ask(services, portal.admin, talk, QUESTION).close()
    _, answer = conversations.messages(services, portal.admin, talk)
    assert (answer.status, answer.content) == (MessageStatus.STOPPED, "")
    assert services.answer_slots.taken == 0


@pytest.mark.parametrize("read_count", range(4))
def test_quotations_are_finished_when_their_reader_leaves(
    portal: Portal, talk, read_count: int
) -> None:
    whole = ask(portal.services, portal.admin, talk, QUESTION)
    stream = answering.ask(portal.services, portal.admin, talk, QUESTION)
    for _ in range(read_count):
        next(stream)
    stream.close()
    answer = conversations.messages(portal.services, portal.admin, talk)[-1]
    assert "[1]" in whole.content
    assert (answer.status, answer.content) == (MessageStatus.DONE, whole.content)
    assert portal.services.answer_slots.taken == 0


@pytest.mark.parametrize("read_count", [1, 2])
def test_stopped_quotations_are_not_finished(portal: Portal, talk, read_count: int) -> None:
    stream = answering.ask(portal.services, portal.admin, talk, QUESTION)
    began, *_ = (next(stream) for _ in range(read_count))
    assert isinstance(began, AnswerBegun)
    answering.stop(portal.services, portal.admin, began.answer_id)
    stream.close()
    _, answer = conversations.messages(portal.services, portal.admin, talk)
    assert answer.status is MessageStatus.STOPPED
    assert "[1]" not in answer.content


@pytest.mark.parametrize("is_left", [False, True])
def test_answer_that_cannot_be_finished_ends_at_once(
    portal: Portal, talk, monkeypatch: pytest.MonkeyPatch, is_left: bool
) -> None:
    monkeypatch.setattr(streaming, "SAVE_EVERY_S", 0.0)

    def fail(*_arguments: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(drafts.support, "check", fail)
    services = saying(portal.services, ["Fifteen days [1]. ", "More."])
    stream = answering.ask(services, portal.admin, talk, QUESTION)
    if is_left:
        assert [type(next(stream)) for _ in range(3)] == [AnswerBegun, TextWritten, TextWritten]
        stream.close()
    else:
        with pytest.raises(ZeroDivisionError):
            list(stream)
    _, answer = conversations.messages(portal.services, portal.admin, talk)
    assert answer.status is MessageStatus.STOPPED
    assert answer.content.startswith("Fifteen days [1].")
    assert [one.was_cited for one in answer.citations][:1] == [True]
    assert services.answer_slots.taken == services.chat.open_streams == 0


@pytest.mark.parametrize(("failures", "is_stored"), [(2, True), (3, False)])
def test_answer_survives_a_database_that_is_busy_for_a_moment(
    portal: Portal, talk, monkeypatch: pytest.MonkeyPatch, failures: int, is_stored: bool
) -> None:
    monkeypatch.setattr(streaming, "SAVE_EVERY_S", 0.0)
    monkeypatch.setattr(streaming, "_RETRY_PAUSES_S", (0.0, 0.0))
    finish, left = drafts.AnswerDraft.finish, iter(range(failures))

    def busy(*_arguments: object) -> bool:
        raise DatabaseUnavailable

    def busy_at_first(draft: drafts.AnswerDraft, status: MessageStatus) -> Message:
        return busy() if next(left, None) is not None else finish(draft, status)

    monkeypatch.setattr(drafts.AnswerDraft, "save_progress", busy)
    monkeypatch.setattr(drafts.AnswerDraft, "finish", busy_at_first)
    services = saying(portal.services, ["Fifteen days [1]. ", "More."])
    stream = answering.ask(services, portal.admin, talk, QUESTION)
    if is_stored:
        assert answer_of(stream).content == "Fifteen days [1]. More."
    else:
        with pytest.raises(DatabaseUnavailable):
            list(stream)
    assert services.answer_slots.taken == services.chat.open_streams == 0


def test_busy_database_at_a_further_search_does_not_end_the_answer(
    portal: Portal, talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    _be_busy_once(monkeypatch, "save_progress")
    call = SearchCall("1", "printer")
    services = saying(portal.services, ["Let me look. ", call], "Leave [1].", takes_tools=True)
    answer = answer_of(answering.ask(services, portal.admin, talk, QUESTION))
    assert (answer.status, answer.content) == (MessageStatus.DONE, "Let me look. Leave [1].")


def test_busy_database_loses_nothing_when_the_reader_leaves(
    portal: Portal, talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "_RETRY_PAUSES_S", (0.0, 0.0))
    services = saying(portal.services, ["Fifteen days [1]", " and more."])
    _be_busy_once(monkeypatch, "finish")
    stream = answering.ask(services, portal.admin, talk, QUESTION)
    while not isinstance(next(stream), TextWritten):
        pass
    stream.close()
    answer = conversations.messages(portal.services, portal.admin, talk)[-1]
    assert (answer.status, answer.content) == (MessageStatus.STOPPED, "Fifteen days [1]")


def test_busy_database_does_not_cut_quotations_when_the_reader_leaves(
    portal: Portal, talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    _be_busy_once(monkeypatch, "save_progress")
    stream = answering.ask(portal.services, portal.admin, talk, QUESTION)
    next(stream)
    stream.close()
    answer = conversations.messages(portal.services, portal.admin, talk)[-1]
    assert answer.status is MessageStatus.DONE
    assert "[1]" in answer.content


def _be_busy_once(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Make the first call of this method of drafts fail as if the database were busy."""
    method, left = getattr(drafts.AnswerDraft, name), iter(range(1))

    def busy_at_first(draft: drafts.AnswerDraft, *arguments: object) -> object:
        if next(left, None) is not None:
            raise DatabaseUnavailable
        return method(draft, *arguments)

    monkeypatch.setattr(drafts.AnswerDraft, name, busy_at_first)


def test_stop_takes_effect_in_another_process(
    portal: Portal, talk, make_services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "SAVE_EVERY_S", 0.0)
    services, other = saying(portal.services, ["One ", "two ", "three"]), make_services()
    stream = answering.ask(services, portal.admin, talk, QUESTION)
    began = next(stream)
    assert isinstance(began, AnswerBegun)
    assert isinstance(next(stream), TextWritten)
    stopped = answering.stop(other, portal.admin, began.answer_id)
    assert stopped.status is MessageStatus.STOPPED
    answer = answer_of(stream)
    assert answer.status is MessageStatus.STOPPED
    assert answer.content.strip() == "One"
    assert services.chat.open_streams == 0


def test_partial_answer_survives_its_process(
    portal: Portal, talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "SAVE_EVERY_S", 0.0)
    services = saying(portal.services, ["Second [2] ", "first [1] ", "more"])
    stream = answering.ask(services, portal.admin, talk, "leave printer")
    for _ in range(4):
        next(stream)
    _, answer = conversations.messages(portal.services, portal.admin, talk)
    assert answer.status is MessageStatus.STREAMING
    assert answer.content.startswith("Second [1]")
    second = asked(services)[0].sources[1]
    assert answer.citations[0].chunk_id == second.chunk_id
    with portal.services.database.begin() as session:
        session.execute(text("UPDATE messages SET updated_at = now() - interval '1 hour'"))
    _, answer = conversations.messages(portal.services, portal.admin, talk)
    assert answer.status is MessageStatus.STOPPED
    stream.close()


def test_no_transaction_is_open_while_the_model_writes(portal: Portal, talk) -> None:
    held: list[int] = []

    def look(_request: ChatRequest) -> Iterator[ChatEvent]:
        held.append(portal.services.database.engine.pool.checkedout())
        yield TextDelta("Fifteen [1].")
        held.append(portal.services.database.engine.pool.checkedout())

    ask(saying(portal.services, look), portal.admin, talk, QUESTION)
    assert held == [0, 0]


def test_deleting_the_conversation_ends_its_answer(
    portal: Portal, talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "SAVE_EVERY_S", 0.0)
    services = saying(portal.services, ["One ", "two"])
    stream = answering.ask(services, portal.admin, talk, QUESTION)
    next(stream)
    conversations.delete(portal.services, portal.admin, talk)
    with pytest.raises(NotFound):
        list(stream)
    assert services.answer_slots.taken == services.chat.open_streams == 0


def test_purge_during_an_answer_leaves_no_quotation(portal: Portal, talk) -> None:
    def purge(request: ChatRequest) -> Iterator[ChatEvent]:
        yield TextDelta("Well ")
        for source in request.sources:
            library.purge_document(portal.services, portal.admin, source.document_id)
        yield TextDelta("[1].")

    answer = ask(saying(portal.services, purge), portal.admin, talk, QUESTION)
    assert answer.content == "Well [1]."
    assert {(one.state.value, one.excerpt) for one in answer.citations} == {("gone", "")}
    with portal.services.database.begin() as session:
        assert set(session.scalars(text("SELECT quote FROM citations"))) == {""}


def test_text_purged_during_an_answer_does_not_come_back(
    portal: Portal, talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "SAVE_EVERY_S", 0.0)
    stored: list[str] = []

    def purge(request: ChatRequest) -> Iterator[ChatEvent]:
        yield TextDelta("Employees may take fifteen days of annual leave [1]. ")
        for source in request.sources:
            library.purge_document(portal.services, portal.admin, source.document_id)
        yield TextDelta("So ")
        yield TextDelta("it is.")
        stored.append(conversations.messages(portal.services, portal.admin, talk)[-1].content)

    answer = ask(saying(portal.services, purge), portal.admin, talk, QUESTION)
    assert "So" in stored[0]
    assert all("fifteen days" not in content for content in (*stored, answer.content))


def test_answer_ends_when_its_user_is_disabled(
    portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "SAVE_EVERY_S", 0.0)
    ann = portal.user("ann")
    talk = conversations.create(portal.services, ann).id

    def disable(_request: ChatRequest) -> Iterator[ChatEvent]:
        yield TextDelta("Well, ")
        accounts.set_disabled(portal.services, portal.admin, ann.id, disabled=True)
        yield TextDelta("fifteen ")
        yield TextDelta("days.")

    answer = ask(saying(portal.services, disable), ann, talk, QUESTION)
    assert answer.status is MessageStatus.STOPPED
    assert "days" not in answer.content


def test_concurrent_answers_are_limited(portal: Portal, talk, make_services) -> None:
    limited = saying(make_services(chat={"concurrent_answers": 1}), "Well.")
    stream = answering.ask(limited, portal.admin, talk, QUESTION)
    with pytest.raises(TooManyAnswers):
        answering.ask(limited, portal.admin, talk, QUESTION)
    assert len(conversations.messages(limited, portal.admin, talk)) == 2
    list(stream)
    assert ask(limited, portal.admin, talk, QUESTION).content == "Well."
    forgotten = answering.ask(limited, portal.admin, talk, QUESTION)
    del forgotten
    assert limited.answer_slots.taken == 0


def test_next_question_stops_the_answer_in_progress(
    portal: Portal, talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "SAVE_EVERY_S", 0.0)
    services = saying(portal.services, ["One ", "two ", "three"], "Well.")
    stream = answering.ask(services, portal.admin, talk, QUESTION)
    next(stream)
    ask(services, portal.admin, talk, "And the printer?")
    assert answer_of(stream).status is MessageStatus.STOPPED
    statuses = [m.status.value for m in conversations.messages(services, portal.admin, talk)]
    assert statuses == ["done", "stopped", "done", "done"]


def test_answers_in_many_conversations_do_not_mix(portal: Portal, talk) -> None:
    """Concurrent answers each have their own citation register."""
    talks = [conversations.create(portal.services, portal.admin).id for _ in range(4)]
    services = saying(portal.services, "Fifteen [1].")
    answers: dict[object, object] = {}

    def run(conversation_id: object) -> None:
        answers[conversation_id] = ask(services, portal.admin, conversation_id, QUESTION)

    threads = [threading.Thread(target=run, args=(one,)) for one in talks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for conversation_id in talks:
        _, answer = conversations.messages(services, portal.admin, conversation_id)
        assert answer == answers[conversation_id]
        assert answer.citations[0].title == "Leave policy"
