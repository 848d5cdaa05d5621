"""Years named relative to this one: 去年, "this year's"."""

from __future__ import annotations

import pytest

from portal.answering.quoting.rules.years import with_years


@pytest.mark.parametrize(
    ("question", "dated"),
    [
        ("今年的伙食补助是多少？", "2026年的伙食补助是多少？"),
        ("去年伙食补助多少", "2025年伙食补助多少"),
        ("上一年度的预算", "2025年的预算"),
        ("What was the limit in Berlin last year?", "What was the limit in Berlin in 2025?"),
        ("What does this year's policy say?", "What does 2026 policy say?"),
        ("How many came in the last year of school?", "How many came in the last year of school?"),
        ("How long is a year?", "How long is a year?"),
    ],
)
def test_relative_years_become_figures(question: str, dated: str) -> None:
    assert with_years(question, 2026, str.isdigit) == dated


def test_year_that_no_document_names_is_unchanged() -> None:
    assert with_years("去年的预算", 2026, "2026".__eq__) == "去年的预算"


@pytest.mark.parametrize(
    "question",
    [
        "今年的年假能转到明年吗？",
        "By when must I use the days that I carried over from last year?",
        "去年剩下的年假什么时候用完？",
    ],
)
def test_question_that_asks_for_no_yearly_version_is_unchanged(question: str) -> None:
    assert with_years(question, 2026, str.isdigit) == question
