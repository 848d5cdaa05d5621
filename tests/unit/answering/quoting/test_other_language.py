"""Answers in another language than the question."""

from __future__ import annotations

from dataclasses import replace

import pytest

from portal.answering.quoting.extractive import ExtractiveChatModel
from portal.answering.quoting.judging.evidence import Evidence
from portal.answering.quoting.judging.relevance import judge
from portal.domain.answering import Abstained, ChatRequest, TextDelta, Turn
from tests.unit.answering.quoting.answers import (
    CATS,
    LEAVE,
    ZH,
    OddsReader,
    Reader,
    ask,
    content_of,
    request,
)
from tests.unit.answering.sources import source


def test_other_language_uses_the_confidence_of_search():
    sure = source(1, ZH.text, confidence=0.8)
    assert isinstance(ask("How many days of annual leave?", [sure])[0], TextDelta)
    unsure = source(1, ZH.text, confidence=0.4)
    assert isinstance(ask("How many days of annual leave?", [unsure])[0], Abstained)


def test_other_language_answers_if_the_language_of_the_question_does_not():
    chat = ExtractiveChatModel(Reader("二十五天"))
    sources = [LEAVE, ZH]
    content, order = content_of(
        list(chat.stream(request("How many days of leave?", sources))), sources
    )
    assert "年假每年为二十五天。" in content
    assert order == (3,)


def test_other_language_is_not_read_if_the_language_of_the_question_answers():
    reader = Reader("leave")
    ask_with = ExtractiveChatModel(reader).stream
    own = request("How many days of annual leave?", [LEAVE])
    list(ask_with(own))
    alone = reader.compared
    list(ask_with(request("How many days of annual leave?", [LEAVE, replace(ZH, language="zh")])))
    assert reader.compared == 2 * alone


class Across:
    """A search of the other language that counts its calls."""

    def __init__(self, *found):
        self.found, self.calls = found, 0

    def __call__(self):
        self.calls += 1
        return self.found


def test_other_language_is_searched_only_if_the_first_does_not_answer():
    across = Across(replace(ZH, number=2, language="zh", confidence=0.9))
    asked = request("How many days of annual leave?", [replace(LEAVE, language="en")])
    content, _ = content_of(
        ExtractiveChatModel().stream(replace(asked, search_across=across)), asked.sources
    )
    assert "25 days" in content
    assert across.calls == 0

    asked = request("How many days of annual leave?", [replace(CATS, language="en", number=1)])
    events = list(ExtractiveChatModel().stream(replace(asked, search_across=across)))
    assert across.calls == 1
    assert [one.quoted.source.chunk_id for one in events if getattr(one, "quoted", None)] == [
        across.found[0].chunk_id
    ]


@pytest.mark.parametrize(("odds", "is_asked"), [(-1.1, True), (9.0, False)])
def test_unsure_answer_gives_way_to_a_likelier_one_in_the_other_language(odds, is_asked):
    own, other = "Leave of 25 days is usual.", "年假每年为二十五天。"
    across = Across(replace(source(2, other), language="zh", confidence=0.9))
    asked = request("How many days of leave?", [replace(source(1, own), language="en")])
    reader = OddsReader({own: odds, other: 6.0})
    content, _ = content_of(
        ExtractiveChatModel(reader).stream(replace(asked, search_across=across)),
        [*asked.sources, *across.found],
    )
    assert across.calls == is_asked
    assert (other in content) is is_asked
    assert own in content.partition(other)[2 * is_asked]


def test_translated_words_count_in_the_other_language():
    english = source(
        1, "Pets are not allowed. The deposit is returned after a month.", title="Lease"
    )
    english = replace(english, language="en")
    pets, deposit = judge("押金什么时候退还？", "zh", [english])[0].candidates
    assert deposit.evidence.met > pets.evidence.met


def test_the_more_words_are_translated_the_likelier_a_statement_answers():
    few, many = (Evidence(0.0, met, met, read=2.0) for met in (0.1, 0.6))
    assert many.log_odds_across(-2.0) > few.log_odds_across(-2.0)


def test_several_parts_search_the_other_language_once():
    across = Across()
    asked = request("Who paints the fence? How long does the oven bake?", [CATS])
    assert len(list(ExtractiveChatModel().stream(replace(asked, search_across=across)))) == 1
    assert across.calls == 1
    # Each part without an answer needs the search; its result is reused.
    found = replace(ZH, number=1, language="zh")
    across = Across(found)
    asked = request("Who paints the fence? How long does the oven bake?", [found])
    list(ExtractiveChatModel().stream(replace(asked, search_across=across)))
    assert across.calls == 1


@pytest.mark.parametrize(
    ("said", "is_answer"),
    [("General manager: Ivo Brandsma", True), ("Duty manager: Ivo Brandsma", False)],
)
def test_office_in_question_must_match_as_a_whole(said, is_answer):
    chat = ExtractiveChatModel(Reader("manager"))
    sources = [source(1, said)]
    _, order = content_of(list(chat.stream(request("总经理是谁？", sources, "zh"))), sources)
    assert bool(order) is is_answer


def test_follow_up_is_asked_alone_if_that_is_likelier():
    card, cars = "A lost card costs 50 yuan.", "Cars park in the basement."
    sources = [source(1, card, language="en"), source(2, cars, language="en")]
    reader = OddsReader({cars: 6.0}, {"门禁卡 哪里可以停车": {card: 2.0}})
    turns = (
        Turn("user", "门禁卡丢了怎么办？"),
        Turn("assistant", card),
        Turn("user", "哪里可以停车？"),
    )
    asked = ChatRequest("", turns, "门禁卡 哪里可以停车？", "zh", sources)
    content, _ = content_of(ExtractiveChatModel(reader).stream(asked), sources)
    assert cars in content
    assert card not in content
