from __future__ import annotations

from pathlib import Path

import pytest

from portal.domain.documents import ExtractedText, Heading, MediaType
from portal.domain.documents.structure import Block, BlockKind
from portal.ingest.chunking import HARD_CAP, TARGET_TOKENS, split
from portal.ingest.extraction import extract
from portal.ingest.limits import FileToRead
from portal.text.counting.tokens import token_weight
from portal.text.layout.tables import table_rows
from tests.factories import files
from tests.unit.ingest.reading import cells, tables

LEAVE = """# 员工手册

## 3 Leave

### 3.2 Carry-over

表 1 年假与结转

| 工龄 | 年假天数 | 可结转 |
|------|---------|-------|
| 1–5 年 | 10 天 | 5 天 |
| 5 年以上 | 15 天 |  |
| `a \\| b` |  | 无 |

报销材料如下：

1. 发票
2. 行程单
   - 原件
   - 复印件
"""


def read(tmp_path: Path, source: str, media_type: MediaType = MediaType.MARKDOWN) -> ExtractedText:
    path = files.write_text(tmp_path / "a", source)
    return extract(FileToRead(path, "a"), media_type)


def test_markdown_keeps_tables_with_cells_header_and_caption(tmp_path: Path) -> None:
    extracted = read(tmp_path, LEAVE)
    (table,) = tables(extracted)
    assert table.header == ("工龄", "年假天数", "可结转")
    assert table.caption == "表 1 年假与结转"
    assert cells(extracted.text, table) == [
        ("工龄", "年假天数", "可结转"),
        ("1–5 年", "10 天", "5 天"),
        ("5 年以上", "15 天", ""),
        ("a | b", "", "无"),
    ]
    assert [row.is_header for row in table_rows(extracted.text, table)] == [True] + [False] * 3


def test_html_in_markdown_keeps_its_headings_and_tables(tmp_path: Path) -> None:
    extracted = read(
        tmp_path,
        """<h1 align="center">Prices</h1>

<table>
  <tr><th>Part</th><th>Price</th></tr>

  <tr><td>

**Fan** & <b>grille</b>

</td><td>12</td></tr>

    <tr><td>Cable</td><td>3</td></tr>
</table>

A `vector<int>`.
""",
    )
    (prices,) = tables(extracted)
    assert cells(extracted.text, prices) == [
        ("Part", "Price"),
        ("Fan & grille", "12"),
        ("Cable", "3"),
    ]
    assert extracted.headings == (Heading(1, "Prices", 0),)
    assert extracted.text.endswith("3\n\nA vector<int>.")


@pytest.mark.parametrize(
    "mark",
    [
        '<sup><a href="#n1">1</a></sup>',
        '<a href="#n1"><sup>1</sup></a>',
        '<a href="notes.xhtml#n1" epub:type="noteref">1</a>',
        '<a href="#n1" role="doc-noteref">[1]</a>',
    ],
)
def test_marks_of_notes_in_html_have_brackets(tmp_path: Path, mark: str) -> None:
    extracted = read(tmp_path, f"<html><p>Born in June.{mark} The end.", MediaType.HTML)
    assert extracted.text == "Born in June.[1] The end."


def test_footnotes_in_markdown_are_kept(tmp_path: Path) -> None:
    extracted = read(
        tmp_path,
        "年假[^b]见[手册][h]，`[^b]`、[^c]、[^b]。\n\n- 病假[^1]\n\n  [^1]: 半薪。\n\n"
        "[^2]: Ten days.\n[^b]: 见附录三，\n    第二条。\n\n    - 甲\n\n完。\n\n[h]: http://a.example\n",
    )
    assert extracted.text == (
        "年假[1]见手册 (http://a.example)，[^b]、[^c]、[1]。\n\n- 病假[2]\n  2. 半薪。\n\n"
        "3. Ten days.\n\n1. 见附录三，\n   第二条。\n  - 甲\n\n完。"
    )
    notes = [block for block in extracted.blocks if block.kind is BlockKind.FOOTNOTE]
    assert [extracted.text[note.start : note.end] for note in notes] == [
        "2. 半薪。",
        "3. Ten days.",
        "1. 见附录三，\n   第二条。",
    ]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("Bring your badge\nand a pen.", "Bring your badge and a pen."),
        (
            "行政部负责前台、门禁、工位、打印机以及所有办公用品的采购和发放工\n作，每周一次。",
            "行政部负责前台、门禁、工位、打印机以及所有办公用品的采购和发放工作，每周一次。",
        ),
        ("杭州市文三路\n四楼", None),
        (
            "The office closes at nine in the evening, but not on the day before\nMay Day.",
            "The office closes at nine in the evening, but not on the day before May Day.",
        ),
        (
            "12 Long Street, fourth floor, Building B, next to the old town hall\n**Phone**: 12",
            None,
        ),
        ("Long Street 12\nHangzhou", "Long Street 12\nHangzhou"),
        ("Ask Mia\\\nor Otto.", "Ask Mia\nor Otto."),
        ("Ask Mia  \nor Otto.", "Ask Mia\nor Otto."),
    ],
)
def test_wrapped_lines_of_markdown_are_joined(
    tmp_path: Path, source: str, text: str | None
) -> None:
    assert read(tmp_path, source).text == (text or source.replace("**", ""))


@pytest.mark.parametrize(
    ("front_matter", "title"),
    [("title: Leave", "Leave"), ("title: '假期 2024'", "假期 2024"), ("title: ''", "First")],
)
def test_title_of_front_matter_is_the_first_heading(
    tmp_path: Path, front_matter: str, title: str
) -> None:
    found = read(tmp_path, f"---\n{front_matter}\n---\n\n## First\n").headings
    assert found[0].title == title


def test_items_are_ranges_with_their_depth(tmp_path: Path) -> None:
    extracted = read(tmp_path, LEAVE)
    items = [
        (extracted.text[block.start : block.end], block.level)
        for block in extracted.blocks
        if block.kind is BlockKind.ITEM
    ]
    assert items == [("1. 发票", 1), ("2. 行程单", 1), ("- 原件", 2), ("- 复印件", 2)]


def test_html_tables_have_headers_captions_and_spanning_cells(tmp_path: Path) -> None:
    extracted = read(
        tmp_path,
        """<html><table><caption>Fees</caption><thead><tr><th colspan=2>Where<th>Fee</thead>
        <tr><td rowspan=2>City<td>North<td>10<tr><td>South<td>20<tr><td>Land<td>all<td>5
        </table><p>after<table><tr><td>Name:<td>Ada<tr><td>Born:<td>1815</table>
        <ol><li id="footnote-1">A note.</ol>""",
        MediaType.HTML,
    )
    fees, person = tables(extracted)
    assert (fees.caption, fees.header) == ("Fees", ("Where", "", "Fee"))
    assert cells(extracted.text, fees)[1:] == [
        ("City", "North", "10"),
        ("City", "South", "20"),
        ("Land", "all", "5"),
    ]
    assert (person.header, person.body) == ((), person.start)
    notes = [block for block in extracted.blocks if block.kind is BlockKind.FOOTNOTE]
    assert [extracted.text[note.start : note.end] for note in notes] == ["1. A note."]


def test_cells_beyond_the_header_are_kept(tmp_path: Path) -> None:
    rows = [
        "| full | `tar c / | gzip` | Sunday |",
        "| logs | cat | daily | or | never |",
        "| a | b | c | |",
    ]
    source = "\n".join(["| Job | Command | When |", "|---|---|---|", *rows])
    extracted = read(tmp_path, f"> {source}".replace("\n", "\n> "))
    (table,) = tables(extracted)
    assert cells(extracted.text, table)[1:] == [
        ("full", "tar c / | gzip", "Sunday"),
        ("logs", "cat", "daily | or | never"),
        ("a", "b", "c"),
    ]


def test_lists_in_cells_stay_in_their_rows(tmp_path: Path) -> None:
    extracted = read(
        tmp_path,
        """<html><table><tr><th>费用<th>材料<tr><td>住宿<td><ul><li>发票<li>行程单</ul>
        <tr><td>Trip<td>Bring:<ul><li>a ticket.<li>cash</ul></table>
        <table><tr><td><ul><li>Home</ul><td><h1>Costs</h1></table>""",
        MediaType.HTML,
    )
    (costs,) = tables(extracted)
    assert cells(extracted.text, costs)[1:] == [
        ("住宿", "发票; 行程单"),
        ("Trip", "Bring: a ticket. cash"),
    ]
    assert extracted.text.endswith("\n\n- Home\n\nCosts")


@pytest.mark.parametrize(
    "rows",
    [
        "<tr><th>North<th>South<tr><th rowspan=2>2025<tr><td>10<td>20",
        "<tr><td>North<td>South<tr><td>2025<td>10<td>20",  # Slides mark only the first row.
    ],
)
def test_header_of_several_rows_names_each_column(tmp_path: Path, rows: str) -> None:
    first = "<tr><th rowspan=2>Year<th colspan=2>Income"
    extracted = read(tmp_path, f"<html><table>{first}{rows}</table>", MediaType.HTML)
    (income,) = tables(extracted)
    assert income.header == ("Year", "Income North", "Income South")
    assert cells(extracted.text, income)[-1] == ("2025", "10", "20")


def test_blocks_survive_storage(tmp_path: Path) -> None:
    blocks = read(tmp_path, LEAVE).blocks
    assert {block.kind for block in blocks} == {BlockKind.TABLE, BlockKind.ITEM, BlockKind.CAPTION}
    assert tuple(Block.from_json(block.as_json()) for block in blocks) == blocks


def test_long_table_is_cut_between_rows_and_each_chunk_has_its_header(tmp_path: Path) -> None:
    rows = "".join(f"| part {n} | A fan. It turns! | {n} |\n" for n in range(200))
    source = f"# Parts\n\nTable 1: Stock\n\n| Part | What it is | Count |\n|-|-|-|\n{rows}"
    extracted = read(tmp_path, source)
    chunks = split(extracted)
    assert len(chunks) > 3
    lines = set(extracted.text.split("\n"))
    for chunk in chunks:
        assert set(chunk.content.split("\n")) <= lines
        assert token_weight(chunk.content) <= HARD_CAP * TARGET_TOKENS
        (table,) = [block for block in chunk.blocks if block.kind is BlockKind.TABLE]
        assert table.header == ("Part", "What it is", "Count")
        assert all(len(row) == 3 for row in cells(chunk.content, table))
    first, *others = chunks
    assert first.content.startswith("Parts\n\nTable 1: Stock\n\nPart | What it is | Count\npart 0")
    assert first.context is None
    assert first.blocks[0] == Block(BlockKind.HEADING, 0, len("Parts"), level=1)
    assert {chunk.context for chunk in others} == {"Table 1: Stock\nPart | What it is | Count"}


def test_heading_is_in_the_chunk_of_the_text_below_it() -> None:
    body = "One sentence of the body says something that is worth knowing. "
    titles = ["Leave", "Annual", "Carry-over", "Sick"]
    for count in range(1, 40, 3):
        for rest in range(0, 12, 2):
            text = (
                f"Leave\n\nAnnual\n\n{body * count}\n\nCarry-over\n\n{body * 30}"
                f"\n\nSick\n\n{body * rest}"
            )
            headings = [
                Heading(1 + (title == "Annual"), title, text.index(f"{title}\n"))
                for title in titles
            ]
            extracted = ExtractedText(text=text, extractor="test", headings=tuple(headings))
            for chunk in split(extracted):
                assert set(chunk.content.split("\n\n")) - set(titles), (count, rest)
                assert token_weight(chunk.content) <= HARD_CAP * TARGET_TOKENS


def test_heading_of_a_chunk_is_that_of_its_first_words(tmp_path: Path) -> None:
    chunks = split(read(tmp_path, LEAVE))
    assert [chunk.heading for chunk in chunks] == ["员工手册 › 3 Leave › 3.2 Carry-over"]


def test_words_that_introduce_a_list_are_in_the_chunk_of_its_first_item(tmp_path: Path) -> None:
    body = "The desk is open every day of the week except on holidays. "
    items = "".join(f"- {body}\n" for _ in range(40))
    for count in range(1, 40, 2):
        chunks = split(read(tmp_path, f"{body * count}\n\nWhat to bring:\n\n{items}"))
        assert not any(chunk.content.endswith(":") for chunk in chunks)


def test_clause_that_introduces_a_list_is_in_the_chunk_of_its_first_item(tmp_path: Path) -> None:
    clause = "Each room has a keeper, who holds the key and writes down who borrows it.\n"
    items = "".join(f"   {number}. acids and cyanides of any kind\n" for number in range(1, 12))
    for count in range(1, 24):
        clauses = "".join(f"3.{number} {clause}" for number in range(1, count))
        text = f"# Storage\n\n{clauses}3.{count} Never store together:\n{items}3.30 {clause}"
        chunks = split(read(tmp_path, text))
        assert not any(chunk.content.endswith(":") for chunk in chunks)


def test_long_item_is_cut_between_its_sentences(tmp_path: Path) -> None:
    item = " ".join(f"The desk on floor {n} is open until five in the evening." for n in range(60))
    chunks = split(read(tmp_path, f"- {item}\n- Short.\n"))
    assert len(chunks) > 2
    assert all(chunk.content.endswith(".") for chunk in chunks)


@pytest.mark.parametrize("count", range(1, 30, 4))
def test_heading_is_not_a_chunk_however_long_it_is(count: int) -> None:
    titles = [" ".join(["Carry-over of annual leave"] * 4) + f" {n}" for n in range(count)]
    body = "One sentence that goes on, " * 45 + "and ends."
    text = "\n\n".join([*titles, body, *titles, body])
    starts = [
        at
        for at in range(len(text))
        if text.startswith("Carry", at) and text[at - 2 : at] in {"", "\n\n"}
    ]
    headings = tuple(Heading(1, title, at) for title, at in zip(titles * 2, starts, strict=True))
    chunks = split(ExtractedText(text=text, extractor="test", headings=headings))
    for chunk in chunks:
        marked = sum(block.end - block.start for block in chunk.blocks)
        assert marked < len(chunk.content.replace("\n\n", "")), chunk
        assert token_weight(chunk.content) <= HARD_CAP * TARGET_TOKENS


def test_heading_of_several_lines_is_not_a_chunk() -> None:
    body = "One sentence of the body. " * 55
    text = f"{body}\n\nChapter 7\n\nWindows\n\n7.1 Desktops\n\n{body}"
    titles = ["Chapter 7\n\nWindows", "7.1 Desktops"]
    headings = tuple(
        Heading(level, title, text.index(title)) for level, title in enumerate(titles, 1)
    )
    chunks = split(ExtractedText(text=text, extractor="test", headings=headings))
    (chunk,) = [chunk for chunk in chunks if "Windows" in chunk.content]
    assert chunk.content.startswith("Chapter 7\n\nWindows\n\n7.1 Desktops\n\nOne sentence")
    assert [chunk.content[block.start : block.end] for block in chunk.blocks] == titles
