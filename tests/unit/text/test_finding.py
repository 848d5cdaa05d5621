"""Finding terms gives the same as picking them from the whole analysis."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.text.characters.scripts import HAN
from portal.text.terms.analyser import analyse, index_terms, query_terms
from portal.text.terms.finding import find_terms
from portal.text.terms.highlight import highlight_spans, whole_words

TEXTS = [
    "The U.S. office sent an e-mail about PO-4711 and v0.8 to Luther’s heirs, happily running.",
    "知识门户把文档变成可以检索的知识；李小明在2024年写了知识管理手册。",
    "繁體中文的年假規定：滿一年者有 15 天（見第 3.2 節），詳見 HR-2024/07。",
    "C++ and C# cost 1,234.50 USD; -5 degrees, データ, 한국어, 🎉 at https://example.org/a_b?c=1.",
]
WORDS = [
    "e-mail", "email", "US", "PO-4711", "4711", "v0.8", "0.8", "luther", "happy", "runs", "知识",
    "李小明", "小明", "年假规定", "規定", "HR-2024", "C++", "1234", "1,234.50", "-5", "データ",
    "🎉", "example", "usd", "2024年",
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("word", WORDS)
def test_finds_every_token_of_the_analysis(text: str, word: str) -> None:
    terms = query_terms(word)
    picked = {token for token in analyse(text) if token.term in terms}
    found = set(find_terms(text, terms))
    assert picked <= found
    # Only Chinese gives more: a word is found even where the analysis segments it differently.
    assert all(re.fullmatch(f"[{HAN}]+", token.term) for token in found - picked)


@given(st.lists(st.sampled_from([*WORDS, *TEXTS]), max_size=6), st.sampled_from(WORDS))
def test_finds_every_token_in_any_text(parts: list[str], word: str) -> None:
    text, terms = " ".join(parts), query_terms(word)
    picked = {token for token in analyse(text) if token.term in terms}
    found = find_terms(text, terms)
    assert picked <= set(found)
    assert find_terms(text, terms, index_terms(text)) == found


def test_tokens_are_found_in_order_with_places_in_the_original() -> None:
    text = "ﬁnance 財務 FINANCE"
    found = find_terms(text, query_terms("finance 财务"))
    assert [text[token.start : token.end] for token in found] == ["ﬁnance", "財務", "FINANCE"]


def test_single_characters_are_found_where_they_are_words() -> None:
    text = "病假期间每年有假三天，年假另算。"
    found = find_terms(text, ("假", "年"))
    picked = [token for token in analyse(text) if token.term in {"假", "年"}]
    assert found == picked


def test_query_without_terms_finds_nothing() -> None:
    assert find_terms("anything", ()) == []


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
