from __future__ import annotations

import io
import tempfile
from pathlib import Path

import pytest

from portal.domain.documents import ExtractedText, MediaType
from portal.domain.documents.structure import BlockKind
from portal.errors import EmptyFile, ExtractionTooLarge
from portal.ingest.chunking import split
from portal.ingest.extraction import extract
from portal.ingest.formats import html as html_format
from portal.ingest.formats.html import _decoded
from portal.ingest.formats.texts.html_text import HtmlText
from portal.ingest.limits import ExtractionLimits, FileToRead
from portal.ingest.readers import html_reader
from tests.factories import files


def read(
    tmp_path: Path, html: str | bytes, encoding: str | None = None, **limits: float
) -> ExtractedText:
    path = tmp_path / "page.html"
    path.write_bytes(html.encode() if isinstance(html, str) else html)
    file = FileToRead(path, path.name, ExtractionLimits(**limits), encoding)  # type: ignore[arg-type]
    return extract(file, MediaType.HTML)


def test_page_reads_as_a_browser_shows_it(tmp_path: Path) -> None:
    extracted = read(tmp_path, files.WEB_PAGE)
    assert extracted.text == files.WEB_PAGE_TEXT
    assert extracted.encoding == "utf-8"
    assert [(h.level, h.title) for h in extracted.headings] == [
        (1, "值班手册"),
        (2, "Steps"),
        (3, "Side"),
    ]
    for heading in extracted.headings:
        assert extracted.text.startswith(heading.title, heading.start)


@pytest.mark.parametrize(
    ("html", "encoding"),
    [
        ('<meta charset="GB2312"><p>镕基先生在上海。'.encode("gb18030"), "gb18030"),
        ('<meta http-equiv="Content-Type" content="text/html; charset=big5"><p>台灣'.encode("big5"),
         "big5hkscs"),
        ('<?xml version="1.0" encoding="Shift_JIS"?><html><p>日本語'.encode("cp932"), "cp932"),
        ("<meta charset=iso-8859-1><p>Gr\u00f6\u00dfe \u20ac".encode("cp1252"), "cp1252"),
        # The declared encoding cannot be right, or is none, so the bytes decide.
        ('<meta charset="gb2312"><p>值班手册从这里开始'.encode(), "utf-8"),
        ('<meta charset="utf-16"><p>值班手册'.encode(), "utf-8"),
        ('<meta charset="base64"><p>值班手册'.encode(), "utf-8"),
        ('<meta charset="unicode_escape"><p>值班手册'.encode(), "utf-8"),
        ('<meta charset="gbk"><p>值班手册'.encode("utf-8-sig"), "utf-8"),
        (("<p>" + files.SIMPLIFIED_TEXT).encode("gb18030"), "gb18030"),
        (f"<html><p>{files.SIMPLIFIED_TEXT}".encode("utf-16"), "utf-16"),
    ],
)  # fmt: skip
def test_encoding_is_decided_by_mark_then_declaration_then_bytes(
    html: bytes, encoding: str
) -> None:
    decoded = _decoded(html, "a.html", None)
    assert decoded.encoding.removesuffix("-sig") == encoding
    assert decoded.text == html.decode(decoded.encoding)
    assert "�" not in decoded.text


def test_chosen_encoding_overrides_the_declared_one(tmp_path: Path) -> None:
    html = '<meta charset="cp1252"><p>值班手册'.encode("gb18030")
    assert "值班手册" not in read(tmp_path, html).text
    assert read(tmp_path, html, "gb18030").text == "值班手册"


@pytest.mark.parametrize(
    "html",
    [
        "<ul><li>a</ul>" * 2 + "</ul></table></pre></h1></a>",
        "<li>item without a list<td>cell<tr>row</table><h1>",
        "<table><tr><td><pre>x</table></pre>" + "<a href=x><h1><li><table>" * 50,
        "<svg><style><p>x</svg><math><mi>y</math>text",
        "<frameset><frame src=x></frameset>x<plaintext>rest</p>",
    ],
)
def test_malformed_markup_keeps_its_words(html: str) -> None:
    page = io.BytesIO(("words before " + html + "<p>and words behind").encode())
    _, *records = html_reader.read(page, characters=1_000, events=1_000)
    writer = HtmlText()
    writer.add_events([event for record in records for event in record["events"]])
    assert writer.readable.text().startswith("words before")
    assert "and words behind" in writer.readable.text()


def test_page_without_visible_text_is_an_empty_file(tmp_path: Path) -> None:
    with pytest.raises(EmptyFile):
        read(tmp_path, "<title>only a title</title><script>x()</script><p hidden>y")


def test_invisible_text_is_read_if_it_is_much_of_the_page(tmp_path: Path) -> None:
    """WeChat's pages are invisible until a script has run."""
    style = 'style="visibility: hidden; opacity: 0;"'
    page = f"<h1>通知</h1><div id=js_content {style}>本周五停水，请提前储水。</div>"
    assert read(tmp_path, page).text == "通知\n\n本周五停水，请提前储水。"
    page = f"<p>本周五停水，请提前储水。</p><div {style}>分享</div>"
    assert read(tmp_path, page).text == "本周五停水，请提前储水。"


def test_navigation_around_the_content_of_a_page_is_removed(tmp_path: Path) -> None:
    page = """<a href="#body">Skip to content</a><header><p>Brand<ul><li>Products</ul></header>
    <div role="navigation">Next</div><div class="toc"><a href="p.html#rest">1 Rest</a></div>
    <p>Outside<main><nav>Here</nav><h1>Leave<a class="headerlink" href="#rest">¶</a></h1>
    <aside>A remark</aside><p>Ten days.<span class="sr-only">icon</span>
    <pre>x = 1<button>copy</button></pre></main><footer>© Brand</footer>"""
    extracted = read(tmp_path, page)
    assert extracted.text == "Outside\n\nLeave\n\nA remark\n\nTen days.\n\nx = 1"
    assert [heading.title for heading in extracted.headings] == ["Leave"]


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<nav><h1>Index</h1><a href='a.html'>Leave</a></nav>", "Index\n\nLeave"),
        ("<header><h1>Leave</h1></header><main>Ten days.</main>", "Leave\n\nTen days."),
        ("<header>Leave</header><p>Ten days.<footer>Desk</footer>", "Leave\n\nTen days.\n\nDesk"),
        ("<div class='toc'><a href='leave.html'>Leave</a></div>Handbook", "Leave\n\nHandbook"),
    ],
)
def test_words_that_may_be_content_are_kept(tmp_path: Path, page: str, text: str) -> None:
    assert read(tmp_path, page).text == text


def test_formulas_and_powers_read_as_they_look(tmp_path: Path) -> None:
    formula = """10<sup>6</sup> m<sup>2</sup>, see<sup><a href="#n">1</a></sup>:
    <span><math><semantics><mi>E</mi><annotation>E</annotation></semantics></math></span>
    <span aria-hidden="true">E</span>"""
    assert read(tmp_path, formula).text == "10⁶ m², see[1]: E"


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<ol start=5><li>a<li>b</ol>", "5. a\n6. b"),
        ("<ol start=-1><li>a<li>b<li>c</ol>", "-1. a\n0. b\n1. c"),
        ("<ol><li>a<li value=7>b<li>c</ol>", "1. a\n7. b\n8. c"),
        ("<ol type=a start=26><li>a<li>b</ol>", "z. a\naa. b"),
        ("<ol type=A><li>a<li type=1>b</ol>", "A. a\n2. b"),
        ("<ol type=i start=3><li>a<li>b</ol>", "iii. a\niv. b"),
        ("<ol type=I start=9999><li>a</ol>", "9999. a"),
        ('<ol style="list-style-type: upper-roman"><li>a<li>b</ol>', "I. a\nII. b"),
        ("<ol reversed><li>a<li>b<ol><li>x</ol></ol>", "2. a\n1. b\n  1. x"),
        ("<ol reversed start=9><li>a<ul><li>x</ul><li>b</ol>", "9. a\n  - x\n8. b"),
        ("<ol start=99999999><li>a</ol><ol start=x type=zz><li>b</ol>",
         "1. a\n\n1. b"),
    ],
)  # fmt: skip
def test_items_keep_the_labels_that_a_browser_shows(tmp_path: Path, html: str, text: str) -> None:
    extracted = read(tmp_path, html)
    assert extracted.text == text
    assert {block.kind for block in extracted.blocks} == {BlockKind.ITEM}


def test_terms_are_items_with_their_definitions(tmp_path: Path) -> None:
    extracted = read(tmp_path, "<dl><dt>Leave<dd>Ten days.<dd>Paid.<dt>Desk<dd>Room 4.</dl><p>End")
    assert extracted.text == "Leave\n  Ten days.\n  Paid.\nDesk\n  Room 4.\n\nEnd"
    items = [extracted.text[block.start : block.end] for block in extracted.blocks]
    assert items == ["Leave\n  Ten days.\n  Paid.", "Desk\n  Room 4."]


@pytest.mark.parametrize(
    "opened",
    ["<div>", "<b><i>", "<ul><li>", "<table><tr><td>", "<b><div></b>", "<p><div></p>",
     "<li><section>", "<li><ul></li>", "<a title='>' rel=x><div></a>"],
)  # fmt: skip
def test_endlessly_nested_page_is_read_without_its_tags(tmp_path: Path, opened: str) -> None:
    """HTML's rules check all open elements for each nested one: 100,000 take a minute."""
    html = "<h1>Head</h1>" + opened * 20_000 + "<p>deep</p>" + "</div>" * 20_000 + "<p>last"
    extracted = read(tmp_path, html, timeout_s=15)
    assert extracted.text.startswith("Head\n\n")
    assert extracted.text.split()[-2:] == ["deep", "last"]
    assert extracted.warnings == (html_format.NESTED_TOO_DEEP,)


@pytest.mark.parametrize(
    "html",
    [
        "<ul>" + "<li>x" * 3_000,
        "<dl>" + "<dt>x<dd>y" * 3_000,
        "<p>x" * 3_000,
        "<p>x<div>y</div>" * 3_000,
        "<table>" + "<tr><td><b>x<th>y" * 3_000,
        "<table>" + "<tr><td><ul><li>x<th>y</ul>" * 3_000,
        "<svg>" + "<path d='' />" * 3_000 + "</svg>",
        "<br><img><hr>" * 3_000,
        "<script>" + "'<div>'" * 3_000 + "</script>",
        "<!--" + "<div>" * 3_000 + "-->",
        "<p title='" + "<div>" * 3_000 + "'>x",
        "<div><p>x</p></div>" * 3_000,
        "<!doctype html>" + "<b>x</b><?x><!x>" * 3_000 + "</nobody>",
        "1 < 2 <3" * 3_000,
    ],
)
def test_pages_without_end_tags_are_not_nested_deeply(html: str) -> None:
    assert html_reader.flatten(html) == (html, False)


@pytest.mark.parametrize(
    "html", ["<div " * 2_000, '<div a="' * 2_001, "<!--" * 2_000, "<xmp>" * 2_000]
)
def test_unclosed_markup_is_scanned_once(html: str) -> None:
    assert html_reader.flatten(html) == (html, False)


def test_too_many_characters_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(ExtractionTooLarge, match="characters"):
        read(tmp_path, "<p>" + "word " * 1_000, max_characters=1_000)


def test_tags_without_text_count_towards_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fifteen megabytes of them would take two gigabytes in the worker."""
    monkeypatch.setattr(html_format, "_MAX_EVENTS", 100)
    assert read(tmp_path, "<p>" * 40 + "word").text == "word"
    with pytest.raises(ExtractionTooLarge, match="elements"):
        read(tmp_path, "<p>" * 60 + "word")


def test_page_is_kept_in_the_folder_of_its_file_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That folder is on the data directory's disk; `/tmp` may be in memory and is not cleared."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    assert read(tmp_path, "<p>words").text == "words"
    assert len(list(tmp_path.iterdir())) == 1


def test_page_that_exceeds_the_memory_limit_is_not_called_damaged(tmp_path: Path) -> None:
    with pytest.raises(ExtractionTooLarge, match="256 MB"):
        read(tmp_path, "<p>x" * 2_000_000, memory_mb=256)


def test_large_table_is_written_quickly() -> None:
    events: list[tuple[str, object]] = [("table", None)]
    for number in range(20_000):
        events += [("row", None), ("cell", [1, 1, False]), ("text", str(number)), ("/cell", None)]
        events += [("cell", [1, 1, False]), ("text", "x"), ("/cell", None), ("/row", None)]
    writer = HtmlText()
    writer.add_events([*events, ("/table", None)])
    lines = writer.readable.text().split("\n")
    assert len(lines) == 20_000
    assert lines[-1] == "19999 | x"


def test_bold_lines_and_written_bullets_of_word_are_headings_and_items(tmp_path: Path) -> None:
    extracted = read(
        tmp_path,
        "<html><body><p class=MsoNormal><b><span>年假<o:p></o:p></span></b></p>"
        "<p class=MsoListParagraph><span>·<span>&nbsp;&nbsp;&nbsp; </span></span>婚假 10 天</p>"
        "<p class=MsoListParagraph><span>·<span>&nbsp;&nbsp;&nbsp; </span></span>产假 158 天</p>"
        "<p><b>Note:</b> all of it.</p><p><b>Only bold words</b></p></body></html>",
    )
    assert extracted.text == (
        "年假\n\n- 婚假 10 天\n- 产假 158 天\n\nNote: all of it.\n\nOnly bold words"
    )
    assert [heading.title for heading in extracted.headings] == ["年假"]
    items = [extracted.text[block.start : block.end] for block in extracted.blocks]
    assert items == ["- 婚假 10 天", "- 产假 158 天"]


def test_title_and_second_level_bullets_of_word_are_heading_and_items(tmp_path: Path) -> None:
    mark = "<p class=MsoListParagraph><span style='mso-list:Ignore'>{}<span>&nbsp;</span></span>{}"
    extracted = read(
        tmp_path,
        "<html><body><p class=MsoTitle>Travel<p class=MsoNormal>For all."
        + "".join(
            mark.format(*each) for each in [("·", "Economy"), ("o", "Upgrades"), ("§", "Rail")]
        )
        + mark.format("a", "Taxi").replace("a<span>", "a)<span>"),
    )
    assert extracted.text == "Travel\n\nFor all.\n\n- Economy\n- Upgrades\n- Rail\na) Taxi"
    assert [heading.title for heading in extracted.headings] == ["Travel"]


def test_items_after_breaks_are_items(tmp_path: Path) -> None:
    extracted = read(tmp_path, "<p>Bring:<br>- a badge<br>- a phone with<br>its charger</p>")
    assert extracted.text == "Bring:\n\n- a badge\n- a phone with\nits charger"
    assert len(extracted.blocks) == 2


def test_title_across_a_table_is_its_caption(tmp_path: Path) -> None:
    extracted = read(
        tmp_path,
        "<table><tr><td colspan=2>Rates</td></tr><tr><td>Room</td><td>Price</td></tr>"
        "<tr><td>Single</td><td>80</td></tr></table>",
    )
    table = next(block for block in extracted.blocks if block.header)
    assert (table.caption, table.header) == ("Rates", ("Room", "Price"))
    assert extracted.text == "Rates\n\nRoom | Price\nSingle | 80"


def test_long_title_of_a_table_leaves_room_for_the_header(tmp_path: Path) -> None:
    title = "All of this holds for rooms only. " * 40
    rows = "".join(f"<tr><td>Room {number}</td><td>{number}</td></tr>" for number in range(300))
    head = f"<tr><td colspan=2>{title}</td></tr><tr><th>Room</th><th>Price</th></tr>"
    extracted = read(tmp_path, f"<table>{head}{rows}</table>")
    assert title.strip() in extracted.text
    table = next(block for block in extracted.blocks if block.header)
    assert len(table.caption) < 300
    assert (split(extracted)[-1].context or "").endswith("Room | Price")


def test_wiki_text_around_a_page_is_left_out(tmp_path: Path) -> None:
    extracted = read(
        tmp_path,
        '<ol id="breadcrumbs"><li>Space</li></ol><h1>Leave</h1>'
        '<div class="page-metadata">Created by Ada</div><p>Ten days.</p>'
        '<h2 id="breadcrumbs-in-shops">Breadcrumbs</h2><p>Fifty cents.</p>'
        '<div id="footer" role="contentinfo">Document generated</div>',
    )
    assert extracted.text == "Leave\n\nTen days.\n\nBreadcrumbs\n\nFifty cents."
