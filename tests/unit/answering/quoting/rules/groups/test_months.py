"""A statement about one month does not answer for another."""

from __future__ import annotations

import pytest

from portal.answering.quoting.asked import Asked
from portal.answering.quoting.judging.exclusions import is_excluded
from portal.answering.quoting.rules.groups.months import find_months


@pytest.mark.parametrize(
    ("text", "months"),
    [
        ("In January clients waited 23 minutes.", {1}),
        ("revenue in March 2026", {3}),
        ("德国站 10 月销售额 18.6 万", {10}),
        ("十一月的会议和1月份的会议", {11, 1}),
        ("Classes start in May.", {5}),
        ("You may go.", set()),
        ("May I use the company's car?", set()),
        ("May's figures", {5}),
        ("on 12 March and March 14", set()),
        ("1月5日，三月底前，12个月", set()),
        ("Since January the fee is 3 euros.", set()),
        ("From January to March it is closed.", {1, 2, 3}),
        ("3月至5月，1-2月", {1, 2, 3, 4, 5}),
        ("12月至次年2月", {12, 1, 2}),
        ("十一月到一月", {11, 12, 1}),
        ("1月5日至3月2日", set()),
        ("接通率 2 月 94.8%", {2}),
        ("2 月 14 日，2月14截止", set()),
        ("Month: Oct 2024; Tickets: 2,918", {10}),
        ("Sept; mar the surface", {9}),
        ("Dec. 5, 5 Oct", set()),
        ("Jan-Mar; Peak Jul–Oct (CNY/night)", {1, 2, 3, 7, 8, 9, 10}),
        ("2026年07月，03月份", {7, 3}),
    ],
)
def test_months_of_a_text_are_found(text: str, months: set[int]) -> None:
    assert find_months(text) == months


@pytest.mark.parametrize(
    ("question", "text", "excluded"),
    [
        ("How long was the queue in February?", "In January it was 23 people long.", False),
        ("What was the revenue in February?", "In January the revenue was 3,000 euros.", True),
        ("2月的销售额是多少？", "1月份销售额三万元。", True),
        ("2月的销售额是多少？", "销售额三万元。", False),
        ("What was the revenue in January?", "In January the revenue was 3,000 euros.", False),
        ("七月份去三亚，主管住宿上限多少？", "城市: 三亚(11月至次年3月); 二级: 680", True),
        ("一月去三亚，主管住宿上限多少？", "城市: 三亚(11月至次年3月); 二级: 680", False),
        # The time asked for may be in another month.
        ("When is the report for March due?", "Reports are due in April.", False),
    ],
)
def test_statement_about_another_month_does_not_answer(
    question: str, text: str, excluded: bool
) -> None:
    assert is_excluded(Asked.of(question), "", text, is_foreign=False) is excluded
