"""Dates and figures in a question that titles and headings may contain."""

import pytest

from portal.answering.quoting.extractive import ExtractiveChatModel
from portal.answering.quoting.rules.conditions import (
    find_conditions,
    met_by,
    with_numerals_of,
    without,
)
from tests.unit.answering.quoting.answers import OddsReader, content_of, request
from tests.unit.answering.sources import source


@pytest.mark.parametrize(
    ("question", "terms"),
    [
        ("3 月 12 日的周会谁主持？", ["3-12"]),
        ("Who chaired on 12 March 2026?", ["3-12", "2026"]),
        ("How long do sessions last in 3.8?", ["3.8"]),
        ("YX-220 在 2025 年卖多少钱？", ["yx-220", "2025"]),
        ("Is 1.5% of the 3.2 万元 enough?", []),
        ("A trip of 2000 pounds, £2000, 1800元, 2000人, who signs?", []),
        ("Who chaired?", []),
        ("How early can I book the meeting room 405?", ["405"]),
        ("411 有没有投影？", ["411"]),
        ("1200 元的椅子谁批？", []),
        ("驭浪P12加固平板多少钱？", ["p12"]),
        ("第三条说了什么？", ["第3条"]),
        ("第三条线什么时候投产？", []),
    ],
)
def test_dates_years_versions_and_codes_are_conditions(question, terms):
    assert [one.term for one in find_conditions(question)] == terms


def test_date_matches_in_any_notation_and_language():
    (date,) = find_conditions("Who chaired on 12 March?")
    met = met_by([date], ["周会纪要 2026-03-12", "3 月 12 日", "2026-03-19"])
    assert met == [{date}, {date}, set()]


@pytest.mark.parametrize(
    ("question", "meeting", "not_meeting"),
    [
        ("Where is the P12?", ["驭浪P12；4 台", "the P-12 tablet"], ["P120", "P12S", "SP12"]),
        ("第十二章的内容", ["第十二章 费用", "第12章"], ["第二章", "第十二条"]),
        ("EQ-009 在哪里？", ["EQ009", "EQ 009"], ["EQ-0091"]),
        ("What was the result in 2025?", ["2025年", "FY2025"], ["12025"]),
    ],
)
def test_code_matches_only_as_a_whole(question, meeting, not_meeting):
    (code,) = find_conditions(question)
    assert met_by([code], meeting) == [{code}] * len(meeting)
    assert met_by([code], not_meeting) == [set()] * len(not_meeting)


def test_articles_are_asked_for_as_the_text_writes_them():
    assert with_numerals_of("第12条说了什么？", "第十二条 费用") == "第十二条说了什么？"
    assert with_numerals_of("第2条说了什么？", "第十二条 费用") == "第2条说了什么？"


def test_article_in_the_first_lines_does_not_stand_for_its_document():
    text = (
        "租赁合同\n\n- 第二条 月租金为一万元。\n- 第三条 逾期加收违约金。\n- 第四条 押金为两万元。"
    )
    said = [one for one in text.split("\n") if one.startswith("- ")]
    reader = OddsReader(dict.fromkeys(said, 3.0))
    asked = request("第二条说了什么？", [source(1, text)], "zh")
    content, _ = content_of(ExtractiveChatModel(reader).stream(asked), asked.sources)
    assert "月租金" in content
    assert "押金" not in content


@pytest.mark.parametrize(
    ("question", "left"),
    [
        ("3 月 19 日那次周会谁主持？", "周会谁主持？"),
        ("Where did the meeting on 12 March take place?", "Where did the meeting take place?"),
        ("4.2 版本是哪天发布的？", " 版本是哪天发布的？"),
        ("What does the GX200 weigh?", "What does the GX200 weigh?"),
    ],
)
def test_question_without_its_conditions_is_still_a_question(question, left):
    assert without(question, find_conditions(question)) == left
