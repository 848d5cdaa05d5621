"""Several documents that answer: which is quoted first, and how they are told apart."""

from __future__ import annotations

from dataclasses import replace

import pytest

from portal.answering.quoting.extractive import ExtractiveChatModel
from tests.unit.answering.quoting.answers import OddsReader, content_of, request
from tests.unit.answering.sources import source

OLD = source(1, "每天补助60元。", title="差旅制度2025")
NEW = source(2, "每天补助80元。", title="差旅制度2026")
ODDS = {"每天补助60元。": 6.0, "每天补助80元。": 5.8}


def answer(question: str, *sources: object) -> str:
    chat = ExtractiveChatModel(OddsReader(ODDS), this_year=lambda: 2026)
    return content_of(list(chat.stream(request(question, sources, "zh"))), sources)[0]


def test_newer_version_is_quoted_first_and_both_below_their_titles() -> None:
    content = answer("每天补助多少？", OLD, NEW)
    new, old = content.index("> **差旅制度2026**\n> 每天补助80元。"), content.index("2025")
    assert new < old
    assert "> **差旅制度2025**\n> 每天补助60元。" in content


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("会议纪要 20.12.2025", "会议纪要 15.01.2026"),
        ("会议纪要 15.01.2026", "会议纪要 03.02.2026"),
        ("差旅制度 v3 2025", "差旅制度 v1 2026"),
        ("2025-11 纪要", "2026-02 纪要"),
    ],
)
def test_newest_version_is_found_by_the_year_anywhere_in_the_title(older: str, newer: str) -> None:
    content = answer("每天补助多少？", replace(OLD, title=older), replace(NEW, title=newer))
    assert content.index("80元") < content.index("60元")


def test_documents_with_other_names_are_quoted_by_likelihood_below_their_titles() -> None:
    other = source(2, "每天补助80元。", title="展会指南2026")
    content = answer("每天补助多少？", OLD, other)
    assert content.index("60元") < content.index("80元")
    assert "> **差旅制度2025**\n> 每天补助60元。" in content
    assert "> **展会指南2026**\n> 每天补助80元。" in content
    assert "**" not in answer("每天补助多少？", OLD)


def test_question_about_last_year_is_answered_by_the_document_of_that_year() -> None:
    content = answer("去年每天补助多少？", OLD, NEW)
    assert "60元" in content
    assert "80元" not in content
    assert "80元" in answer("今年每天补助多少？", OLD, NEW)


def test_relative_year_without_a_document_is_unchanged() -> None:
    assert "60元" in answer("今年每天补助多少？", OLD)
