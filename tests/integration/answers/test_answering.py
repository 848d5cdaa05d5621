"""What an answer is based on, and how it is stored."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from sqlalchemy import update

from portal.answering.quoting.extractive import ExtractiveChatModel
from portal.domain.answering import (
    Abstained,
    ChatEvent,
    ChatRequest,
    Heartbeat,
    SearchCall,
    TextDelta,
    Truncated,
)
from portal.domain.conversations import (
    AnswerBegun,
    AnswerFinished,
    AnswerPending,
    MessageStatus,
    Role,
    SearchedAgain,
    TextDiscarded,
    TextWritten,
)
from portal.domain.documents import Visibility
from portal.domain.embedding import Vector
from portal.embeddings.layer import EmbedderLayer
from portal.errors import ChatUnavailable, InvalidInput, NotFound
from portal.services.answers import answering, conversations
from portal.services.documents import library, switches
from portal.services.search import dynamic_config
from portal.store.models import UserRow
from tests.conftest import Portal
from tests.factories.answers import answer_of, ask, asked, saying
from tests.factories.cases import for_each
from tests.integration.answers.conftest import LEAVE, QUESTION


def test_answer_is_stored_with_its_question_and_what_it_cites(portal: Portal, talk) -> None:
    services = saying(portal.services, "Fifteen days of annual leave [1]. [9] More 【1】.")
    answer = ask(services, portal.admin, talk, QUESTION)
    assert answer.status is MessageStatus.DONE
    assert answer.content == "Fifteen days of annual leave [1]. More [1]."
    cited = [one for one in answer.citations if one.was_cited]
    assert [(one.marker, one.title) for one in cited] == [(1, "Leave policy")]
    # The excerpt is the sentence that supports the answer, not the whole chunk.
    assert cited[0].excerpt == "Employees may take fifteen days of annual leave."
    question, stored = conversations.messages(portal.services, portal.admin, talk)
    assert (question.role, question.content) == (Role.USER, QUESTION)
    assert stored == answer
    assert conversations.get(portal.services, portal.admin, talk).title == QUESTION


def test_numbers_follow_first_use_and_consulted_come_after(portal: Portal, talk) -> None:
    services = saying(portal.services, "Second [2], then first [1].")
    answer = ask(services, portal.admin, talk, "leave printer")
    sources = asked(services)[0].sources
    assert answer.content == "Second [1], then first [2]."
    assert [one.chunk_id for one in answer.citations] == [sources[1].chunk_id, sources[0].chunk_id]
    one_cited = ask(saying(portal.services, "Only [2]."), portal.admin, talk, "leave printer")
    assert [(one.marker, one.was_cited) for one in one_cited.citations] == [(1, True), (2, False)]


def test_events_begin_with_the_question_and_end_with_the_answer(portal: Portal, talk) -> None:
    services = saying(portal.services, ["Fif", Heartbeat(), "teen [", "1", "]."])
    events = list(answering.ask(services, portal.admin, talk, QUESTION))
    assert isinstance(events[0], AnswerBegun)
    assert events[0].question.content == events[0].search_query == QUESTION
    assert any(isinstance(event, AnswerPending) for event in events)
    pieces = [piece for event in events if isinstance(event, TextWritten) for piece in event.pieces]
    assert "".join(piece.text for piece in pieces) == "Fifteen [1]."
    assert [piece.marker for piece in pieces if piece.marker] == [1]
    assert isinstance(events[-1], AnswerFinished)
    assert events[-1].answer.id == events[0].answer_id


def test_prompt_holds_what_is_on_and_nothing_else(portal: Portal, talk) -> None:
    services = saying(portal.services, "Well.")
    documents = library.list_documents(portal.services, portal.admin).items
    leave = next(one for one in documents if one.title == "Leave policy")
    switches.set_switch(services, portal.admin, talk, leave.id, enabled=False)
    ask(services, portal.admin, talk, QUESTION)
    switches.set_switch(services, portal.admin, talk, leave.id, enabled=True)
    ask(services, portal.admin, talk, QUESTION)
    off, on = asked(services)
    assert "fifteen days" not in off.system
    assert "fifteen days" in on.system
    assert {source.title for source in off.sources} <= {"Printer manual"}


def test_answer_citing_a_disabled_document_is_left_out_of_the_history(portal: Portal, talk) -> None:
    """The earlier answer quotes the document, which would reach the model through the history."""
    services = saying(portal.services, "Fifteen days of annual leave [1].", "Well.")
    first = ask(services, portal.admin, talk, QUESTION)
    (cited,) = (one for one in first.citations if one.was_cited)
    ask(services, portal.admin, talk, "And the paper tray of the printer?")
    assert "Fifteen days" in asked(services)[-1].turns[1].content
    switches.set_switch(services, portal.admin, talk, cited.document_id, enabled=False)
    ask(services, portal.admin, talk, "And the paper tray of the printer?")
    request = asked(services)[-1]
    everything = request.system + "".join(turn.content for turn in request.turns)
    assert "ifteen days" not in everything
    assert [turn.role for turn in request.turns] == ["user", "assistant"] * 2 + ["user"]
    # Answers already shown stay in the conversation.
    assert conversations.messages(services, portal.admin, talk)[1].content == first.content


def test_later_answer_repeating_a_disabled_document_is_left_out_too(portal: Portal, talk) -> None:
    """The model may repeat what it read in the history while citing another document."""
    services = saying(
        portal.services,
        "Fifteen days of annual leave [1].",
        "Fifteen days, and five hundred sheets [1].",
        "On the third floor [1].",
        "Well.",
    )
    dynamic_config.change(portal.services, portal.admin, {"top_n": 1})
    first = ask(services, portal.admin, talk, QUESTION)
    second = ask(services, portal.admin, talk, "How many sheets does the paper tray hold?")
    assert [one.title for one in first.citations] == ["Leave policy"]
    assert [one.title for one in second.citations] == ["Printer manual"]
    leave = first.citations[0].document_id
    switches.set_switch(services, portal.admin, talk, leave, enabled=False)
    ask(services, portal.admin, talk, "On which floor does the printer stand?")
    turns = asked(services)[-1].turns
    assert not any("ifteen days" in turn.content for turn in turns)
    # Answers that do not depend on the document are in the history again.
    ask(services, portal.admin, talk, "Where do people find printer paper?")
    turns = asked(services)[-1].turns
    assert "On the third floor" in turns[-2].content
    assert not any("ifteen days" in turn.content for turn in turns)


def test_switching_off_during_an_answer_applies_to_the_next_one(portal: Portal, talk) -> None:
    def switch_off(request: ChatRequest) -> Iterator[ChatEvent]:
        yield TextDelta("Fifteen ")
        for source in request.sources:
            switches.set_switch(
                portal.services, portal.admin, None, source.document_id, enabled=False
            )
        yield TextDelta("days [1].")

    services = saying(portal.services, switch_off, "Well.")
    answer = ask(services, portal.admin, talk, QUESTION)
    assert answer.content == "Fifteen days [1]."
    assert answer.citations
    after = ask(services, portal.admin, talk, QUESTION)
    assert asked(services)[-1].sources == ()
    assert after.citations == ()


def test_follow_up_is_searched_as_a_standalone_question(portal: Portal, talk) -> None:
    services = saying(
        portal.services, "Fifteen [1].", "How does unused annual leave expire?", "In March [1]."
    )
    ask(services, portal.admin, talk, QUESTION)
    answer = ask(services, portal.admin, talk, "And when does it expire?")
    assert answer.replay
    assert answer.replay.search_query == "How does unused annual leave expire?"
    request = asked(services)[-1]
    assert request.question == answer.replay.search_query
    assert request.turns[-1].content == "And when does it expire?"
    assert request.sources[0].title == "Leave policy"


def test_follow_up_is_rewritten_without_embedding_chunks(portal: Portal, talk) -> None:
    class AnswersQueriesAlone(EmbedderLayer):
        def embed_query(self, text: str) -> Vector:
            return self._embedder.embed_query(text)

        def embed_chunks(self, texts: Sequence[str]) -> Vector:
            raise AssertionError("chunks are retried, for minutes")

    embedder = AnswersQueriesAlone(portal.services.embedder)
    services = replace(portal.services, chat=ExtractiveChatModel(), embedder=embedder)
    before = "How much can I spend on a hotel in London?"
    ask(services, portal.admin, talk, before)
    replay = ask(services, portal.admin, talk, "And for meals?").replay
    assert replay
    assert replay.search_query == f"for meals {before}"


def test_model_may_search_at_most_twice(portal: Portal, talk) -> None:
    call = SearchCall("call-1", "paper tray of the printer")
    services = saying(
        portal.services, [call], [call], [call, "Five hundred [2]."], takes_tools=True
    )
    events = list(answering.ask(services, portal.admin, talk, "annual leave"))
    requests = asked(services)
    assert [request.can_search for request in requests] == [True, True, False]
    assert sum(isinstance(event, SearchedAgain) for event in events) == 2
    assert [len(request.tool_turns) for request in requests] == [0, 2, 4]
    answer = answer_of(events[-1:])
    assert answer.content == "Five hundred [1]."
    assert answer.replay
    assert answer.replay.further_queries == (call.query, call.query)
    numbers = [source.number for source in requests[-1].sources]
    assert len(numbers) == len(set(numbers)) == len({s.chunk_id for s in requests[-1].sources})


def test_further_search_obeys_switches(portal: Portal, talk) -> None:
    documents = library.list_documents(portal.services, portal.admin).items
    printer = next(one for one in documents if one.title == "Printer manual")

    def search(_request: ChatRequest) -> Iterator[ChatEvent]:
        switches.set_switch(portal.services, portal.admin, talk, printer.id, enabled=False)
        yield SearchCall("call-1", "paper tray of the printer")

    services = saying(portal.services, search, "Well [2].", takes_tools=True)
    dynamic_config.change(portal.services, portal.admin, {"top_n": 1})
    answer = ask(services, portal.admin, talk, QUESTION)
    assert all("five hundred" not in request.system for request in asked(services))
    assert answer.content == "Well."


def test_further_search_uses_the_current_rights_of_the_user(portal: Portal) -> None:
    bea, ann = portal.user("bea", is_admin=True), portal.user("ann")
    talk = conversations.create(portal.services, bea).id
    secret = "The beacon of Zanzibar has the code e00531."

    def demote(_request: ChatRequest) -> Iterator[ChatEvent]:
        with portal.services.database.begin() as session:
            session.execute(update(UserRow).filter_by(id=bea.id).values(is_admin=False))
        portal.add(secret, owner=ann, visibility=Visibility.PRIVATE)
        yield SearchCall("call-1", "code of the beacon of Zanzibar")

    services = saying(portal.services, demote, "Well [1].", takes_tools=True)
    answer = ask(services, bea, talk, "What is the code of the beacon?")
    assert all("e00531" not in str(request) for request in asked(services))
    assert answer.citations == ()


@pytest.mark.parametrize("fails", [False, True], ids=["searches", "fails"])
def test_document_withdrawn_while_a_model_writes_is_not_read_again(
    portal: Portal, fails: bool
) -> None:
    ann = portal.user("ann")
    document = portal.add(LEAVE, title="Leave policy")
    talk = conversations.create(portal.services, ann).id

    def withdraw(_request: ChatRequest) -> Iterator[ChatEvent]:
        library.change_document(
            portal.services, portal.admin, document.id, visibility=Visibility.PRIVATE
        )
        if fails:
            raise ChatUnavailable("its endpoint failed")
        yield SearchCall("call-1", "paper tray of the printer")

    services = saying(portal.services, withdraw, "Well.", takes_tools=True)
    answer = ask(services, ann, talk, QUESTION)
    assert "fifteen days" in asked(services)[0].system
    assert all("fifteen days" not in request.system for request in asked(services)[1:])
    assert "fifteen days" not in answer.content


def test_prompt_keeps_to_the_configured_budget(portal: Portal, talk) -> None:
    from portal.text.counting.token_bound import token_bound

    for number in range(8):
        portal.add(f"Annual leave rule {number}. " + "Leave is granted on request. " * 40)
    services = saying(portal.services, "Well.")
    dynamic_config.change(portal.services, portal.admin, {"context_token_budget": 900, "top_n": 8})
    answer = ask(services, portal.admin, talk, QUESTION)
    (request,) = asked(services)
    assert token_bound(request.system) <= 900
    assert 0 < len(request.sources) < 8
    assert len(answer.citations) == len(request.sources)
    assert answer.replay
    assert answer.replay.context_tokens <= 900


def test_smallest_budget_still_holds_the_best_chunk(portal: Portal, talk) -> None:
    portal.add("Glaciers melt at forty degrees. " + "Their ice carries stones. " * 40)
    services = saying(portal.services, "Forty [1].")
    for refused in (100, 300):
        with pytest.raises(InvalidInput, match="context_token_budget"):
            dynamic_config.change(portal.services, portal.admin, {"context_token_budget": refused})
    dynamic_config.change(portal.services, portal.admin, {"context_token_budget": 400})
    answer = ask(services, portal.admin, talk, "At how many degrees do glaciers melt?")
    (request,) = asked(services)
    assert "Glaciers melt at forty degrees." in request.system
    assert len(answer.citations) == 1


@pytest.mark.parametrize("broken_after", [[], ["It is `said", " that five hundred [2] ["]])
def test_failing_endpoint_leaves_the_hits(portal: Portal, talk, broken_after: list) -> None:
    failure = ChatUnavailable(reason="it is down")
    services = saying(portal.services, [*broken_after, failure])
    answer = ask(services, portal.admin, talk, QUESTION)
    assert answer.status is MessageStatus.UNAVAILABLE
    # The documents are quoted instead.
    assert "> Employees may take fifteen days of annual leave. [1]" in answer.content
    assert "five hundred" not in answer.content
    assert [one.title for one in answer.citations if one.was_cited] == ["Leave policy"]
    assert answer.replay
    assert (answer.replay.chat_provider, answer.replay.chat_model) == ("extractive", "extractive")
    assert answer.replay.extra["failed_model"] == "scripted-1"
    assert answer.replay.extra["failure"]["code"] == "chat_unavailable"
    assert services.answer_slots.taken == 0


def test_text_of_a_failed_model_is_kept_where_nothing_can_be_quoted(portal: Portal, talk) -> None:
    services = saying(portal.services, ["Count Zepp", ChatUnavailable(reason="it is down")])
    events = list(answering.ask(services, portal.admin, talk, "Who invented the zeppelin?"))
    answer = answer_of(events)
    assert (answer.status, answer.content) == (MessageStatus.UNAVAILABLE, "Count Zepp")
    assert not any(isinstance(event, TextDiscarded) for event in events)
    assert answer.replay
    assert answer.replay.chat_model == "scripted-1"


def test_answer_cut_off_by_the_limit_of_tokens_says_so(portal: Portal, talk) -> None:
    services = saying(portal.services, ["Fifteen days [1]. Unused [1", Truncated()])
    answer = ask(services, portal.admin, talk, QUESTION)
    assert (answer.status, answer.content.strip()) == (
        MessageStatus.DONE,
        "Fifteen days [1]. Unused",
    )
    assert answer.replay
    assert answer.replay.degraded == ("answer_cut_off",)


@pytest.mark.parametrize("script", [[ValueError("a fault of the provider")], [], "   "])
def test_model_that_breaks_or_says_nothing_is_unavailable(portal: Portal, talk, script) -> None:
    answer = ask(saying(portal.services, script), portal.admin, talk, QUESTION)
    assert answer.status is MessageStatus.UNAVAILABLE
    assert answer.citations


def test_abstaining_shows_the_nearest_chunks(portal: Portal, talk) -> None:
    services = saying(portal.services, [Abstained("Nothing here answers that.")])
    answer = ask(services, portal.admin, talk, "Who invented the zeppelin?")
    assert answer.status is MessageStatus.ABSTAINED
    assert answer.content == "Nothing here answers that."
    assert answer.support == ()
    assert answer.citations
    assert not any(one.was_cited for one in answer.citations)


@for_each("question", ["", "  \n", "\u200b\u200b", "a" * 4097])
def test_invalid_question_is_refused_and_not_stored(portal: Portal, talk, question: str) -> None:
    services = saying(portal.services, "Well.")
    with pytest.raises(InvalidInput):
        answering.ask(services, portal.admin, talk, question)
    assert conversations.messages(services, portal.admin, talk) == ()
    assert services.answer_slots.taken == 0


def test_retry_answers_the_same_question_again(portal: Portal, talk) -> None:
    services = saying(portal.services, "Ten [1].", "Fifteen [1].")
    first = ask(services, portal.admin, talk, QUESTION)
    second = answer_of(answering.retry(services, portal.admin, first.id))
    question, answer = conversations.messages(services, portal.admin, talk)
    assert (question.content, answer.id) == (QUESTION, second.id)
    # The answer being replaced is not part of the new prompt.
    assert [turn.content for turn in asked(services)[-1].turns] == [QUESTION]
    assert conversations.get_message(services, portal.admin, first.id).content == "Ten [1]."
    with pytest.raises(NotFound):
        answering.retry(services, portal.admin, first.id)
    with pytest.raises(NotFound):
        answering.retry(services, portal.admin, question.id)


def test_edited_question_replaces_the_original_and_all_after_it(portal: Portal, talk) -> None:
    services = saying(portal.services, "Well.")
    for number in range(3):
        ask(services, portal.admin, talk, f"annual leave {number}")
    middle = conversations.messages(services, portal.admin, talk)[2]
    ask(services, portal.admin, talk, "the printer", replace_from=middle.id)
    shown = conversations.messages(services, portal.admin, talk)
    assert [m.content for m in shown if m.role is Role.USER] == ["annual leave 0", "the printer"]
    contents = [turn.content for turn in asked(services)[-1].turns]
    assert "annual leave 1" not in contents
    with pytest.raises(NotFound):
        ask(services, portal.admin, talk, "again", replace_from=middle.id)
    with pytest.raises(NotFound):
        ask(services, portal.admin, talk, "again", replace_from=shown[-1].id)


def test_replay_records_what_the_answer_was_made_from(portal: Portal, talk) -> None:
    documents = library.list_documents(portal.services, portal.admin).items
    off = next(one for one in documents if one.title == "Printer manual")
    switches.set_switch(portal.services, portal.admin, talk, off.id, enabled=False)
    answer = ask(saying(portal.services, "Fifteen [1]."), portal.admin, talk, QUESTION)
    on = sorted(str(one.id) for one in documents if one.id != off.id)
    assert answer.replay
    assert answer.replay.selection_hash == hashlib.sha256("\n".join(on).encode()).hexdigest()
    assert (answer.replay.enabled_count, answer.replay.document_count) == (1, 2)
    assert (answer.replay.chat_provider, answer.replay.chat_model) == ("scripted", "scripted-1")
    assert answer.replay.embedding_model == "hashing-384"
    assert answer.replay.search_method == "hybrid"


def test_replay_counts_no_document_that_could_not_be_read(portal: Portal, talk) -> None:
    portal.add(b"%PDF-1.4 damaged", name="damaged.pdf")
    answer = ask(saying(portal.services, "Fifteen [1]."), portal.admin, talk, QUESTION)
    assert answer.replay
    assert (answer.replay.enabled_count, answer.replay.document_count) == (2, 2)


def test_sentences_are_checked_against_what_they_cite(portal: Portal, talk) -> None:
    said = "Employees may take fifteen days of annual leave [1]. They also get a free car [1]."
    answer = ask(saying(portal.services, said), portal.admin, talk, QUESTION)
    supported = {answer.content[s.start : s.end]: s.is_supported for s in answer.support}
    values = list(supported.values())
    assert values[0] is True
    assert values[-1] is False


def test_preferred_domain_of_the_user_comes_first(portal: Portal) -> None:
    from dataclasses import replace

    portal.add("The maple grows in the valley of the north.", title="Plain", domain="people")
    portal.add("The maple grows in the valley of the south.", title="Law", domain="law")
    services = saying(portal.services, "Well.")
    for domain, title in (("law", "Law"), ("people", "Plain")):
        user = replace(portal.admin, preferred_domain=domain)
        conversation = conversations.create(services, user)
        ask(services, user, conversation.id, "Where does the maple grow?")
        assert asked(services)[-1].sources[0].title == title
