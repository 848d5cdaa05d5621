"""Quotations as answers."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

import numpy as np
import pytest

from portal.answering import PROVIDERS, create_chat_model
from portal.answering.markers import MarkerStream
from portal.answering.quoting.choosing import Quotation
from portal.answering.quoting.evidence import Evidence
from portal.answering.quoting.extractive import ExtractiveChatModel, _Quoter
from portal.answering.quoting.kinds import Wanted, can_hold
from portal.answering.quoting.relevance import judge
from portal.answering.quoting.rendering import render
from portal.answering.quoting.statements import Statement, statements
from portal.domain.answering import (
    Abstained,
    ChatModel,
    ChatRequest,
    Outcome,
    TextDelta,
    Turn,
)
from portal.settings import ChatSettings
from tests.unit.answering.sources import source

LEAVE = source(
    1,
    "The handbook is for everybody. Employees get 25 days of annual leave. Ask your manager first.",
    title="Handbook",
)
CATS = source(2, "Cats purr when they are content. Dogs bark at night.", confidence=0.1)
ZH = source(
    3, "本手册适用于全体员工。年假每年为二十五天。申请须提前两周提交给主管。", title="员工手册"
)


def request(question, sources, language="en"):
    return ChatRequest("", (Turn("user", question),), question, language, sources)


def ask(question, sources, language="en"):
    return list(ExtractiveChatModel().stream(request(question, sources, language)))


def content_of(events, sources):
    markers = MarkerStream(sources)
    pieces = []
    for event in events:
        if isinstance(event, TextDelta) and event.quoted:
            markers.know([source(event.quoted.number)])
        pieces += markers.feed(event.text)
    pieces += markers.close()
    return "".join(piece.text for piece in pieces), markers.order


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
    assert set(order) <= {1, 2}
    assert order


def test_sentence_that_two_chunks_hold_is_quoted_once():
    said = "Employees get 25 days of annual leave."
    sources = [source(1, f"The handbook is for everybody. {said}"), source(2, f"{said} Ask first.")]
    content, order = content_of(ask("How many days of annual leave?", sources), sources)
    assert content.count(said) == 1
    assert len(order) == 1


def test_short_chinese_word_counts_as_its_longer_form():
    fees = source(1, "物业服务费每平方米每月 2.8 元。逾期缴纳的，物业公司可以费时催收。")
    (found,) = judge("物业费多少钱？", "zh", [fees])
    assert [one.evidence.own > 0 for one in found.candidates] == [True, False]


def test_weekend_is_in_a_statement_on_saturday():
    hours = source(1, "Call us from Monday to Friday. On Saturday we answer until one.")
    (found,) = judge("Is the line open at weekends?", "en", [hours])
    assert [one.evidence.own > 0 for one in found.candidates] == [False, True]


def test_what_was_quoted_is_left_out_of_a_longer_quotation():
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


@pytest.mark.parametrize(
    ("question", "said", "quoted"),
    [
        ("When does room 3 close?", ("Room 3 closes at 6 pm.", "Room 2 closes at 5 pm."), 1),
        ("3号楼年假有几天？", ("3号楼年假有六天。", "2号楼年假有五天。"), 1),
        ("When do the rooms close?", ("Room 3 closes at 6 pm.", "Room 2 closes at 5 pm."), 2),
    ],
)
def test_statement_about_another_number_is_not_quoted_beside_the_answer(question, said, quoted):
    sources = [source(number, text) for number, text in enumerate(said, 1)]
    language = "en" if question.isascii() else "zh"
    _, order = content_of(ask(question, sources, language), sources)
    assert order == tuple(range(1, quoted + 1))


@pytest.mark.parametrize(
    ("text", "question", "language", "answer"),
    [
        ("周一至周五 21:00 关门。周六 17:00 关门。", "周六几点关门？", "zh", "周六 17:00 关门"),
        ("实验室周一至周五 21:00 关门。", "实验室周六几点关门？", "zh", None),
        ("The lab closes at 9 pm every day.", "When does the lab close on Saturday?", "en", "9 pm"),
        ("周一至周五 9:00 开门。", "周六开门吗？", "zh", "周一至周五"),
    ],
)
def test_hours_of_another_day_do_not_answer(text, question, language, answer):
    chat = ExtractiveChatModel(Reader(""))
    said = source(1, text)
    content, order = content_of(list(chat.stream(request(question, [said], language))), [said])
    assert (answer in content) if answer else not order
    assert "周一至周五" not in content or answer == "周一至周五"


def test_first_row_of_a_drawn_table_is_its_header_and_not_quoted_alone():
    table = source(1, "| Van | Summer |\n|-----|--------|\n| Wren | £98 |\n| Otter | £129 |")
    chat = ExtractiveChatModel(Reader("Van: Otter; Summer: £129"))
    asked = request("How much is the Otter in summer?", [table])
    content, _ = content_of(list(chat.stream(asked)), [table])
    assert "| Van | Summer |\n> | --- | --- |\n> | Otter | £129 |" in content
    assert "Wren" not in content


def test_row_is_read_with_the_figure_that_is_in_its_range():
    table = source(1, "| Amount | Who |\n|--|--|\n| up to $1,000 | lead |\n| over $1,000 | board |")
    chat = ExtractiveChatModel(Reader("Amount: $5k (over $1,000); Who: board"))
    asked = request("Who approves $5k?", [table])
    content, _ = content_of(list(chat.stream(asked)), [table])
    assert "| over \\$1,000 | board |" in content
    assert "lead" not in content


def test_statements_that_are_apart_are_cited_apart():
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


def test_long_sentence_is_quoted_whole():
    words = " ".join(f"filler{n}" for n in range(300))
    one = source(1, f"{words} the annual leave of employees is 25 days {words}.")
    content, _ = content_of(ask("annual leave of employees", [one]), [one])
    assert one.text in content


def test_other_language_uses_the_confidence_of_search():
    sure = source(1, ZH.text, confidence=0.8)
    assert isinstance(ask("How many days of annual leave?", [sure])[0], TextDelta)
    unsure = source(1, ZH.text, confidence=0.4)
    assert isinstance(ask("How many days of annual leave?", [unsure])[0], Abstained)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_provider_is_a_chat_model_and_asks_no_one_when_made(provider):
    settings = ChatSettings(provider=provider, api_base="http://127.0.0.1:9/v1", model="m")
    chat: ChatModel = create_chat_model(settings)
    assert chat.provider == provider
    assert chat.model
    assert isinstance(chat.takes_tools, bool)


def test_list_answers_by_what_its_introduction_says():
    text = (
        "The gateway has two serial ports.\n\nSupported protocols of the gateway:\n"
        "- Modbus RTU\n- OPC UA\n- PROFINET"
    )
    content, _ = content_of(ask("Which protocols does the gateway support?", [source(1, text)]), [])
    assert "Modbus RTU" in content
    assert "PROFINET" in content
    assert "serial ports" not in content


def test_introduction_that_wraps_is_shown_whole():
    text = (
        "If you also clicked on a link in a phishing message, follow these steps to report\n"
        "to the response team:\n\n- Write to the desk\n- Name the link\n- Wait for an answer"
    )
    question = "What are the steps to report a phishing message?"
    content, _ = content_of(ask(question, [source(1, text)]), [])
    assert "steps to report to the response team:\n>\n> - Write to the desk\n" in content
    contexts = {one.context for one in statements(source(1, text))}
    assert all(one.endswith("steps to report to the response team:") for one in contexts)


def test_nested_item_is_read_and_quoted_below_the_item_that_it_is_in():
    text = (
        "植物\n\n1. 吊兰\n   - 养护难度：极低\n2. 虎尾兰\n   - 养护难度：中等\n     - 夏天每周浇水"
    )
    found = {text[one.start : one.end]: one.context for one in statements(source(1, text))}
    assert found["- 养护难度：极低"] == "植物\n吊兰"
    assert found["- 夏天每周浇水"] == "植物\n虎尾兰\n养护难度：中等"
    assert found["2. 虎尾兰"] == "植物"


@pytest.mark.parametrize("first", ["(1)", "（一）", "①"])
def test_item_that_introduces_others_is_quoted_with_them_alone(first):
    text = (
        "4.3 每车至少装三个探头。\n4.4 有下列情形之一的，甲方有权拒收：\n"
        f"{first}外包装破损或受潮；\n"
        f"{first.translate(str.maketrans('1一①', '2二②'))}铅封缺失。\n4.5 争议另行协商。"
    )
    found = {text[one.start : one.end]: one for one in statements(source(1, text))}
    assert found[f"{first}外包装破损或受潮；"].context == "有下列情形之一的，甲方有权拒收："
    assert [one.depth for one in found.values()] == [0, 0, 1, 1, 0]
    for question in ("什么情况下甲方有权拒收？", "甲方有权拒收吗？"):
        content, _ = content_of(ask(question, [source(1, text)], "zh"), [source(1, text)])
        assert "拒收：" in content
        assert "外包装破损或受潮" in content
        assert "铅封缺失" in content
        assert "探头" not in content
        assert "另行协商" not in content


def test_question_of_two_sentences_above_its_answer_is_a_heading():
    text = "My internet is down. What now?\nUse a mobile hotspot. Tell your lead."
    found = statements(source(1, text))
    assert [text[one.start : one.end] for one in found] == [
        *("Use a mobile hotspot.", "Tell your lead.")
    ]
    assert {one.context for one in found} == {"My internet is down. What now?"}


def test_words_of_addresses_are_not_those_of_a_statement():
    text = (
        "The room is shared (https://example.org/help/how-to-set-up-a-projector).\n\n"
        "See the helper's page (https://example.org/projector)."
    )
    (judged,) = judge("How do I set up the projector?", "en", [source(1, text)])
    assert [one.evidence.own for one in judged.candidates] == [0.0, 0.0]


def test_paragraphs_that_are_quoted_together_stay_apart():
    text = "The permit of the lab is 47-A.\n\nThat of the yard is 12-C. Both end in May."
    shown = render(Quotation(source(1, text), tuple(statements(source(1, text)))))
    assert shown == (
        "> The permit of the lab is 47-A.\n>\n> That of the yard is 12-C. Both end in May."
    )


def test_line_at_the_margin_below_a_list_is_no_part_of_its_last_item():
    text = "Trips\n\n- Taxi: up to 40 pounds.\n- Meals: 35 pounds a day.\nMarta repays trips."
    found = [text[one.start : one.end] for one in statements(source(1, text))]
    assert found[-2:] == ["- Meals: 35 pounds a day.", "Marta repays trips."]


def test_text_without_words_has_no_statements():
    assert statements(source(1, " \n ")) == []


def test_line_that_only_introduces_is_no_statement():
    text = "On Wed, 7 Jan at 10:00, Bob wrote:\n\nWe meet in room Kade."
    found = [text[one.start : one.end] for one in statements(source(1, text))]
    assert found == ["We meet in room Kade."]


def test_items_are_a_list_and_what_follows_their_sign_is_no_markup():
    text = "Steps:\n\n1. Open the lid\n2. - Press *both* buttons\n3. Close the lid"
    content, _ = content_of(ask("Which steps are there?", [source(1, text)]), [])
    assert (
        "> Steps:\n>\n> 1. Open the lid\n> 2. \\- Press \\*both\\* buttons\n> 3. Close the lid [1]"
        in content
    )


def test_numbers_that_a_list_would_change_are_quoted_as_lines():
    text = "1. Open the lid\n   1. Lift the lock\n   2. Pull\n2. Close the lid"
    shown = render(Quotation(source(1, text), tuple(statements(source(1, text)))))
    assert shown == ("> 1\\. Open the lid\n> 1\\. Lift the lock\n> 2\\. Pull\n> 2\\. Close the lid")


def test_item_is_quoted_below_what_gives_it_its_meaning():
    text = (
        "Not reimbursed\n\n- Laundry and the minibar\n- Fees for changed tickets\n- Parking fines"
    )
    starts = frozenset({0})
    content, _ = content_of(
        ask("Is the minibar reimbursed?", [source(1, text, heading_starts=starts)]), []
    )
    assert "> **Not reimbursed**\n>\n> - Laundry and the minibar [1]" in content
    assert "Fines" not in content
    sentence = source(1, "Travel\n\nTrains are booked by the office.", heading_starts=starts)
    content, _ = content_of(ask("Who books trains?", [sentence]), [])
    assert "**Travel**" not in content


def test_question_that_names_a_row_gets_no_other():
    text = "City | Staff | Manager\nBerlin | 140 | 180\nLeipzig | 90 | 120\nAll other | 70 | 95"
    content, _ = content_of(
        ask("What may a manager spend a night in Berlin?", [source(1, text)]), []
    )
    assert "| Berlin | 140 | 180 |" in content
    assert "Leipzig" not in content


def test_question_that_names_a_row_in_another_language_gets_no_other():
    rows = ["London | $260", "New York | $320", "Elsewhere | $150"]
    table = "\n".join(["City | Hotel limit", *rows])
    hotels = replace(source(1, table, title="Travel"), language="en")
    cells = (row.split(" | ") for row in rows)
    reader = OddsReader({f"City: {city}; Hotel limit: {limit}": 9.0 for city, limit in cells})
    content, _ = content_of(
        ExtractiveChatModel(reader).stream(request("住酒店在纽约最多多少钱？", [hotels], "zh")),
        [hotels],
    )
    assert "New York" in content
    assert "London" not in content


@pytest.mark.parametrize(
    ("odds", "is_whole"), [((4.0, 4.0, -4.0), True), ((4.0, -4.0, -4.0), False)]
)
def test_most_of_a_table_is_quoted_as_all_of_it(odds, is_whole):
    text = "City | Hotel a night\nBerlin | 140\nLeipzig | 90\nAll other | 70"

    class Reader:
        def read_answers(self, question, statements, *_):
            return np.array(odds)

    request = ChatRequest(
        "", (Turn("user", "?"),), "What does a hotel cost?", "en", [source(1, text)]
    )
    content, _ = content_of(ExtractiveChatModel(Reader()).stream(request), request.sources)
    assert "| Berlin | 140 |" in content
    assert ("| All other | 70 |" in content) is is_whole


def test_place_that_matches_is_shown_where_nothing_answers():
    text = "The canteen is on the ground floor. The bicycle shed is locked with a code."
    one = source(1, text, confidence=0.6)
    (event,) = ask("What is the telephone number of the bicycle shed?", [one])
    assert isinstance(event, Abstained)
    (place,) = event.about
    assert text[place.start : place.end] == "The bicycle shed is locked with a code."


class Reader:
    """A model that finds one statement likely, and counts what it is asked to compare."""

    def __init__(self, likely: str, odds: float = 6.0) -> None:
        self.likely = likely
        self.odds = odds
        self.compared = 0
        self.asked = ""

    def read_answers(self, question, statements, *_):
        self.asked = question
        self.compared += len(statements)
        return np.array([self.odds if self.likely in text else -9.0 for _, text in statements])


class OddsReader:
    """A model that says given log odds of some statements, and others for some questions."""

    def __init__(self, odds, of_question=None):
        self.odds = odds
        self.of_question = of_question or {}

    def read_answers(self, question, statements, *_):
        odds = self.of_question.get(question.strip("?？"), self.odds)
        return np.array([odds.get(text, -9.0) for _, text in statements])


def is_quoted(reader, asked):
    """Return whether anything is quoted where a model says these odds."""
    return any(isinstance(event, TextDelta) for event in ExtractiveChatModel(reader).stream(asked))


@pytest.mark.parametrize(
    ("confidence", "outcome", "words"),
    [(0.3, Outcome.ON_TOPIC, "mention this"), (0.01, Outcome.NOTHING, "are the nearest")],
)
def test_what_the_search_holds_for_unrelated_is_not_said_to_be_mentioned(
    confidence, outcome, words
):
    said = "Braise the pork for an hour."
    found = source(1, said, confidence=confidence)
    (event,) = ExtractiveChatModel(OddsReader({said: -1.0})).stream(
        request("How long must lentils cook?", [found])
    )
    assert event.outcome is outcome
    assert words in event.text
    assert [one.source.chunk_id for one in event.about] == [found.chunk_id]


def test_statement_that_is_nearly_likely_is_shown_before_those_that_share_words():
    said = [
        source(1, "The landlord pays for the boiler."),
        source(2, "The tenant mends lamps and panes."),
        source(3, "Dogs bark at night."),
    ]
    reader = Reader("panes", odds=0.6)
    asked = request("Who pays when glass breaks?", said)
    (event,) = ExtractiveChatModel(reader).stream(asked)
    assert isinstance(event, Abstained)
    assert [one.number for one in event.about] == [2, 1]


def test_short_question_on_a_new_subject_is_not_answered_with_the_one_before():
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


@pytest.mark.parametrize(
    ("question", "language", "without", "answer"),
    [
        ("What time do you close?", "en", "We close over Christmas.", "We close at 18:00."),
        ("早班几点开门？", "zh", "早班由店长开门。", "早班上午九点开门。"),
        ("How long do locks last?", "en", "Locks last as set.", "Locks last 45 s."),
        ("滤网多久换一回？", "zh", "滤网自己换。", "滤网每月换。"),
    ],
)
def test_statement_without_the_signs_of_the_wanted_kind_is_less_likely(
    question, language, without, answer
):
    reader = OddsReader({without: 1.0, answer: 1.0})
    events = ExtractiveChatModel(reader).stream(request(question, [source(1, without)], language))
    assert [type(event) for event in events] == [Abstained]
    sources = [source(1, without), source(2, answer)]
    events = ExtractiveChatModel(reader).stream(request(question, sources, language))
    content, _ = content_of(events, sources)
    assert answer in content
    assert without not in content


def test_name_that_begins_a_sentence_is_a_person():
    said = ("Amina asks the choir.", "Visits need no guide.", "- Tariq checks the tax.")
    held = [can_hold(Wanted.PERSON, one, "Who does it?") for one in said]
    assert held == [True, False, True]


@pytest.mark.parametrize(
    ("question", "by_department", "unsaid"),
    [
        ("Who pays?", "Finance pays every Wednesday.", "Receipts are paid every Wednesday."),
        ("谁付款？", "财务每周三付款。", "财务制度规定每周三付款。"),
    ],
)
def test_department_pays(question, by_department, unsaid):
    said = (by_department, unsaid)
    assert [can_hold(Wanted.PERSON, one, question) for one in said] == [True, False]


_EXPENSES = "## Not reimbursed\n\n- Laundry\n- Parking fines"
_COSTS_ZH = "## 不予报销\n\n- 洗衣\n- 停车罚款"


@pytest.mark.parametrize(
    ("question", "text", "language", "is_answered"),
    [
        ("What is reimbursed?", _EXPENSES, "en", False),
        ("How do I get reimbursed?", _EXPENSES, "en", False),
        ("What is not reimbursed?", _EXPENSES, "en", True),
        ("Is laundry reimbursed?", _EXPENSES, "en", True),
        ("Which laundry is free?", _EXPENSES, "en", True),
        ("What is reimbursed?", "## What is and is not reimbursed\n\n- Laundry", "en", True),
        ("哪些可以报销？", _COSTS_ZH, "zh", False),
        ("什么不能报销？", _COSTS_ZH, "zh", True),
        ("洗衣可以报销吗？", _COSTS_ZH, "zh", True),
        ("哪些可以报销？", "## 可报销与不可报销\n\n- 洗衣", "zh", True),
        ("哪些可以报销？", "## 报销\n\n### 住宿\n\n- 洗衣", "zh", True),
        ("What is reimbursed?", _COSTS_ZH, "en", False),
        ("What happens to laundry?", _COSTS_ZH, "en", True),
        ("What is not reimbursed?", _COSTS_ZH, "en", True),
        ("What counts as force majeure?", "## 不可抗力\n\n- 洗衣", "en", True),
        ("哪些可以报销？", _EXPENSES, "zh", False),
    ],
)
def test_what_stands_below_a_denial_is_no_answer_to_an_open_question(
    question, text, language, is_answered
):
    reader = OddsReader({f"- {item}": 7.0 for item in ("Laundry", "洗衣")})
    assert is_quoted(reader, request(question, [source(1, text)], language)) is is_answered


@pytest.mark.parametrize(
    ("question", "statement", "is_answered"),
    [
        ("哪些商品不能七天无理由退货？", "自签收起 7 天内可无理由退货。", False),
        ("哪些商品不能七天无理由退货？", "定制商品不支持无理由退货。", True),
        ("What can't be returned?", "All goods can be returned within a week.", False),
        ("What can't be returned?", "Only goods that are sealed can be returned.", True),
        ("哪些商品可以退货？", "自签收起 7 天内可无理由退货。", True),
        ("为什么不能登录？", "密码连续输错五次后账号会锁定。", True),
        ("What happens if I do not reply?", "The request is closed after a week.", True),
    ],
)
def test_what_is_denied_is_no_statement_that_denies_nothing(question, statement, is_answered):
    reader = OddsReader({statement: 7.0})
    language = "en" if question.isascii() else "zh"
    assert is_quoted(reader, request(question, [source(1, statement)], language)) is is_answered


@pytest.mark.parametrize(
    ("question", "said", "is_answered"),
    [
        ("Who chaired on 6 May?", "Chair: Helen Okafor.", True),
        ("Who chaired on 8 July?", "Chair: Helen Okafor.", False),
        ("Who chaired the meeting?", "Chair: Helen Okafor.", True),
        ("Who sends the report by 8 July?", "Helen sends the report by 8 July.", True),
    ],
)
def test_statement_below_one_date_does_not_answer_for_another(question, said, is_answered):
    minutes = replace(source(1, said), heading="Meeting of 6 May")
    assert is_quoted(OddsReader({said: 7.0}), request(question, [minutes])) is is_answered


@pytest.mark.parametrize(
    ("question", "is_answered"),
    [
        ("What was revenue in Q3 2026?", True),
        ("What was revenue in the third quarter of 2026?", True),
        ("What was revenue in Q2 2026?", False),
        ("What was revenue in Q3 2025?", False),
        ("What was revenue?", True),
    ],
)
def test_figure_of_one_quarter_does_not_answer_for_another(question, is_answered):
    said = "Revenue was $4.8 million, up 18 percent on Q3 2025."
    review = source(1, f"# Results\n\n{said}", title="Q3 2026 review")
    assert is_quoted(OddsReader({said: 7.0}), request(question, [review])) is is_answered


@pytest.mark.parametrize(
    ("question", "statement", "other", "is_answered"),
    [
        (
            "Joel Fairbrother phone number",
            "卢婉清，电话 8866-2035",
            "Joel Fairbrother leads.",
            False,
        ),
        ("Joel Fairbrother phone number", "Joel Fairbrother，电话 8866-2035", "Joel.", True),
        ("Lu Wanqing phone number", "卢婉清，电话 8866-2035", "Ada Berg leads.", True),
        ("How much on 青松?", "组外人员每半天收费 600 元。青松每卡时 6 元。", "Rules.", True),
    ],
)
def test_statement_in_another_language_is_of_the_person_in_question(
    question, statement, other, is_answered
):
    foreign = replace(source(2, statement), language="zh")
    sources = [replace(source(1, other), language="en"), foreign]
    reader = OddsReader({one: 9.0 for one in statement.partition("。") if one.strip("。")})
    content, _ = content_of(ExtractiveChatModel(reader).stream(request(question, sources)), sources)
    assert ("\n> " in content) is is_answered
    assert "600" not in content


def test_setting_for_those_who_is_asked_for_no_person():
    row = "FALLBACK_LANG is the language of those without one."
    question = "Which variable sets the language of those who have none?"
    events = ExtractiveChatModel(OddsReader({row: 1.0})).stream(request(question, [source(1, row)]))
    assert row in content_of(events, [source(1, row)])[0].replace("\\", "")


def test_clauses_that_semicolons_divide_are_quoted_together():
    late = source(1, "店长每天点名。迟到十分钟以内不扣钱；迟到更久的，每次扣 20 元。按月结算。")
    reader = OddsReader({"迟到十分钟以内不扣钱；": 7.0})
    content, _ = content_of(
        ExtractiveChatModel(reader).stream(request("迟到怎么扣钱？", [late], "zh")), [late]
    )
    assert "> 迟到十分钟以内不扣钱；迟到更久的，每次扣 20 元。 [1]" in content


def test_source_that_is_far_less_likely_than_the_best_is_not_quoted_beside_it():
    sources = [source(1, "Keys are in the safe."), source(2, "Keys are kept by Bo.")]

    def quoted(odds):
        reader = OddsReader({sources[0].text: 7.0, sources[1].text: odds})
        events = ExtractiveChatModel(reader).stream(request("What about keys?", sources))
        return content_of(events, sources)[0]

    assert sources[1].text in quoted(6.0)
    assert sources[1].text not in quoted(0.0)


def test_model_that_reads_decides_what_is_quoted():
    chat = ExtractiveChatModel(Reader("manager"))
    content, _ = content_of(
        list(chat.stream(request("What about annual leave?", [LEAVE]))), [LEAVE]
    )
    assert "> Ask your manager first. [1]" in content
    assert "25 days" not in content


def test_date_of_a_title_is_not_asked_of_its_statements():
    title, text = "Minutes 2026-03-12", "Chair: Ada Byron"
    reader = Reader("Chair: Ada")
    dated = source(1, text, title=title)
    other = replace(source(2, "Chair: Adam Smith", title="Minutes 2026-03-19"), document_id=uuid4())
    events = list(
        ExtractiveChatModel(reader).stream(request("Who chaired on 12 March?", [dated, other]))
    )
    content, order = content_of(events, [dated, other])
    assert reader.asked == "Who chaired?"
    assert "Ada Byron" in content
    assert order == (1,)


def test_label_is_also_read_without_the_name_of_its_document():
    class LabelReader:
        def read_answers(self, question, statements, *_):
            is_short = question == "Who wrote it?"
            return np.array([6.0 if is_short and ": " in text else -9.0 for _, text in statements])

    chat = ExtractiveChatModel(LabelReader())
    text = "Author: Ada Byron\n\nRestart the consumers first."
    runbook = source(1, text, title="Runbook of the payments queue")
    asked = request("Who wrote the payments queue runbook?", [runbook])
    content, _ = content_of(list(chat.stream(asked)), [runbook])
    assert "Ada Byron" in content
    assert "Restart" not in content


def test_other_language_answers_where_the_own_does_not():
    chat = ExtractiveChatModel(Reader("二十五天"))
    sources = [LEAVE, ZH]
    content, order = content_of(
        list(chat.stream(request("How many days of leave?", sources))), sources
    )
    assert "年假每年为二十五天。" in content
    assert order == (3,)


def test_other_language_is_not_read_where_the_own_answers():
    reader = Reader("leave")
    ask_with = ExtractiveChatModel(reader).stream
    own = request("How many days of annual leave?", [LEAVE])
    list(ask_with(own))
    alone = reader.compared
    list(ask_with(request("How many days of annual leave?", [LEAVE, replace(ZH, language="zh")])))
    assert reader.compared == 2 * alone


def test_statements_beyond_the_bound_are_neither_compared_nor_quoted():
    text = "\n\n".join(f"Annual leave of group {n} is {n} days a year." for n in range(200))
    reader = Reader("nothing")
    (event,) = ExtractiveChatModel(reader).stream(
        request("How many days of annual leave a year?", [source(1, text)])
    )
    assert isinstance(event, Abstained)
    assert reader.compared == 40


class Across:
    """A search of the other language that counts its calls."""

    def __init__(self, *found):
        self.found, self.calls = found, 0

    def __call__(self):
        self.calls += 1
        return self.found


def test_other_language_is_searched_only_when_the_own_does_not_answer():
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


def test_words_count_in_translation_in_the_other_language():
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
    # Each part without an answer asks; the first call is remembered.
    found = replace(ZH, number=1, language="zh")
    across = Across(found)
    asked = request("Who paints the fence? How long does the oven bake?", [found])
    list(ExtractiveChatModel().stream(replace(asked, search_across=across)))
    assert across.calls == 1


def test_how_wants_the_steps_of_a_numbered_list_and_one_item_of_another():
    leave = source(1, "Leave:\n- sick leave is paid at 80 percent\n- wedding leave is ten days")
    content, _ = content_of(ask("How do they pay sick leave?", [leave]), [leave])
    assert "80 percent" in content
    assert "wedding" not in content
    steps = source(1, "Sick leave:\n1. call your lead\n2. send the sick note for the leave")
    content, _ = content_of(ask("How do I take sick leave?", [steps]), [steps])
    assert "call your lead" in content
    assert "send the sick note" in content


def test_part_that_only_the_first_answers_beside_it_is_asked_alone():
    oven, opening = "2. 烤箱预热：约需 35 分钟", "6. 首炉上架，7:30 开门营业"
    sources = [source(1, f"{oven}\n{opening}")]
    # Beside the words of the first part the model reads on from these.
    reader = OddsReader({oven: 5.0, opening: -3.0}, {"几点开门": {opening: 3.0}})
    events = ExtractiveChatModel(reader).stream(
        request("烤箱要预热多久，几点开门？", sources, "zh")
    )
    content, _ = content_of(events, sources)
    assert "烤箱预热" in content
    assert "7:30 开门" in content


def test_place_in_the_quotation_answers_a_part_that_only_asks_where():
    meeting = source(1, "下次会议 4 月 1 日 10:00 在三楼会议室。另议预算。", title="纪要")
    content, _ = content_of(ask("下次会议什么时候，在哪里？", [meeting], "zh"), [meeting])
    assert "三楼会议室" in content
    assert "没有" not in content


@pytest.mark.parametrize(
    ("likely_alone", "likely_beside", "is_told"),
    [("5 euros", "", True), ("", "5 euros", True), ("bark", "bark", False)],
)
def test_part_is_not_called_missing_where_its_answer_is_quoted_for_another(
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
