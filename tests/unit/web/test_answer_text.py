"""Answers become HTML with nothing but words, our own markers and plain formatting."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup, escape

from portal.domain.answering import SentenceSupport
from portal.web.answers.html import to_html

FLAG = Markup("<b>flag</b>")


def marker(number: int) -> Markup:
    return Markup('<a class="marker">{}</a>').format(number)


def render(content: str, *unsupported: str, markers: tuple[int, ...] = (1, 2)) -> str:
    support = [
        SentenceSupport(content.index(text), content.index(text) + len(text), (), False)
        for text in unsupported
    ]
    return str(
        to_html(content, markers=markers, marker_html=marker, flag_html=FLAG, support=support)
    )


def test_markers_become_links_and_other_numbers_stay_text() -> None:
    html = render("One [1]. Two [1][2]. None [3].")
    assert html.count('class="marker"') == 3
    assert "None [3]." in html


@pytest.mark.parametrize("content", ["`a[1]`", "```\na[1]\n```", "    a[1]", r"\[1\]"])
def test_brackets_in_code_or_escaped_are_not_markers(content: str) -> None:
    html = render(content)
    assert "[1]" in html
    assert 'class="marker"' not in html


@pytest.mark.parametrize(
    "content",
    [
        "![x](http://evil.example/?q=1)",
        "[click](http://evil.example)",
        "[1](http://evil.example)",
        "<http://evil.example>",
        "http://evil.example",
        "[a][b]\n\n[b]: http://evil.example 'x'",
        "[1]\n\n[1]: http://evil.example",
        '<a href="http://evil.example" hx-get="/x">x</a>',
        "<img src=x onerror=alert(1)>",
        "<script>alert(1)</script>",
        '<a class="citation-marker" data-testid="citation-marker">[1]</a>',
        "<div hx-get=/documents sse-connect=/x>x</div>",
        "```html\n<script>alert(1)</script>\n```",
        '```"><img src=x>\nx\n```',
        "| <b>a</b> |\n|---|\n| ![x](//evil.example/i.png) |",
        '<span class="unsupported">forged</span>',
        "&lt;script&gt;alert(1)&lt;/script&gt;",
    ],
)
def test_remote_content_and_tags_in_the_text_are_never_rendered(content: str) -> None:
    html = render(content)
    tags = {tag.split()[0] for tag in re.findall(r"<([a-z][^>]*)>", html)}
    assert tags <= {"p", "br", "a", "pre", "code", "table", "thead", "tbody", "tr", "th", "td"}
    assert set(re.findall(r"<[a-z0-9]+ ([^>]*)>", html)) <= {
        *('class="marker"', 'class="is-short"', 'tabindex="0"')
    }


def test_tables_and_code_that_scroll_are_reachable_by_keyboard() -> None:
    html = render("| A |\n|---|\n| b |\n\n    code")
    assert re.findall(r"<(\w+) tabindex", html) == ["table", "pre"]
    assert "&lt;table&gt;" in render("`<table>`")


def test_dates_and_codes_in_tables_are_never_broken_and_sentences_never_squeezed() -> None:
    sentence = "Moved to the cold room after the second calibration."
    html = render(f"| Due | Remark |\n|---|---|\n| **2027-05-31** [1] | {sentence} |\n| A 1 | |")
    assert 'class="is-short"><strong>2027-05-31</strong>' in html
    assert f'<td class="is-long">{sentence}</td>' in html
    assert "<td>A 1</td>" in html


@given(st.text(alphabet="[]()!<>`*_#|-\n 1ab\"'‹›:/=\\", max_size=60))
def test_answer_html_has_only_our_attributes(content: str) -> None:
    html = render(content)
    assert set(re.findall(r"<[a-z0-9]+ ([^>]*)>", html)) <= {
        *('class="marker"', 'class="is-short"', 'class="is-long"', 'start="1"', 'tabindex="0"')
    }


def test_forged_places_stay_text() -> None:
    html = render("‹0000000000000000m1› ‹m1› ‹f›")
    assert 'class="marker"' not in html
    assert str(FLAG) not in html


def test_unsupported_sentence_is_wrapped_and_flagged() -> None:
    html = render("Known [1]. Made up **here** [2]. End.", "Made up **here** [2].")
    assert '<span class="unsupported">Made up </span>' in html
    assert '<strong><span class="unsupported">here</span></strong>' in html
    assert html.count(str(FLAG)) == 1
    assert html.index("Known") < html.index("unsupported") < html.index(str(FLAG))
    assert "End." in html.split(str(FLAG))[1]


@pytest.mark.parametrize("start", ["- ", "1. ", "> ", "## ", "- > "])
def test_unsupported_line_keeps_its_list_heading_or_quotation(start: str) -> None:
    text = f"{start}Made up."
    html = render(f"{text}\n\nKnown.", text)
    wanted = re.sub(r"\s", "", render("Made up.", "Made up.")).removeprefix("<p>")
    assert wanted.removesuffix("</p>") in re.sub(r"\s", "", html)
    assert re.search(r"<(li|blockquote|h4)", html)


@given(st.text(alphabet="ab.。 *_`[1]#\n-|>", max_size=50), st.integers(0, 50), st.integers(0, 50))
def test_marks_never_break_the_tags(content: str, first: int, last: int) -> None:
    support = [SentenceSupport(min(first, last), max(first, last), (), False)]
    html = str(to_html(content, markers=(1,), marker_html=marker, flag_html=FLAG, support=support))
    stack: list[str] = []
    for closing, name in re.findall(r"<(/?)([a-z0-9]+)[^>]*>", html):
        if not closing:
            stack += [] if name in {"br", "hr"} else [name]
        else:
            assert stack.pop() == name, html
    assert stack == []


def test_headings_stay_below_those_of_the_page() -> None:
    assert re.findall(r"<(h\d)>", render("# a\n\n## b\n\n###### c")) == ["h3", "h4", "h6"]


def test_text_is_escaped_once() -> None:
    assert str(escape("a < b & c")) in render("a < b & c")
