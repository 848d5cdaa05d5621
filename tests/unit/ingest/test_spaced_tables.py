from __future__ import annotations

import time
from pathlib import Path

import pytest

from portal.ingest.formats.texts.spaced_tables import with_tables
from tests.unit.ingest.reading import cells, read, tables

TABLE = """工龄         年假天数   可结转
不满 1 年    5 天
1 至 5 年    10 天      3 天
10 年以上    20 天      5 天"""


def test_table_drawn_with_spaces_is_read_as_rows_and_cells(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text(f"年假如下。\n\n{TABLE}\n\n逾期作废。\n", encoding="utf-8")
    extracted = read(path)
    (table,) = tables(extracted)
    assert cells(extracted.text, table) == [
        ("工龄", "年假天数", "可结转"),
        ("不满 1 年", "5 天", ""),
        ("1 至 5 年", "10 天", "3 天"),
        ("10 年以上", "20 天", "5 天"),
    ]
    assert table.header == ("工龄", "年假天数", "可结转")
    assert extracted.text.startswith("年假如下。\n\n工龄 | 年假天数")
    assert extracted.text.endswith("20 天 | 5 天\n\n逾期作废。\n")


def test_table_of_a_mail_is_read_as_rows_and_cells(tmp_path: Path) -> None:
    path = tmp_path / "a.eml"
    path.write_text(f"Subject: 年假\nFrom: a@example.com\n\n> 见下：\n{TABLE}\n", encoding="utf-8")
    extracted = read(path)
    (table,) = tables(extracted)
    assert cells(extracted.text, table)[2] == ("1 至 5 年", "10 天", "3 天")


def test_tabs_and_a_rule_below_the_header_make_a_table() -> None:
    text, (table,) = with_tables("Room\tBeds\tPrice\n----\nSingle\t1\t80\nDouble\t2\t120")
    assert text == "Room | Beds | Price\nSingle | 1 | 80\nDouble | 2 | 120"
    assert table.header == ("Room", "Beds", "Price")


def test_other_text_is_unchanged() -> None:
    text = (
        "First.  Second sentence.\nAnother.  And so on it goes.\nOne more.  The end.\n\n"
        "cat a.txt | sort | uniq -c;\nls | wc -l;\n\nA|B\nC|D\nE|F\n\n"
        "a   b   c\nd   e   f\n"
    )
    assert with_tables(text) == (text, ())


@pytest.mark.parametrize(
    "drawn",
    [
        "Room | Beds | Note\nSingle | 1 |\nDouble | 2 | sea",
        "| Room | Beds | Note |\n|---|---|---|\n| Single | 1 | |\n| Double | 2 | sea |",
        "+-+-+-+\n|Room|Beds|Note|\n+=+=+=+\n|Single|1||\n+-+-+-+\n|Double|2|sea|\n+-+-+-+",
        "┌─┬─┬─┐\n│Room│Beds│Note│\n├─┼─┼─┤\n│Single│1│ │\n│Double│2│sea│\n└─┴─┴─┘",
    ],
    ids=["bars alone", "markdown", "plus signs", "lines"],
)
def test_table_drawn_with_bars_is_read_as_rows_and_cells(drawn: str) -> None:
    text, (table,) = with_tables(f"Rooms:\n\n{drawn}\n\nAsk first.\n")
    assert cells(text, table) == [
        ("Room", "Beds", "Note"),
        ("Single", "1", ""),
        ("Double", "2", "sea"),
    ]
    assert table.header == ("Room", "Beds", "Note")
    assert text.startswith("Rooms:\n\nRoom | Beds")
    assert text.endswith("Double | 2 | sea\n\nAsk first.\n")


@pytest.mark.parametrize(
    "text",
    [
        "Tel. 4711 | Fax 4712\n   \nLeave is 15 days | apply early\nMore.",
        "| Tel. 4711 | Fax 4712 |\n| | |\n| Leave is 15 days | apply early |",
        "Name  Phone\n    \nAnn   4711\nBen   4712\nCid   4713",
    ],
    ids=["bars", "empty cells", "spaces"],
)
def test_line_of_spaces_is_not_a_rule_of_a_table(text: str) -> None:
    assert with_tables(text) == (text, ())


def test_line_of_spaces_ends_a_table() -> None:
    text, _ = with_tables("Room | Beds | Note\nA | 1 | sea\nB | 2 | hill\n   \nAsk first.")
    assert text.endswith("B | 2 | hill\n   \nAsk first.")


def test_plain_rule_below_a_table_belongs_to_what_follows(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    below = f"{'=' * 20}\nOpening hours\n{'=' * 20}\nWe open at nine.\n"
    path.write_text(f"Item | Rate | Note\nDesk | 5 | new\nLamp | 2 | old\n{below}")
    extracted = read(path)
    assert len(tables(extracted)) == 1
    assert extracted.text.endswith(f"Lamp | 2 | old\n{below}")
    assert [heading.title for heading in extracted.headings] == ["Opening hours"]


def test_plain_rule_below_two_lines_with_bars_makes_no_table() -> None:
    text = "Home | About\nContact | Imprint\n-----\nSigned: Anna"
    assert with_tables(text) == (text, ())


@pytest.mark.parametrize("cell", ["2026-01-05 09:00", "# of rooms", "ask first;", "{name}"])
def test_table_with_a_rule_may_have_cells_like_code(cell: str) -> None:
    text, (table,) = with_tables(f"| {cell} | Room |\n|---|---|\n| {cell} | A |\n| B | C |")
    assert cells(text, table) == [(cell, "Room"), (cell, "A"), ("B", "C")]


@pytest.mark.parametrize(
    "text",
    [
        "+-----+   +-----+\n| Web |   | DB  |\n| one |   | two |\n+-----+   +-----+",
        "┌─────┐   ┌────┐\n│ Web │   │ DB │\n│ one │   │ pg │\n│ two │   │ 18 │\n└─────┘   └────┘",
        "+-------+\n| Mind: the door is | or |\n| shut at | eight |\n+-------+",
        "Task A |###      | 10%\nTask B |   ####  | 40%\nTask C |       ##| 90%",
        "| Web |---->| DB |\n| App |---->| DB |\n| Job |---->| DB |",
    ],
    ids=["boxes", "boxes of lines", "sentence in a box", "chart", "arrows"],
)
def test_drawings_are_unchanged(text: str) -> None:
    assert with_tables(text) == (text, ())


def test_grid_in_a_frame_is_a_table() -> None:
    text, (table,) = with_tables("+-------+\n| A | B |\n+---+---+\n| 1 | --- |\n+-------+")
    assert cells(text, table) == [("A", "B"), ("1", "---")]


def test_unaligned_row_is_read_by_its_cells() -> None:
    drawn = (
        "  单笔金额               审批人                      办理时限\n"
        "  500 元以下             班长                        当班\n"
        "  500–5,000 元           库主管(北仑 蒋小满)       1 个工作日\n"
        "  C 类                   经理 1 人 3 个工作日\n"
        "以上自六月起。"
    )
    text, (table,) = with_tables(drawn)
    assert cells(text, table)[2] == ("500–5,000 元", "库主管(北仑 蒋小满)", "1 个工作日")
    assert text.endswith("\nC 类 | 经理 1 人 3 个工作日 | \n以上自六月起。")


def test_cells_divided_by_one_space_are_split_where_a_column_begins() -> None:
    text, _ = with_tables(
        "A 基础      650 元   全员，公司付\nB 加强      980 元   司龄满五年\n"
        "C 女性专项  1,080 元 差额公司付"
    )
    assert text.endswith("C 女性专项 | 1,080 元 | 差额公司付")


@pytest.mark.parametrize(
    ("row", "read_as"),
    [
        ("Big New Ink Pot     ask", "Big New Ink Pot |  | ask"),
        ("A very long item 5 EUR  red", "A very long item 5 EUR  red"),
        ("Box         of each pen red     none", "Box         of each pen red     none"),
        ("Cup         5 EUR   red one none", "Cup | 5 EUR | red one | none"),
    ],
    ids=["long label", "long label and figure", "words below figures", "whole row"],
)
def test_long_cell_is_not_split_where_a_word_is_below_a_column(row: str, read_as: str) -> None:
    drawn = (
        "Item        Price   Note    Sale\n"
        "Pen         2 EUR   blue    yes\n"
        "Ink         3 EUR   black   no\n"
    )
    text, _ = with_tables(f"{drawn}{row}")
    assert text.split("\n")[3].rstrip(" |") == read_as


@pytest.mark.parametrize(
    "text",
    [
        "第三十三条  辞职须提前说明。\n第三十四条  离职当日交接。\n第三十五条  次月发放。",
        "(a)  the deposit\n(b)  the keys\n(c)  the last month's rent of the room",
        "Article 1  Scope\nArticle 2  Terms\nArticle 3  Fees and payment",
        "编号：HR-004  版本：V3.2\n发布：3月18日  生效：4月1日\n起草：人力部  批准：总经理",
    ],
)
def test_numbered_clauses_and_labels_are_not_a_table(text: str) -> None:
    assert with_tables(text) == (text, ())


def test_numbered_rows_below_a_header_are_a_table() -> None:
    text, (table,) = with_tables("No.  Item\n1.   Bolts\n2.   Nuts\n3.   Washers")
    assert text.startswith("No. | Item\n1. | Bolts")
    assert table.header == ("No.", "Item")


@pytest.mark.parametrize(
    "lines",
    [
        ["int a    = 1;    // first", "int bb   = 2;    // second", "int ccc  = 3;    // third"],
        ["listen   8000   # port", "workers  4      # count", "timeout  30     # seconds"],
        [
            "drwxr-xr-x   2 root   4096 bin",
            "-rw-r--r--   1 root    120 a.txt",
            "-rw-r--r--  10 root  99120 bb.txt",
        ],
        [f"2026-01-01 10:00:0{n}  INFO   web     started" for n in range(3)],
        ["if a || b", "if c || d", "if e || f"],
        ["make build 2>&1 | tee log", "make test 2>&1 | tee log", "make docs | grep -v ok"],
    ],
    ids=["code", "settings", "files", "log", "conditions", "pipes"],
)
def test_aligned_lines_of_programs_are_unchanged(lines: list[str]) -> None:
    text = "\n".join(lines)
    assert with_tables(text) == (text, ())


def test_empty_cells_between_tabs_keep_their_column() -> None:
    text, _ = with_tables("Name\tDesk\tPhone\nAnn\t\t4711\nBen\t3\t4712")
    assert text == "Name | Desk | Phone\nAnn |  | 4711\nBen | 3 | 4712"
    aligned, _ = with_tables("Name\t\tDesk\tPhone\nAnn\t\t2\t4711\nBenedicta\t3\t4712")
    assert aligned == "Name | Desk | Phone\nAnn | 2 | 4711\nBenedicta | 3 | 4712"


@pytest.mark.parametrize(
    "unit",
    [
        "--  --\n",
        "a  b\n---\n",
        "a  ",
        "a\t",
        "a b  c",
        "\n  a  b",
        "|--|\n",
        "a | b\n",
        "|",
        "a | b | c\n---\n+-+\n",
    ],
)
def test_time_is_linear_for_any_text(unit: str) -> None:
    started = time.process_time()
    with_tables(unit * (500_000 // len(unit)))
    assert time.process_time() - started < 5
