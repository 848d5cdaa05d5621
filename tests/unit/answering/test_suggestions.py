"""Questions that are suggested from tables and headings."""

from __future__ import annotations

from portal.answering.suggestions import suggest
from portal.domain.documents import Heading
from portal.domain.documents.structure import Block, BlockKind


def _table(*lines: str) -> tuple[str, Block]:
    body = "\n".join(lines)
    header = tuple(lines[0].split(" | "))
    start = len(lines[0]) + 1
    return body, Block(BlockKind.TABLE, 0, len(body), body=start, header=header)


def test_rows_called_by_times_or_sentences_suggest_nothing() -> None:
    body, table = _table(
        "Time | Event", "09:40 | Outage", "Alert before any certificate expires | Lena"
    )
    assert suggest("Postmortem", body, [], [table]) == []
    body, table = _table("Plan | Price", "Starter | €19")
    assert suggest("Pricing", body, [], [table]) == ["What is the price of Starter?"]


def test_headings_are_quoted_as_they_stand() -> None:
    headings = [Heading(1, "Lab safety", 0), Heading(2, "Before you start", 12)]
    body = "Lab safety\n\nBefore you start\n\nWear goggles."
    assert suggest("Lab", body, headings, []) == ["What does “Lab” say about “Before you start”?"]


def test_figures_are_asked_for_as_what_is_counted() -> None:
    body, table = _table(
        "Years of service | Days of leave | Status", "Less than 2 | 25 | 5 days", "More | 30 | open"
    )
    assert suggest("Leave", body, [], [table]) == [
        "How many days of leave for less than 2?",
        "What is the status of More?",
    ]
    body, table = _table(
        "城市 | 普通员工（元/晚） | 负责人", "一线城市 | 450 | 王芳", "省会 | 350 | 李强"
    )
    assert suggest("差旅", body, [], [table]) == [
        "一线城市的普通员工是多少？",
        "省会的负责人是谁？",
    ]
