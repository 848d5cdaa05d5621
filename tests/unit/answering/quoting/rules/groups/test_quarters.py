"""Quarters of a year that texts name."""

import pytest

from portal.answering.quoting.rules.groups.quarters import find_quarters


@pytest.mark.parametrize(
    ("text", "quarters"),
    [
        ("第四季度会议纪要 上季度回顾", {3, 4}),
        ("Q1 minutes: the previous quarter", {1, 4}),
        ("Q3 2025", {3}),
        ("上季度", set()),
    ],
)
def test_previous_quarter_is_relative_to_the_quarter_of_the_minutes(text, quarters):
    assert find_quarters(text) == quarters
