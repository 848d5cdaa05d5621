"""Sentences of an answer are compared with the sources that they cite."""

from __future__ import annotations

import time

import pytest

from portal.answering.support import check

EN = (
    "The company was founded in 1998 by two engineers in Berlin. Employees may not carry over "
    "vacation days into the next year. The budget for 2024 was 1,234.5 million euros."
)
ZH = (
    "公司成立于一九九八年，由两位工程师在柏林创办。员工不得将年假结转到次年。年假每年为十五天，"
    "需要提前两周向直属主管申请。"
)


def judged(content, cited):
    return {content[one.start : one.end]: one.is_supported for one in check(content, cited)}


@pytest.mark.parametrize(
    "content",
    [
        "The company was founded in 1998 by two engineers [1].",
        "Two engineers founded the company in Berlin. [1]",
        "In 2024 the budget was 1234.5 million euros[1].",
        "Vacation days may not be carried over into the next year [1].",
        "> The company was founded in 1998 by two engineers in Berlin. [1]",
        "**Berlin** is where two engineers *founded* the company [1].",
    ],
)
def test_claim_of_the_source_is_supported(content):
    assert set(judged(content, {1: EN}).values()) == {True}


@pytest.mark.parametrize(
    "content",
    [
        "公司成立于1998年[1]。",
        "員工不得將年假結轉到次年。[1]",
        "年假每年15天，需提前两周申请【1】。".replace("【1】", "[1]"),
    ],
)
def test_chinese_is_compared_in_both_scripts_and_numerals(content):
    assert set(judged(content, {1: ZH}).values()) == {True}


@pytest.mark.parametrize(
    ("content", "source"),
    [
        ("住宿费用每年增加百分之十[1]。", "住宿费用每年增加10%。"),
        ("住宿费用每年增加10%[1]。", "住宿费用每年增加百分之十。"),
        ("出差时每次最多报销住宿费一万二千元[1]。", "出差时每次最多报销住宿费12000元。"),
        ("每次最多報銷12,000元[1]。", "每次最多报销一万二千元。"),
        ("公司共有15万人[1]。", "公司共有十五萬人。"),
    ],
)
def test_chinese_percentages_and_large_numbers_are_compared(content, source):
    assert set(judged(content, {1: source}).values()) == {True}
    other = source.replace("1", "3").replace("十", "二十").replace("二千", "三千")
    assert set(judged(content, {1: other}).values()) == {False}


@pytest.mark.parametrize(
    "content",
    [
        "The company was founded in 1999 by two engineers in Berlin [1].",
        "The budget for 2024 was 1,300 million euros [1].",
        "Employees may carry over vacation days into the next year [1].",
        "The chairman resigned over a bribery scandal [1].",
        "The company was not founded in 1998 by two engineers in Berlin [1].",
    ],
)
def test_other_figures_other_claims_and_negations_are_not_supported(content):
    assert set(judged(content, {1: EN}).values()) == {False}


@pytest.mark.parametrize(
    "content", ["员工可以将年假结转到次年[1]。", "年假每年为二十天[1]。", "公司去年被收购了[1]。"]
)
def test_chinese_claim_that_is_not_in_the_source_is_not_supported(content):
    assert set(judged(content, {1: ZH}).values()) == {False}


def test_sentence_without_a_marker_is_compared_with_its_paragraph():
    content = (
        "The company was founded in 1998. It was two engineers in Berlin [1].\n\nCats purr loudly."
    )
    assert list(judged(content, {1: EN}).values()) == [True, True, False]


def test_sentence_that_cites_the_wrong_source_is_not_supported():
    content = "The company was founded in 1998 by two engineers [2]."
    assert list(judged(content, {1: EN, 2: "Cats purr. Dogs bark at night."}).values()) == [False]


@pytest.mark.parametrize(
    "content",
    [
        "# Vacation days",
        "Here is what I found:",
        "Hello!",
        "Do you want more details on this?",
        "```\nemployees carry 99 days\n```",
        "The passages do not mention who the chairman is.",
        "文档中没有提到董事长是谁。",
    ],
)
def test_text_without_a_claim_is_not_judged(content):
    assert set(judged(content, {1: EN}).values()) <= {None}


def test_other_language_is_judged_by_figures_alone():
    zh = judged("公司由两位工程师在1998年创办[1]。", {1: EN})
    assert set(zh.values()) == {None}
    assert set(judged("公司由两位工程师在1997年创办[1]。", {1: EN}).values()) == {False}


def test_markers_after_the_full_stop_belong_to_the_sentence_before():
    content = "公司成立于1998年。[1]员工不得结转年假。[2][1]\n\nNew line [2]."
    found = check(content, {1: ZH, 2: ZH})
    assert [one.markers for one in found] == [(1,), (2, 1), (2,)]
    assert content[found[0].start : found[0].end] == "公司成立于1998年。[1]"


def test_spans_are_in_order_and_within_the_text():
    content = "One two [1]. `code [1].` Three four. [1]\n- five six [1]\n- seven\n\n> quote [1]"
    spans = [(one.start, one.end) for one in check(content, {1: EN})]
    assert spans == sorted(spans)
    assert all(0 <= start < end <= len(content) for start, end in spans)
    assert check("", {}) == ()


def test_check_is_fast():
    content = "\n\n".join(["The company was founded in 1998 by two engineers [1]."] * 20)
    check(content, {1: EN})
    began = time.process_time()
    check(content + " More of it, said the board.", dict.fromkeys(range(1, 6), EN * 3))
    assert time.process_time() - began < 0.2


def test_number_of_a_list_is_not_a_claim():
    content = "1. The company was founded in 1998 [1].\n2. Two engineers founded it in Berlin [1]."
    assert False not in judged(content, {1: EN}).values()


def test_long_row_of_chinese_digits_is_not_a_number():
    checked = check("It is 5 元 today [1].", {1: "一" * 4400 + "万一元"})
    assert len(checked) == 1
