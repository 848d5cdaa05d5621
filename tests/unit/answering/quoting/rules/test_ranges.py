"""A number in a question picks the table row whose range contains it."""

from __future__ import annotations

import pytest

from portal.answering.quoting.rules.ranges import rows_in_range, with_figure
from portal.answering.quoting.statements import Statement

ROWS = ("不满 1 年", "1–3 年", "4–9 年", "满 10 年不满 20 年", "20 年及以上")


@pytest.mark.parametrize(
    ("question", "cell"),
    [
        ("干了半年有年假吗", "不满 1 年"),
        ("干了三年有几天年假", "1–3 年"),
        ("干了十二年有几天年假", "满 10 年不满 20 年"),
        ("满十年的老员工呢", "满 10 年不满 20 年"),
        ("工龄二十年", "20 年及以上"),
        ("How many days of leave after five years?", "4–9 年"),
        ("leave after fourteen years", "满 10 年不满 20 年"),
    ],
)
def test_number_is_in_the_range_of_one_row(question: str, cell: str) -> None:
    rows = [Statement(0, 1, cells=(one, "5 天")) for one in ROWS]
    assert rows_in_range(question, rows).keys() == {ROWS.index(cell)}


@pytest.mark.parametrize(
    ("question", "is_looked_up"),
    [("满一年有几天", True), ("租一年多少钱", False), ("一个月的费用", False)],
)
def test_period_of_a_price_is_not_looked_up_in_ranges(question: str, is_looked_up: bool) -> None:
    rows = [Statement(0, 1, cells=(one, "5")) for one in ("12 个月以下", "1–3 年", "3 年以上")]
    assert bool(rows_in_range(question, rows)) is is_looked_up


IN_FULL = ("5,000 元以下", "5,000 元至 5 万元", "5 万元（含）至 50 万元", "50 万元以上")
SHORT = ("5 万元以下", "5–20 万元", "20 万元以上")
UNDER_A_HEADER = ("1-5", "5-50", "50 以上")  # 金额（万元）
IN_ZLOTY = ("up to 500 PLN", "500–1000 PLN", "over 1000 PLN")
DOLLARS = ("up to $1,000", "$1,000 to $10k", "over $10,000")


@pytest.mark.parametrize(
    ("question", "cells", "place"),
    [
        ("3000 元的电脑谁批", IN_FULL, 0),
        ("八万块的采购谁批", IN_FULL, 2),
        ("一百万的设备怎么采购", IN_FULL, 3),
        ("十五万的合同谁签", SHORT, 1),
        ("8 万元谁批", UNDER_A_HEADER, 1),
        ("Who approves a purchase of $3,000?", DOLLARS, 1),
        ("Who signs off 500 dollars?", DOLLARS, 0),
        ("a budget of 20k", DOLLARS, 2),
        ("800 zloty for a dinner", IN_ZLOTY, 1),
        ("八百兹罗提的晚餐谁批", IN_ZLOTY, 1),
        ("1200 pln以内的礼品", IN_ZLOTY, 2),
    ],
)
def test_amount_is_in_a_range_however_both_are_written(
    question: str, cells: tuple[str, ...], place: int
) -> None:
    rows = [Statement(0, 1, cells=(one, "x"), group=1) for one in cells]
    assert rows_in_range(question, rows).keys() == {place}


def test_row_is_returned_with_the_figure_of_the_question() -> None:
    rows = [Statement(0, 1, cells=(one, "x"), group=1) for one in ("3 次以内", "4 至 6 次")]
    assert rows_in_range("迟到五次怎么处理？", rows) == {1: "五次"}
    assert rows_in_range("八万块的采购谁批", [Statement(0, 1, cells=("5–20 万元", "x"))]) == {
        0: "八万块"
    }


@pytest.mark.parametrize("word", ["money", "freight guests", "content", "maintenance"])
def test_word_that_contains_a_number_is_not_a_number(word: str) -> None:
    rows = [Statement(0, 1, cells=(one, "20 EUR"), group=1) for one in ("1-5", "6-10")]
    assert rows_in_range(f"How much {word} is the cleaning fee?", rows) == {}


def test_open_bound_does_not_include_the_number_itself() -> None:
    rows = [Statement(0, 1, cells=(one, "5")) for one in ("under 2 years", "over 5 years")]
    assert rows_in_range("after 2 years", rows) == {}
    assert rows_in_range("after 6 years", rows).keys() == {1}


def test_question_may_be_about_more_or_less_than_a_number() -> None:
    rows = [Statement(0, 1, cells=(one, "5")) for one in ("2 to 5 years", "more than 5 years")]
    assert rows_in_range("leave after 5 years", rows).keys() == {0}
    assert rows_in_range("leave after more than 5 years", rows).keys() == {1}
    assert rows_in_range("leave with less than 5 years", rows).keys() == {0}
    amounts = [Statement(0, 1, cells=(one, "x")) for one in ("$1,000 to $5,000", "over $5,000")]
    assert rows_in_range("who approves $5k", amounts).keys() == {0}
    assert rows_in_range("who approves more than $5k", amounts).keys() == {1}
    assert rows_in_range("工龄超过5年有几天年假", rows).keys() == {1}


def test_innermost_of_nested_ranges_counts() -> None:
    cells = ("from 2 years", "over 5 years", "over 10 years")
    rows = [Statement(0, 1, cells=(one, "5"), group=1) for one in cells]
    assert rows_in_range("How many days after six years?", rows).keys() == {1}
    assert rows_in_range("after 12 years", rows).keys() == {2}


def test_rate_is_not_looked_up_in_ranges() -> None:
    rows = [Statement(0, 1, cells=(one, "8 天"), group=1) for one in ROWS]
    assert rows_in_range("干了七年了，一年能休几天？", rows).keys() == {2}
    assert rows_in_range("干了一年，能休几天？", rows).keys() == {1}


@pytest.mark.parametrize("cell", ["1" * 3000, "5" + " " * 3000 + "x", "1," * 1500, "一" * 3000])
def test_cell_of_digits_or_spaces_is_not_a_range(cell: str) -> None:
    rows = [Statement(0, 1, cells=(cell, "x"))]
    assert rows_in_range("8 万元的采购谁批", rows) == {}


@pytest.mark.parametrize(
    ("question", "text", "read"),
    [
        (
            "干了六年有几天年假",
            "满一年 12 天；满五年 15 天；满十年 18 天。",
            "满一年 12 天；六年: 满五年 15 天；满十年 18 天。",
        ),
        (
            "Who approves a trip for £450?",
            "Under £600 the line manager, over £600 the director.",
            "£450: Under £600 the line manager, over £600 the director.",
        ),
        ("干了六年有几天年假", "满五年有 15 天。", "满五年有 15 天。"),
        ("How many for 7 people?", "After 5 days tea; after 9 days cake.", None),
    ],
)
def test_number_is_placed_before_the_clause_that_includes_it(question, text, read) -> None:
    assert with_figure(question, text) == (read or text)
