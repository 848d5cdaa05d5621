"""Quotations as answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from portal.answering import PROVIDERS, create_chat_model
from portal.answering.quoting.choosing import Quotation
from portal.answering.quoting.extractive import ExtractiveChatModel, _Quoter
from portal.answering.quoting.judging.relevance import judge
from portal.answering.quoting.statements import Statement, statements
from portal.domain.answering import Abstained, ChatModel, ChatRequest, Outcome, Turn
from portal.settings import ChatSettings
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


def test_best_sentence_is_quoted_with_its_marker():
    sources = [CATS, LEAVE]
    content, order = content_of(ask("How many days of annual leave?", sources), sources)
    assert content.startswith("Quoted from your documents")
    assert "> Employees get 25 days of annual leave. [1]" in content
    assert order == (1,)
    assert "Cats" not in content


def test_chinese_question_is_answered_in_chinese_in_its_own_script():
    content, order = content_of(ask("年假有几天？", [ZH], "zh"), [ZH])
    assert content.startswith("以下是文档中的原文摘录")
    assert "年假每年为二十五天。 [1]" in content
    assert order == (3,)
    traditional, _ = content_of(ask("年假有幾天？", [ZH], "zh"), [ZH])
    assert traditional.startswith("以下是文檔中的原文摘錄")


@pytest.mark.parametrize(
    ("question", "language"), [("Who won the cup final in 1966?", "en"), ("谁是市长？", "zh")]
)
def test_it_abstains_when_nothing_is_confident(question, language):
    low = [source(1, LEAVE.text, confidence=0.05), CATS]
    events = ask(question, low, language)
    assert len(events) == 1
    assert isinstance(events[0], Abstained)
    assert events[0].text


def test_it_abstains_without_sources():
    assert isinstance(ask("Why?", [])[0], Abstained)
    assert isinstance(ask("为什么？", [], "zh")[0], Abstained)


def test_two_chunks_that_both_answer_are_both_quoted():
    sources = [
        LEAVE,
        source(2, "Annual leave: 25 days for all employees, 30 days of leave from 2026 on."),
    ]
    _, order = content_of(ask("How many days of annual leave do employees get?", sources), sources)
    assert set(order) == {1, 2}


def test_sentence_in_two_chunks_is_quoted_once():
    said = "Employees get 25 days of annual leave."
    sources = [source(1, f"The handbook is for everybody. {said}"), source(2, f"{said} Ask first.")]
    content, order = content_of(ask("How many days of annual leave?", sources), sources)
    assert content.count(said) == 1
    assert len(order) == 1


def test_short_chinese_word_counts_as_its_longer_form():
    fees = source(1, "物业服务费每平方米每月 2.8 元。逾期缴纳的，物业公司可以费时催收。")
    (found,) = judge("物业费多少钱？", "zh", [fees])
    assert [one.evidence.own > 0 for one in found.candidates] == [True, False]


def test_statement_about_saturday_is_about_the_weekend():
    hours = source(1, "Call us from Monday to Friday. On Saturday we answer until one.")
    (found,) = judge("Is the line open at weekends?", "en", [hours])
    assert [one.evidence.own > 0 for one in found.candidates] == [False, True]


def test_longer_quotation_leaves_out_text_already_quoted():
    one = source(1, "You have 27 days of leave. Unused days lapse in March.")
    first, second = statements(one)
    quoter = _Quoter([one])
    (before,) = quoter.quote([Quotation(one, (first,))])
    (left,) = quoter.quote([Quotation(one, (first, second))])
    assert "27 days" in before.text
    assert (left.quoted.start, left.quoted.end) == (second.start, second.end)


def test_same_words_below_other_headings_are_both_quoted():
    sources = [
        source(number, f"{heading}\n\nYou get five days of leave.", heading=heading)
        for number, heading in enumerate(("Wedding", "Moving house"), 1)
    ]
    quotations = [
        Quotation(one, (Statement(one.text.index("You"), len(one.text)),), title=one.heading)
        for one in sources
    ]
    quoter = _Quoter(sources)
    assert len(list(quoter.quote(quotations))) == len(quotations)
    assert list(quoter.quote(quotations)) == []


def test_separate_statements_are_cited_separately():
    text = (
        "Annual leave is 25 days a year. The canteen opens at noon. Annual leave of 25 days a year "
        "has to be asked for."
    )
    one = source(1, text)
    events = ask("How many days of annual leave a year?", [one])
    content, order = content_of(events, [one])
    assert "> Annual leave is 25 days a year. [1]" in content
    assert "> Annual leave of 25 days a year has to be asked for. [2]" in content
    assert "canteen" not in content
    quoted = [event.quoted for event in events if event.quoted]
    assert [text[each.start : each.end] for each in quoted] == [
        "Annual leave is 25 days a year.",
        "Annual leave of 25 days a year has to be asked for.",
    ]
    assert order == (1, 2)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_provider_creates_a_chat_model_without_a_request(provider):
    settings = ChatSettings(provider=provider, api_base="http://127.0.0.1:9/v1", model="m")
    chat: ChatModel = create_chat_model(settings)
    assert chat.provider == provider
    assert chat.model
    assert isinstance(chat.takes_tools, bool)


def test_words_in_addresses_do_not_count_as_words_of_a_statement():
    text = (
        "The room is shared (https://example.org/help/how-to-set-up-a-projector).\n\n"
        "See the helper's page (https://example.org/projector)."
    )
    (judged,) = judge("How do I set up the projector?", "en", [source(1, text)])
    assert [one.evidence.own for one in judged.candidates] == [0.0, 0.0]


def test_matching_place_is_shown_when_nothing_answers():
    text = "The canteen is on the ground floor. The bicycle shed is locked with a code."
    one = source(1, text, confidence=0.6)
    (event,) = ask("What is the telephone number of the bicycle shed?", [one])
    assert isinstance(event, Abstained)
    (place,) = event.about
    assert text[place.start : place.end] == "The bicycle shed is locked with a code."


@pytest.mark.parametrize(
    ("confidence", "outcome", "words"),
    [(0.3, Outcome.ON_TOPIC, "mention this"), (0.01, Outcome.NOTHING, "are the nearest")],
)
def test_unrelated_results_are_not_said_to_mention_the_question(confidence, outcome, words):
    said = "Braise the pork for an hour."
    found = source(1, said, confidence=confidence)
    (event,) = ExtractiveChatModel(OddsReader({said: -1.0})).stream(
        request("How long must lentils cook?", [found])
    )
    assert event.outcome is outcome
    assert words in event.text
    assert [one.source.chunk_id for one in event.about] == [found.chunk_id]


def test_nearly_likely_statement_is_shown_before_one_that_shares_words():
    said = [
        source(1, "The landlord pays for the boiler."),
        source(2, "The tenant mends lamps and panes."),
        source(3, "Dogs bark at night."),
    ]
    reader = Reader("panes", odds=-1.0)
    asked = request("Who pays when glass breaks?", said)
    (event,) = ExtractiveChatModel(reader).stream(asked)
    assert isinstance(event, Abstained)
    assert [one.number for one in event.about] == [2, 1]


def test_short_question_on_a_new_subject_is_not_answered_with_the_previous_one():
    leave, hotels = "Employees get 25 days of annual leave.", "Hotels cost 90 euros at most."
    sources = [source(1, leave), source(2, hotels)]

    class Rewritten:
        def read_answers(self, question, statements, *_):
            liked = leave if "annual leave" in question else hotels
            return np.array([6.0 if text == liked else -9.0 for _, text in statements])

    def quoted(asked):
        turns = (Turn("user", "Who gets annual leave?"), Turn("user", asked))
        events = ExtractiveChatModel(Rewritten()).stream(
            ChatRequest("", turns, f"annual leave {asked}", "en", sources)
        )
        return content_of(events, sources)[0]

    assert hotels in quoted("How much for hotels?")
    assert leave in quoted("Which employees?")
    assert hotels in quoted("What about hotels?")
    assert leave in quoted("Who decides about it in hotels?")


def test_source_far_less_likely_than_the_best_is_not_quoted():
    sources = [source(1, "Keys are in the safe."), source(2, "Keys are kept by Bo.")]

    def quoted(odds):
        reader = OddsReader({sources[0].text: 7.0, sources[1].text: odds})
        events = ExtractiveChatModel(reader).stream(request("What about keys?", sources))
        return content_of(events, sources)[0]

    assert sources[1].text in quoted(6.0)
    assert sources[1].text not in quoted(0.0)


def test_reading_model_decides_what_is_quoted():
    chat = ExtractiveChatModel(Reader("manager"))
    content, _ = content_of(
        list(chat.stream(request("What about annual leave?", [LEAVE]))), [LEAVE]
    )
    assert "> Ask your manager first. [1]" in content
    assert "25 days" not in content


def test_statements_beyond_the_limit_are_neither_compared_nor_quoted():
    text = "\n\n".join(f"Annual leave of group {n} is {n} days a year." for n in range(200))
    reader = Reader("nothing")
    (event,) = ExtractiveChatModel(reader).stream(
        request("How many days of annual leave a year?", [source(1, text)])
    )
    assert isinstance(event, Abstained)
    assert reader.compared == 100


def test_part_is_asked_alone_if_its_context_only_repeats_the_first_answer():
    oven, opening = "2. 烤箱预热：约需 35 分钟", "6. 首炉上架，7:30 开门营业"
    sources = [source(1, f"{oven}\n{opening}")]
    # Read together with the words of the first part, only the first part is answered again.
    reader = OddsReader({oven: 5.0, opening: -3.0}, {"几点开门": {opening: 3.0}})
    events = ExtractiveChatModel(reader).stream(
        request("烤箱要预热多久，几点开门？", sources, "zh")
    )
    content, _ = content_of(events, sources)
    assert "烤箱预热" in content
    assert "7:30 开门" in content


def test_part_is_not_asked_alone_if_its_context_gives_the_wanted_kind_of_answer():
    rooms, spaces = (
        "The Tern room seats 14, the Wren room 6.",
        "Four spaces are for people with cars.",
    )
    sources = [source(1, rooms), source(2, spaces)]
    reader = OddsReader({rooms: 3.0, spaces: -3.0}, {"how many people fit in": {spaces: 3.0}})
    asked = request("Which meeting rooms are there and how many people fit in?", sources)
    content, _ = content_of(ExtractiveChatModel(reader).stream(asked), sources)
    assert "seats 14" in content
    assert "spaces" not in content


@pytest.mark.parametrize(
    ("question", "said", "other", "is_beside"),
    [
        # The quotation for the first part has the words of the second, or names its kind alone.
        ("值班的是谁，电话多少？", "值班人员为郭明，电话 13900005678。", "应急电话 8999。", False),
        ("谁负责报价，电话多少？", "报价联系人：周敏 13800001234", "服务台电话：8888", False),
        ("产假多久，工资怎么算？", "产假158天，工资按生育津贴发放。", "试用期工资为 90%。", False),
        (
            "谁负责报价，分机多少？",
            "报价由周敏负责，手机 13800001234。",
            "周敏的分机是 8021。",
            True,
        ),
        ("试用期多长，为什么？", "试用期为三个月。", "设试用期是为了互相了解。", True),
        ("谁有电脑，谁有手机？", "工程师有电脑。", "经理有手机。", True),
        # It has not; its heading may have.
        ("婚假几天，产假又是几天？", "婚假 10 天。", "产假 158 天。", True),
        ("产假多久，食堂怎么收费？", "产假158天，工资照发。", "食堂午餐收费 15 元。", True),
    ],
)
def test_part_that_a_quotation_answers_already_gathers_no_others(question, said, other, is_beside):
    sources = [replace(source(1, said), heading="婚假、产假"), source(2, other)]
    reader = OddsReader({said: 6.0, other: 6.0}, {question.partition("，")[0]: {said: 6.0}})
    content, _ = content_of(
        ExtractiveChatModel(reader).stream(request(question, sources, "zh")), sources
    )
    assert said in content
    assert (other in content) is is_beside


def test_place_in_the_quotation_answers_a_part_that_only_asks_where():
    meeting = source(1, "下次会议 4 月 1 日 10:00 在三楼会议室。另议预算。", title="纪要")
    content, _ = content_of(ask("下次会议什么时候，在哪里？", [meeting], "zh"), [meeting])
    assert "三楼会议室" in content
    assert "没有" not in content


@pytest.mark.parametrize(
    ("likely_alone", "likely_beside", "is_told"),
    [("5 euros", "", True), ("", "5 euros", True), ("bark", "bark", False)],
)
def test_part_is_not_called_missing_if_its_answer_is_quoted_for_another(
    likely_alone, likely_beside, is_told
):
    class PartsReader:
        def read_answers(self, question, statements, *_):
            likely, odds = likely_alone, 1.0
            if question.startswith("How long"):
                likely, odds = "4 days", 6.0
            elif "parcel" in question:
                likely, odds = likely_beside, 6.0
            return np.array([odds if likely and likely in text else -9.0 for _, text in statements])

    parcels = source(1, "Parcels to Bremen take 4 days for 5 euros.")
    dogs = source(2, "Dogs bark at night.")
    asked = request("How long is a parcel on its way? Which fee is due?", [parcels, dogs])
    events = list(ExtractiveChatModel(PartsReader()).stream(asked))
    content, _ = content_of(events, [parcels, dogs])
    assert "4 days for 5 euros. [1]" in content
    assert ("Which fee is due" not in content) is is_told


def test_question_about_steps_is_answered_by_all_numbered_steps():
    steps = "1. Fill in the claim.\n2. Attach receipts.\n3. Hand it in."
    sources = [source(1, steps), source(2, "Claims are paid with the salary.")]
    reader = OddsReader({"Fill in the claim.": 3.0, "1. Fill in the claim.": 3.0,
                         "Claims are paid with the salary.": 2.5})  # fmt: skip
    answers = {
        question: content_of(
            ExtractiveChatModel(reader).stream(request(question, sources)), sources
        )[0]
        for question in ("What are the steps of a claim?", "How is a claim handled?")
    }
    assert [("Hand it in" in one, "salary" in one) for one in answers.values()] == [
        (True, False),
        (False, True),
    ]


@pytest.mark.parametrize(
    ("followed", "answer"),
    [("停电是什么时候？", "22:00 停电"), ("停电要通知谁？", "停电期间值班")],
)
def test_follow_up_is_asked_alone_if_its_context_finds_another_kind_of_answer(followed, answer):
    duty, outage = "停电期间值班人员为郭明。", "机房于 22:00 停电检修。"
    sources = [source(1, duty), source(2, outage)]
    reader = OddsReader({outage: 6.0}, {f"值班 {followed}".strip("？"): {duty: 6.0}})
    turns = (Turn("user", "值班的是谁？"), Turn("assistant", duty), Turn("user", followed))
    asked = ChatRequest("", turns, f"值班 {followed}", "zh", sources)
    content, _ = content_of(ExtractiveChatModel(reader).stream(asked), sources)
    assert answer in content
