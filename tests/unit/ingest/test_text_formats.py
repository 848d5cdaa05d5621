from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from portal.domain.documents import ExtractedText, MediaType
from portal.errors import EmptyFile, ExtractionTimedOut, ExtractionTooLarge, UndecodableText
from portal.ingest.extraction import extract
from portal.ingest.formats import markdown as markdown_format
from portal.ingest.limits import ExtractionLimits, FileToRead
from tests.factories import files


def read_text(path: Path, encoding: str | None = None) -> ExtractedText:
    return extract(FileToRead(path, path.name, encoding=encoding), MediaType.TEXT)


def read_markdown(tmp_path: Path, source: str, **limits: float) -> ExtractedText:
    path = files.write_text(tmp_path / "a.md", source)
    file = FileToRead(path, "a.md", ExtractionLimits(**limits))  # type: ignore[arg-type]
    return extract(file, MediaType.MARKDOWN)


@pytest.mark.parametrize(
    ("make", "encoding", "text"),
    [
        (files.gb18030_text, "gb18030", files.SIMPLIFIED_TEXT),
        (files.big5_text, "big5", files.TRADITIONAL_TEXT),
        (files.utf_16_text, "utf-16", files.SIMPLIFIED_TEXT),
    ],
)
def test_text_is_read_whole_with_its_encoding(
    tmp_path: Path, make, encoding: str, text: str
) -> None:
    extracted = read_text(make(tmp_path / "a.txt"))
    assert (extracted.text, extracted.encoding) == (text, encoding)


def test_line_endings_are_normalised(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("一\r\n二\r三\u2028四\n".encode())
    assert read_text(path, encoding="utf-8").text == "一\n二\n三\n四\n"


@pytest.mark.parametrize("media_type", [MediaType.TEXT, MediaType.MARKDOWN, MediaType.HTML])
def test_nul_is_shown_in_the_text_and_counted(tmp_path: Path, media_type: MediaType) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"<p>" + b"Words of the report. " * 20 + b"dam\0aged, twi\0ce</p>")
    extracted = extract(FileToRead(path, "a"), media_type)
    assert extracted.text.endswith(("dam\ufffdaged, twi\ufffdce", "twi\ufffdce</p>"))
    assert extracted.encoding == "utf-8"
    assert extracted.warnings == ("U+0000 (NUL), shown as “�” in the text: 2",)


def test_encoding_can_be_chosen(tmp_path: Path) -> None:
    path = files.gb18030_text(tmp_path / "a.txt")
    assert read_text(path, encoding="gb18030").text == files.SIMPLIFIED_TEXT
    with pytest.raises(UndecodableText):
        read_text(path, encoding="utf-8")


@pytest.mark.parametrize("content", ["", " \n\t\n", "\ufeff"])
def test_text_without_words_is_empty(tmp_path: Path, content: str) -> None:
    with pytest.raises(EmptyFile):
        read_text(files.write_text(tmp_path / "a.txt", content))


def test_too_many_characters_are_refused(tmp_path: Path) -> None:
    path = files.write_text(tmp_path / "a.txt", "word " * 100)
    with pytest.raises(ExtractionTooLarge, match="characters"):
        extract(FileToRead(path, "a.txt", ExtractionLimits(max_characters=100)), MediaType.TEXT)


def test_markdown_reads_like_the_rendered_page(tmp_path: Path) -> None:
    extracted = read_markdown(tmp_path, files.ENGLISH_MARKDOWN)
    assert "**" not in extracted.text
    assert "opened in 2019" in extracted.text
    assert "yearly report (https://example.com/report) for details" in extracted.text
    assert "1. Clean the panels every spring.\n2. Check the inverters" in extracted.text
    assert "part | interval\nfan | 6 months" in extracted.text
    assert 'print("hello")' in extracted.text


def test_markdown_headings_have_levels_and_places(tmp_path: Path) -> None:
    extracted = read_markdown(tmp_path, "# 一\n\ntext\n\nTwo\n---\n\n### `three` *x*\n")
    assert [(h.level, h.title) for h in extracted.headings] == [
        (1, "一"),
        (2, "Two"),
        (3, "three x"),
    ]
    for heading in extracted.headings:
        assert extracted.text.startswith(heading.title, heading.start)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ('---\ntitle: "Plan"\n---\n\nBody', "Plan\n\nBody"),
        (
            "- one\n  - two\n    More\n- three\n\n  para",
            "- one\n  - two\n    More\n- three\n  para",
        ),
        ("- 8:00 to 19:00\nevery day\n- free", "- 8:00 to 19:00 every day\n- free"),
        ("- Free of charge.\nAsk the desk.", "- Free of charge.\n\nAsk the desk."),
        ("> quoted\n> words", "quoted words"),
        ("- [ ] order\n- [x] sign", "- ☐ order\n- ☑ sign"),
        ("a ![the map](map.png) b", "a the map b"),
        ("a <b>bold</b> &amp; c<br>d", "a bold & c\nd"),
        ("<!-- note -->\n\n<div>shown</div>\n\n<script>run()</script>", "shown"),
        ("[ref][1]\n\n[1]: https://example.com/x", "ref (https://example.com/x)"),
        ("[local](other.md)", "local"),
        ("写信到<mailto:desk@example.org>邮箱", "写信到desk@example.org邮箱"),
        ("    indented code", "indented code"),
        ("snake_case_name and 2 * 3 * 4", "snake_case_name and 2 * 3 * 4"),
        ("<!-- only this -->", "<!-- only this -->"),
    ],
)
def test_markdown_is_read_as_plain_text(tmp_path: Path, source: str, text: str) -> None:
    assert read_markdown(tmp_path, source).text == text


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ('See [the page]({% page "a/b" %}).', "See the page."),
        ('[薪水]({{ site.url }}/{{ page.lang }}/a.html){:target="_blank"}', "薪水"),
        ("[docs](https://a.org/{{ page }}/x)", "docs"),
        ("[ref]\n\n[ref]: {{ site.url }}/a", "ref"),
        ('Ask {% slack_channel "travel" %} now', "Ask travel now"),
        ('a {% image "_img/1.png" "the map" %} b', "a the map b"),
        ('{% include "alert.html" level="info" %}\n{% alert %}\nCall\n{% endalert %}', "Call"),
        ("Plan{% comment %}TODO link{% endcomment %} it", "Plan it"),
        ("{{< hint info >}}\nwords\n{{< /hint >}}", "words"),
        ("Dear {{ name }}, 100 {%}", "Dear {{ name }}, 100 {%}"),
        ("`{% raw %}` and `[a]({% b %})`", "{% raw %} and [a]({% b %})"),
        ("# Title {#top .big}\n\nthe set {#a} of", "Title\n\nthe set {#a} of"),
        ("![map](a.png){width=300} is f(x){y}", "map is f(x){y}"),
        ('<p>Channel {% slack_channel "dc" %}</p>', "Channel dc"),
        (
            '!!! warning "注意"\n    超过 4 天\n\n    - one\n\nafter',
            "注意\n\n超过 4 天\n\n- one\n\nafter",
        ),
        ("- item\n\n    ??? note\n        hidden\n- next", "- item\n  hidden\n- next"),
        (
            '=== "中文"\n\n    本论文\n\n=== "英文"\n\n    This paper',
            "中文\n\n本论文\n\n英文\n\nThis paper",
        ),
        ("!!! wow\nplain\n===\n\ncode", "!!! wow plain\n\ncode"),
        (
            "::: tip 温馨提示\n发票丢失\n:::\nafter\n:::note[Read]\n:::",
            "温馨提示\n\n发票丢失\n\nafter\n\nRead",
        ),
        ("::: {.callout-note}\n## Head\n:::", "Head"),
        ("```\n!!! note\n    {% a %}\n:::\n```", "!!! note\n    {% a %}\n:::"),
        ("> [!NOTE]\n> words", "words"),
    ],
)
def test_syntax_of_site_generators_is_left_out(tmp_path: Path, source: str, text: str) -> None:
    assert read_markdown(tmp_path, source).text == text


def test_title_of_front_matter_is_a_heading_and_keys_of_a_generator_are_left_out(
    tmp_path: Path,
) -> None:
    front = "---\ntitle: Leave\nowner: Anna\nredirect_from:\n  - /leave/\nnext_review: 2027\n---\n"
    read = read_markdown(tmp_path, front + "Ask first.\n\n## Sick leave\n\nCall.")
    assert read.text == (
        "Leave\n\nowner: Anna\nnext_review: 2027\n\nAsk first.\n\nSick leave\n\nCall."
    )
    assert [(one.level, one.title) for one in read.headings] == [(1, "Leave"), (2, "Sick leave")]
    # A page that begins with its title shows it once.
    assert (
        read_markdown(tmp_path, "---\ntitle: leave\n---\n# Leave :100:\n\nCall.").text
        == "Leave :100:\n\nCall."
    )


@pytest.mark.parametrize(
    ("front", "text"),
    [
        ("title: >\n  Leave of\n  absence\nlayout: page", "title: >\n  Leave of\n  absence"),
        ('title: "Leave" # draft', 'title: "Leave" # draft'),
        ("aliases: [PTO]\nweight: 30 kg\nhead: Dr. Li\ncomments: Call first",
         "aliases: [PTO]\nweight: 30 kg\nhead: Dr. Li\ncomments: Call first"),
        ("aliases:\n- /pto/\n- /off/\nweight: 30\nhead:\n  - script\ncomments: false\ntitle:", ""),
        ("Next: call Anna", "Next: call Anna"),
    ],
)  # fmt: skip
def test_front_matter_written_for_readers_is_kept(tmp_path: Path, front: str, text: str) -> None:
    assert read_markdown(tmp_path, f"---\n{front}\n---\nCall.").text == f"{text}\n\nCall.".lstrip()


@pytest.mark.parametrize(
    "source",
    [
        "<pre>\nx = {:a => 1}\ny = {: b}\n</pre>",
        "{:ok, value} and {:a => 1} and the slice {: 1}",
        "$\\sqrt[3]{x=2}$",
    ],
)
def test_code_and_formulas_are_not_syntax_of_site_generators(tmp_path: Path, source: str) -> None:
    shown = source.removeprefix("<pre>\n").removesuffix("\n</pre>")
    assert read_markdown(tmp_path, source).text == shown


@pytest.mark.parametrize(
    "source",
    [
        "> " * 300 + "deep",
        "".join("  " * depth + "- deep\n" for depth in range(200)),
        "[" * 30_000 + "deep",
        "**deep " * 5_000,
        "deep\n" + "|a" * 2_000 + "\n" + "|-" * 2_000,
        "".join("    " * depth + "!!! note\n" for depth in range(60)) + "    " * 60 + "deep",
        "{% deep " * 10_000,
    ],
)
def test_hostile_markdown_loses_nothing_in_bounded_time(tmp_path: Path, source: str) -> None:
    assert "deep" in read_markdown(tmp_path, source).text


@pytest.mark.parametrize(
    "source", [files.ENGLISH_MARKDOWN, "> " * 300 + "deep", "---\n---\n<!-- x"]
)
def test_long_markdown_is_read_in_a_process_with_the_same_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    short = read_markdown(tmp_path, source)
    monkeypatch.setattr(markdown_format, "_SHORT", 0)
    assert read_markdown(tmp_path, source) == short
    assert [path.name for path in tmp_path.iterdir()] == ["a.md"]


@pytest.mark.parametrize(
    ("limits", "error", "words"),
    [
        ({"memory_mb": 64}, ExtractionTooLarge, "64 MB"),
        ({"max_characters": 20_000}, ExtractionTooLarge, "characters"),
        ({"timeout_s": 0.2}, ExtractionTimedOut, "0.2"),
    ],
)
def test_limits_apply_while_long_markdown_is_parsed(
    tmp_path: Path, limits: dict[str, float], error: type[Exception], words: str
) -> None:
    items = 10_000 if "max_characters" in limits else 50_000
    with pytest.raises(error, match=words):
        read_markdown(tmp_path, "- a\n" * items, **limits)


def test_front_matter_without_an_end_is_searched_once(tmp_path: Path) -> None:
    """A backtracking pattern would take a hundred bytes of memory for each line."""
    source = "---\n" + "\n" * 2_000_000 + "words"
    tracemalloc.start()
    try:
        assert markdown_format._parted(source) == ("", source)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_unknown_tags_are_text(tmp_path: Path) -> None:
    for source, text in (
        ("Use vector<int> or Map<String, List<T>>, not </T>.",) * 2,
        ("A <b>bold</b> word, a <my-box x='1'>box</my-box>.", "A bold word, a box."),
        ("<div>\nKept <name> here\n</div>", "Kept <name> here"),
    ):
        assert read_markdown(tmp_path, source).text == text
