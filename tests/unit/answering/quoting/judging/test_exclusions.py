"""Exclusion of statements about another day, date, quarter or person, or below a negation."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from portal.answering.quoting.extractive import ExtractiveChatModel
from tests.unit.answering.quoting.answers import (
    OddsReader,
    Reader,
    ask,
    content_of,
    is_quoted,
    request,
)
from tests.unit.answering.sources import source


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


def test_code_on_the_first_line_applies_to_the_whole_document():
    head = replace(source(1, "Version 3. Project FL-CN-2507."), document_id=UUID(int=7))
    below = replace(source(2, "Drones stop above 10 m/s."), document_id=UUID(int=7), char_start=900)
    elsewhere = source(3, "Drones stop above 12 m/s.")
    sources = [head, below, elsewhere]
    question = "Above what wind do drones stop in project FL-CN-2507?"
    content, _ = content_of(ask(question, sources, "en"), sources)
    assert "10 m/s" in content
    assert "12 m/s" not in content


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


@pytest.mark.parametrize(
    ("question", "is_answered"),
    [
        ("哪里可以停车？", False),
        ("着火了在哪里集合？", True),
        ("Where is the car park?", False),
        ("Where do we gather after an alarm?", True),
    ],
)
def test_assembly_point_answers_only_questions_about_emergencies(question, is_answered):
    language = "en" if question.isascii() else "zh"
    text = {"zh": "集合地点是北门外的停车场。", "en": "The assembly point is in the car park."}[
        language
    ]
    assert is_quoted(OddsReader({text: 4.0}), request(question, [source(1, text)], language)) is (
        is_answered
    )


def test_who_was_excused_was_not_at_the_meeting():
    text = "Excused: Wang Wei"
    asked = request("Who was not at the meeting?", [source(1, text)])
    assert is_quoted(OddsReader({text: 4.0}), asked)


@pytest.mark.parametrize(
    ("question", "is_quoted_as_well"),
    [
        ("What can't be returned?", False),
        ("From which day on can things not be returned?", False),
        ("What may be returned by people who do not live here?", True),
    ],
)
def test_affirmative_statement_does_not_answer_a_negative_question(question, is_quoted_as_well):
    said = source(1, "Lamps may be returned within 14 days.")
    chat = ExtractiveChatModel(Reader("Lamps"))
    _, order = content_of(list(chat.stream(request(question, [said], "en"))), [said])
    assert bool(order) is is_quoted_as_well


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
def test_item_below_a_negative_heading_does_not_answer_an_open_question(
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
def test_question_about_exceptions_needs_a_negative_statement(question, statement, is_answered):
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
def test_statement_in_another_language_must_be_about_the_person_in_question(
    question, statement, other, is_answered
):
    foreign = replace(source(2, statement), language="zh")
    sources = [replace(source(1, other), language="en"), foreign]
    reader = OddsReader({one: 9.0 for one in statement.partition("。") if one.strip("。")})
    content, _ = content_of(ExtractiveChatModel(reader).stream(request(question, sources)), sources)
    assert ("\n> " in content) is is_answered
    assert "600" not in content


def test_date_in_the_title_is_dropped_from_the_question():
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


@pytest.mark.parametrize(
    ("question", "language", "is_answer"),
    [
        ("停电是什么时候？", "zh", False),
        ("停电通知是什么时候发的？", "zh", True),
        ("When is the outage?", "en", False),
        ("When was the mail about the outage sent?", "en", True),
        ("When is the mail about the outage from?", "en", True),
    ],
)
def test_time_at_which_a_mail_was_sent_is_not_when_something_happens(question, language, is_answer):
    said = "Date: Mon, 23 Mar 2026 09:12:00 +0800"
    asked = request(question, [source(1, said, title="停电 outage")], language)
    assert is_quoted(Reader("23 Mar"), asked) is is_answer


def test_day_of_a_meeting_answers_when_it_was():
    asked = request("When was the kick-off?", [source(1, "Kick-off\n\nDate: 12 March 2025")], "en")
    assert is_quoted(Reader("Date: 12 March"), asked)
