"""Questions that documents suggest."""

from __future__ import annotations

from portal.domain.documents import Heading
from portal.services.answers.suggested_questions import suggest


def test_questions_in_a_document_come_first() -> None:
    headings = [Heading(1, "Orbit", 0), Heading(2, "Billing", 12), Heading(2, "Can I cancel?", 40)]
    body = "Orbit\n\nBilling\n\nOnce a month.\n\nCan I cancel?\n\nAt any time."
    assert suggest("Orbit", body, headings) == [
        "Can I cancel?",
        "What does “Orbit” say about billing?",
    ]


def test_table_cells_suggest_no_questions() -> None:
    body = "Fire\n\nEmergency | Shanghai | London\nFire | 119 | 999"
    assert suggest("Safety", body, [Heading(1, "Safety", 0)]) == []


def test_headings_are_part_of_a_sentence() -> None:
    names = ("First aid", "API keys", "Deploying to Orbit", "Orbit")
    headings = [Heading(2, name, 0) for name in names]
    assert suggest("Guide", "Sign in to Orbit.", headings) == [
        "What does “Guide” say about first aid?",
        "What does “Guide” say about API keys?",
        "What does “Guide” say about deploying to Orbit?",
        "What does “Guide” say about Orbit?",
    ]
    assert suggest("Guide", "", [Heading(1, "5. What is not reimbursed", 0)] * 2) == []
    headings = [Heading(1, "Expenses", 0), Heading(1, "5. What is not reimbursed", 9)]
    assert suggest("Guide", "", headings) == ["What is not reimbursed?"]
    assert suggest("lab_v2", "", [Heading(1, "Lab", 0), Heading(2, "Gloves", 5)]) == [
        "What does “Lab” say about gloves?"
    ], "people do not say the name of a file"


def test_only_documents_with_rules_are_asked_for_rules() -> None:
    headings = [Heading(2, "第二章 年假", 0)]
    assert suggest("员工手册", "", headings) == ["《员工手册》对年假有什么规定？"]
    assert suggest("周报", "", headings) == ["《周报》里关于年假是怎么说的？"]
    assert suggest("指南", "", [Heading(2, "如何请假", 0)]) == ["如何请假？"]


def test_headings_that_say_little_suggest_nothing() -> None:
    names = [
        "Introduction",
        "Requirement 1",
        "2.1 Scope",
        "第一章 总则",
        "2.2 其他假期",
        "Handbook",
    ]
    names += ["Before you start", "Storage: limits", "Why we chose to write all of it anew"]
    assert suggest("Handbook", "", [Heading(2, name, 0) for name in names]) == []


def test_terms_of_a_glossary_suggest_questions() -> None:
    lines = "- **Chunk**: A part of a text\n- Reciprocal Rank Fusion (RRF): An algorithm\n"
    assert suggest("Terms", lines, []) == [], "a glossary has more"
    body = f"{lines}混合检索：指两种检索的结合\nNote: mind the gap"
    assert suggest("Terms", body, []) == [
        "What does “Chunk” mean?",
        "What does “Reciprocal Rank Fusion” mean?",
        "“混合检索”是什么意思？",
    ]
    assert suggest("Notes", body, []) == [], "such lines are often no definitions"


def test_a_text_of_empty_lines_is_read_in_linear_time() -> None:
    assert suggest("Empty", "\n" * 100_000, []) == []
