from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.domain.documents import MediaType
from portal.text.characters.folding import spellings
from portal.text.terms.query_syntax import MAX_OPERATORS, ParsedQuery, parse_query, respell

ORDINARY = [
    "",
    "   ",
    "年假有几天？",
    "What is C++?",
    "a - b",
    "- item",
    "e-mail and well-known things",
    "人工智能-医疗",
    "-5 degrees",
    "-€5 a day",
    "rm -- now",
    "--",
    "'; DROP TABLE documents; --",
    '<a href="x.html">title</a>',
    '{"a":1}',
    'a 5" disk and a 3" one',
    'an "unbalanced quote',
    "「沒有關",
    '""',
    '"?!"',
    "don't use 'single' quotes",
    "https://title:8080/type:pdf",
    "title: a word",
    "title:",
    "title:?!",
    'title:"never closed',
    "type:exe",
    "type:xlſx",
    "type:pdf,md",
    "subtitle:one",
    "what -",
    "–dash",
    '"' + "long " * 50 + '"',
]
signs = [*'"“”「」『』＂-－:：,?', " ", "\u3000", "\n"]
pieces = [*signs, "title:", "标题：", "type:pdf", "类型:", "a", "b-c", "年假", "-5"]
any_question = st.text() | st.lists(st.sampled_from(pieces)).map("".join)


@pytest.mark.parametrize("question", ORDINARY)
def test_ordinary_query_is_unchanged(question: str) -> None:
    assert parse_query(question) == ParsedQuery(question)
    assert not parse_query(question).has_filters


@pytest.mark.parametrize(
    ("question", "parsed"),
    [
        ('"annual leave" policy', ParsedQuery("annual leave policy", ("annual leave",))),
        ("「年假」有几天", ParsedQuery("年假有几天", ("年假",))),
        ("『年假』", ParsedQuery("年假", ("年假",))),
        ("什么是“机器学习”？", ParsedQuery("什么是机器学习？", ("机器学习",))),
        ('什么是"机器学习"？', ParsedQuery("什么是机器学习？", ("机器学习",))),
        ("＂full width＂ x", ParsedQuery("full width x", ("full width",))),
        ('"a" and "b", "a"', ParsedQuery("a and b, a", ("a", "b"))),
        ("budget -draft", ParsedQuery("budget", excluded=("draft",))),
        ("预算 －草稿 2024", ParsedQuery("预算 2024", excluded=("草稿",))),
        ("-PO-4711 order -v0.8,", ParsedQuery("order", excluded=("PO-4711", "v0.8"))),
        ('plan -"first draft", now', ParsedQuery("plan, now", excluded=("first draft",))),
        ("计划 -「初稿」", ParsedQuery("计划", excluded=("初稿",))),
        ("-draft", ParsedQuery("", excluded=("draft",))),
        ("title:budget leave", ParsedQuery("leave", titles=("budget",))),
        ("标题：年度报告 预算", ParsedQuery("预算", titles=("年度报告",))),
        ("標題:「年度 報告」 預算", ParsedQuery("預算", titles=("年度 報告",))),
        ('Title:"annual report" x', ParsedQuery("x", titles=("annual report",))),
        ("title:budget", ParsedQuery("budget", titles=("budget",))),
        ('"🍜"', ParsedQuery("🍜", ("🍜",))),
        ("-🍜 lunch", ParsedQuery("lunch", excluded=("🍜",))),
        ('lunch -"🍜 🍣" title:🍱', ParsedQuery("lunch", excluded=("🍜 🍣",), titles=("🍱",))),
        ("disk type:jpg", ParsedQuery("disk", media_types=(MediaType.JPEG,))),
        ("disk type:tif", ParsedQuery("disk", media_types=(MediaType.TIFF,))),
        ("TYPE:PDF 年假", ParsedQuery("年假", media_types=(MediaType.PDF,))),
        (
            "类型：txt a 類型:markdown",
            ParsedQuery("a", media_types=(MediaType.TEXT, MediaType.MARKDOWN)),
        ),
    ],
)
def test_operators_are_separated_from_the_query_text(question: str, parsed: ParsedQuery) -> None:
    assert parse_query(question) == parsed
    assert parsed.has_filters


def test_pasted_text_full_of_operators_stays_mostly_text() -> None:
    parsed = parse_query(" ".join(f"-word{chr(97 + n)}" for n in range(MAX_OPERATORS + 4)))
    assert len(parsed.excluded) == MAX_OPERATORS
    assert len(parsed.text.split()) == 4


@given(any_question)
def test_parsing_never_fails_and_invents_nothing(question: str) -> None:
    parsed = parse_query(question)
    rest = iter(question)
    assert all(character in rest for character in re.sub(r"\s", "", parsed.text))
    for operand in (*parsed.phrases, *parsed.excluded, *parsed.titles):
        assert operand in question


@given(any_question)
def test_query_without_operators_is_unchanged(question: str) -> None:
    parsed = parse_query(question)
    if not parsed.has_filters:
        assert parsed.text == question


def test_respelling_corrects_titles_by_their_own_words() -> None:
    question = 'machne title:"machne title" 标题：机器血习 -machne'
    assert respell(question, [], [("machne", "machine"), ("血习", "学习")]) == (
        'machne title:"machine title" 标题：机器学习 -machne'
    )
    assert respell("title:titel", [], [("titel", "title")]) == "title:title"


def test_respelling_leaves_operators_alone() -> None:
    question = 'machne "lerning rate" title:machne -lerning machnes 机器血习吗'
    replaced = [("machne", "machine"), ("lerning", "learning"), ("血习", "学习")]
    assert respell(question, replaced) == (
        'machine "learning rate" title:machne -lerning machnes 机器学习吗'
    )
    assert respell(question, []) == question


@pytest.mark.parametrize("alike", ["学學", "里裡裏", "着著", "云雲", "aAÁａ", "'’", "-–－", "5５"])
def test_spellings_are_symmetric(alike: str) -> None:
    for character in alike:
        assert set(alike) <= set(spellings(character))


def test_character_without_variants_has_only_its_own_spelling() -> None:
    assert [spellings(c) for c in "𠮷\n🎉"] == ["𠮷", "\n", "🎉"]
