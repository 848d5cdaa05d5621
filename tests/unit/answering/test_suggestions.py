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
