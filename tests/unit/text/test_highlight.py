"""Highlights of whole words."""

from __future__ import annotations

import pytest

from portal.text.terms.analyser import query_terms
from portal.text.terms.highlight import highlight_spans, whole_words


@pytest.mark.parametrize(
    ("query", "text", "marked"),
    [
        ("年假有几天", "2024年起，年假为五天。明年再休年假。", ["年假", "年假"]),
        ("年假", "每年一次，假期三天。", []),
        ("茶", "茶 很好。", ["茶"]),
        ("annual leave", "Annual leave is left.", ["Annual", "leave"]),
        ("离心机 转速", "离心机的转速", ["离心机", "转速"]),
    ],
)
def test_only_whole_words_are_marked(query: str, text: str, marked: list[str]) -> None:
    spans = highlight_spans(text, query_terms(query))
    assert [text[start:end] for start, end in whole_words(text, spans, query)] == marked
