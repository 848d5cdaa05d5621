"""Operators of a query, evaluated by the database."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from portal.store.search.filters.narrowing import narrowing, pattern
from portal.text.terms.query_syntax import parse_query
from tests.conftest import Portal

LIBRARY = {
    "年假规定.txt": "员工每年有十五天带薪\n年假。病假需要医生证明。",
    "機器學習入門.md": "# 導論\n\n機器學習是人工智慧的一支，乾淨的資料很重要。",
    "handbook.md": "# Front Desk\n\nThe office closes at six. Guests sign in at the\nfront desk.",
    "Ordering parts.txt": "Order PO-4711 needs ＡＢＣ version v0: a well-known café’s 5% off_now.",
    "new-desk_v2.en.html": "<p>Nothing</p>",
    "规则-草稿.html": "<p>Nothing at all</p>",
    "drafts.txt": "A first draft of learning goals. The draft was first written by machine. 🍜",
}


@pytest.fixture
def library(portal: Portal) -> Portal:
    for name, content in LIBRARY.items():
        portal.add(content, name=name, domain="office" if "hand" in name else None)
    return portal


def found(portal: Portal, question: str, domain: str | None = None) -> set[str]:
    narrowed = narrowing(parse_query(question), domain=domain)
    statement = f"""
        SELECT d.title FROM document_chunks c JOIN documents d ON d.current_job_id = c.job_id
        WHERE TRUE {narrowed.documents} {narrowed.chunks}
    """
    return {title.split()[0] for title in portal.scalars(statement, **narrowed.binds)}


ALL = {"年假规定", "機器學習入門", "handbook", "Ordering", "drafts"}
ALL |= {"new-desk_v2.en", "规则-草稿"}


CASES = {
    "anything": ALL,
    # Phrases: order matters; inflection, script, case, width and line breaks do not.
    '"front desk"': {"handbook"},
    '"FRONT  DESK"': {"handbook"},
    '"desk front"': set(),
    '"sign in at the front desk"': {"handbook"},
    '"office close"': set(),
    '"带薪年假"': {"年假规定"},
    "「帶薪年假」": {"年假规定"},
    "“机器学习”": {"機器學習入門"},
    "“機器學習是人工”": {"機器學習入門"},
    "“乾净”": {"機器學習入門"},
    "“干净”": {"機器學習入門"},
    "“学习机器”": set(),
    '"abc version"': {"Ordering"},
    '"a well-known cafe\'s"': {"Ordering"},
    '"order po-4711"': {"Ordering"},
    '"O-4711"': set(),
    '"5% off_now"': {"Ordering"},
    '"front" "sign in"': {"handbook"},
    '"🍜"': {"drafts"},
    '"🍣"': set(),
    "x -🍜": ALL - {"drafts"},
    '"front" "draft"': set(),
    # Exclusion applies to every form of a word, and to headings and titles.
    "x -office": ALL - {"handbook"},
    "x -guest": ALL - {"handbook"},
    "x -机器学习": ALL - {"機器學習入門"},
    "x -機器學習": ALL - {"機器學習入門"},
    "x -年假": ALL - {"年假规定"},
    "x -PO-4711": ALL - {"Ordering"},
    "x -PO-4712": ALL,
    'x -"first draft"': ALL - {"drafts"},
    'x -"draft first"': ALL,
    "x -draft -office": ALL - {"drafts", "handbook"},
    # Titles match in any part and in either script.
    "title:机器": {"機器學習入門"},
    "title:規定": {"年假规定"},
    "title:HAND": {"handbook"},
    'title:"ordering  PARTS" x': {"Ordering"},
    "title:% x": ALL,  # Punctuation alone does not filter.
    "title:hand title:book": {"handbook"},
    "title:hand title:parts": set(),
    # Titles are file names, so any separator may stand between words.
    'title:"new desk"': {"new-desk_v2.en"},
    "title:new_desk": {"new-desk_v2.en"},
    "title:NEW－DESK.V2": {"new-desk_v2.en"},
    "title:desk-v2-en": {"new-desk_v2.en"},
    "title:newdesk x": set(),
    "title:规则草稿": {"规则-草稿"},
    'title:"規則 草稿"': {"规则-草稿"},
    '"a" x': {"Ordering", "drafts"},
    '"bc"': set(),
    "type:txt": {"年假规定", "Ordering", "drafts"},
    "type:txt type:md type:html": ALL,
    "type:pdf": set(),
    "type:md title:hand -draft “front”": {"handbook"},
}


def test_operators_narrow_what_may_be_found(library: Portal) -> None:
    assert {question: found(library, question) for question in CASES} == CASES


def test_domain_narrows_too(library: Portal) -> None:
    assert found(library, "x", domain="office") == {"handbook"}
    assert found(library, "x", domain="lab") == set()


def test_regular_expression_characters_are_literal(portal: Portal) -> None:
    query = text("SELECT CAST(:haystack AS text) ~ :pattern")
    with portal.services.database.begin() as session:
        for operand in (
            "(",
            "a.*",
            "[x]",
            "\\",
            "^$",
            "a{2}",
            "𠮷🎉",
            "a|b",
            "]-[^a",
            "*",
            "?",
            "%",
        ):
            for haystack in (f"x {operand} z", "xyz"):
                binds = {"haystack": haystack, "pattern": pattern(f"{operand} z")}
                assert session.scalar(query, binds) is (haystack != "xyz"), operand


def test_longest_operands_are_still_fast_enough(library: Portal) -> None:
    phrase = "年假学习机器人工" * 25
    found(library, " ".join(f'"{phrase[n:]}"' for n in range(16)))
