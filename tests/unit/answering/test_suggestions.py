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


def test_people_are_asked_for_by_who() -> None:
    body, table = _table("Topic | Person | Channel", "Payroll | Irene Okafor | #pay")
    assert suggest("Onboarding", body, [], [table]) == ["Who is the person for Payroll?"]


def test_headings_are_quoted_as_they_stand() -> None:
    headings = [Heading(1, "Lab safety", 0), Heading(2, "Before you start", 12)]
    body = "Lab safety\n\nBefore you start\n\nWear goggles."
    assert suggest("lab_v2", body, headings, []) == [
        "What does “Lab safety” say about “Before you start”?"
    ], "the document calls itself so"


def test_headings_that_any_document_has_suggest_nothing() -> None:
    names = ("Introduction", "Requirement 1", "2.1 Scope", "第一章 总则", "Handbook", "第二章 年假")
    headings = [Heading(2, name, 0) for name in names]
    assert suggest("Handbook", "", headings, []) == ["《Handbook》对年假有什么规定？"]
    assert suggest("Purpose", "", [Heading(2, "Data model", 0)], []) == []


def test_terms_of_a_glossary_are_asked_for() -> None:
    lines = "- **Chunk**: A part of a text\n- Reciprocal Rank Fusion (RRF): An algorithm\n"
    assert suggest("Terms", lines, [], []) == [], "a glossary has more"
    assert suggest("Terms", f"{lines}混合检索：指两种检索的结合\nNote: mind the gap", [], []) == [
        "What does “Chunk” mean?",
        "What does “Reciprocal Rank Fusion” mean?",
        "“混合检索”是什么意思？",
    ]


def test_figures_are_asked_for_as_what_is_counted() -> None:
    body, table = _table(
        "Team | Days of leave | Status", "Sales | 25 | 5 days", "Crew | 30 | open", "2 to 5 | 9 | 1"
    )
    assert suggest("Leave", body, [], [table]) == [
        "How many days of leave for sales?",
        "What is the status of Crew?",
    ]
    body, table = _table(
        "城市 | 普通员工（元/晚） | 负责人", "一线城市 | 450 | 王芳", "省会 | 350 | 李强"
    )
    assert suggest("差旅", body, [Heading(2, "二、住宿标准", 0)], [table]) == [
        "一线城市普通员工的住宿标准是多少？",
        "省会的负责人是谁？",
        "《差旅》对住宿标准有什么规定？",
    ]


def test_a_text_of_empty_lines_is_read_in_linear_time() -> None:
    assert suggest("Empty", "\n" * 100_000, [], []) == []
