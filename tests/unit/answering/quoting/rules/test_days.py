"""In a table with one row per day or week, only the row of the day in question answers."""

from __future__ import annotations

import pytest

from portal.answering.quoting.rules.days import rows_of_other_days
from portal.answering.quoting.statements import Statement


def rows(header: str, *cells: str) -> list[Statement]:
    return [
        Statement(0, 9, cells=(one, "Ola Nyström"), header=(header, "Engineer"), group=1)
        for one in cells
    ]


WEEKS = rows("Week from", "18 Nov", "25 Nov", "2 Dec")


@pytest.mark.parametrize(
    ("question", "table", "others"),
    [
        ("who is on call the week of 20 january", WEEKS, {0, 1, 2}),
        ("who is on call the week of 25 november", WEEKS, {0, 2}),
        ("who is on call on 27 November?", WEEKS, {0, 2}),
        ("who is on call?", WEEKS, set()),
        ("who is on call from 1 to 5 November?", rows("Week", "1-7 Nov", "8 Nov", "15 Nov"), set()),
        ("12月3日谁值班", rows("日期", "12月1日", "12月2日", "12月3日"), {0, 1}),
        ("12月3日谁值班", rows("周次", "12月1日", "12月8日", "12月15日"), {1, 2}),
        ("12月3日谁值班", rows("日期", "12月1日", "12月2日"), set()),
        ("12月3日谁值班", rows("日期", "12月1日", "12月2日", "平日"), set()),
        ("who is on call on 2 January?", rows("Week of", "22 Dec", "29 Dec", "5 Jan"), {0, 2}),
        ("who is on call from 18 to 20 Nov?", WEEKS, set()),
        ("what is due before 30 April", rows("Date", "10 Apr", "20 Apr", "15 May"), set()),
        ("fee on 12 May 2026", rows("Valid from", "1 Jan", "1 Apr", "1 Jul"), set()),
        ("who is on call on 27 November?", rows("Week ending", "22 Nov", "29 Nov", "6 Dec"), set()),
        ("5月5日谁值班", rows("周", "5月1日至7日", "5月8日至14日", "5月15日至21日"), set()),
        ("12月3日谁值班", rows("日期", "2026-12-01", "2026-12-02", "2026年12月3日"), {0, 1}),
        ("2月30日谁值班", rows("日期", "2月1日", "2月2日", "2月3日"), {0, 1, 2}),
    ],
)
def test_rows_of_other_days_are_found(
    question: str, table: list[Statement], others: set[int]
) -> None:
    assert rows_of_other_days(question, table) == others
