from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path

import pytest

from portal.domain.documents import MediaType
from portal.errors import BrokenFile, PortalError, TooMuchInOne, UnpacksToTooMuch
from portal.ingest.chunking import split
from portal.ingest.formats import xlsx
from tests.factories import files
from tests.factories.files import sheets
from tests.unit.ingest.reading import cells, read, tables


def test_workbook_reads_as_its_sheets_show_it(tmp_path: Path) -> None:
    extracted = read(sheets.price_list(tmp_path / "a.xlsx"))
    prices, origins = tables(extracted)
    assert cells(extracted.text, prices) == [
        ("类别", "部件", "单价", "折扣", "生效日"),
        ("散热", "风扇", "¥12.50", "15%", "2024-03-01"),
        ("散热", "散热片", "1,200.00", "7.5%", "2024-04-01 09:30"),
        ("线材", "电源线", "3", "", "TRUE"),
    ]
    assert (prices.header, prices.caption) == (
        ("类别", "部件", "单价", "折扣", "生效日"),
        "2024 年价目表",
    )
    assert (origins.header, origins.caption) == (("部件", "产地"), "价目")
    assert [heading.title for heading in extracted.headings] == ["价目"]
    assert "never shown" not in extracted.text
    assert extracted.warnings == (xlsx.HIDDEN_LEFT_OUT, xlsx.RESULTS_LEFT_OUT)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", '部件,"单价, 元",备注\n风扇,12,"两行\n一格"\n电源线,3,\n'),
        ("a.csv", "部件;单价, 元;备注\r\n风扇;12;两行 一格\r\n电源线;3;\r\n"),
        ("a.csv", 'sep=;\r\n部件;"单价, 元";备注\r\n风扇;12;两行 一格\r\n电源线;3;\r\n'),
        ("a.tsv", "部件\t单价, 元\t备注\n风扇\t12\t两行 一格\n电源线\t3\t\n"),
    ],
)
def test_records_are_rows_with_the_header_of_the_first(
    tmp_path: Path, name: str, content: str
) -> None:
    extracted = read(files.write_text(tmp_path / name, content))
    (table,) = tables(extracted)
    assert (table.header, table.start) == (("部件", "单价, 元", "备注"), 0)
    assert cells(extracted.text, table)[1:] in (
        [("风扇", "12", "两行 一格"), ("电源线", "3", "")],
        [("风扇", "12", "两行 一格"), ("电源线", "3")],
    )


def test_row_labels_without_a_header_have_their_own_column(tmp_path: Path) -> None:
    extracted = read(files.write_text(tmp_path / "a.csv", ",Q1,Q2\nNorth,10,20\n,30,40\n"))
    (table,) = tables(extracted)
    assert table.header == ("", "Q1", "Q2")
    assert cells(extracted.text, table)[1:] == [("North", "10", "20"), ("", "30", "40")]


@pytest.mark.parametrize(
    ("lines", "is_header"),
    [
        (["Topic,Period,,Page", "Sales,June 2023,,4"], True),  # A name for merged cells.
        (["Optional for those who joined before the end of the year,No", "Yes,7"], True),
        (["BOARD,,,MODEL", "E-1,,,Page 1"], False),
        (["Name:,Ada", "Born:,1815"], False),
        (["a,b,a", "1,2,3"], False),
    ],
)
def test_header_is_recognised_by_its_names(
    tmp_path: Path, lines: list[str], is_header: bool
) -> None:
    (table,) = tables(read(files.write_text(tmp_path / "a.csv", "\n".join(lines))))
    assert bool(table.header) is is_header


@pytest.mark.parametrize("merged", [("A1:A2", "F1:F2"), ()])
def test_header_of_two_rows_names_each_column(tmp_path: Path, merged: tuple[str, ...]) -> None:
    rows = [
        ["Site", "First half", None, "Second half", None, "Manager"],
        [None, "Plan", "Actual", "Plan", "Actual"],
        ["Lisbon", 12, 13, 15, 16, "Costa"],
        ["Porto", 22, 23, 25, 26, "Lima"],
    ]
    path = sheets.write_xlsx(tmp_path / "a.xlsx", Sheet1=rows)
    (table,) = tables(read(sheets.merge_cells(path, "B1:C1", "D1:E1", *merged)))
    assert table.header == (
        "Site",
        *("First half Plan", "First half Actual", "Second half Plan", "Second half Actual"),
        "Manager",
    )


def test_cell_merged_downwards_far_to_the_right_does_not_widen_rows(tmp_path: Path) -> None:
    rows = [["Part", "Price"], *([f"Fan {number}", number] for number in range(3))]
    rows[1] = [*rows[1], *[None] * 40, "checked in May"]
    path = sheets.write_xlsx(tmp_path / "a.xlsx", Sheet1=rows)
    text = read(sheets.merge_cells(path, "AQ2:AQ4")).text
    assert text.count("checked in May") == 1


@pytest.mark.parametrize(
    "lines",
    [
        ["Name,Phone,,Note", "Ada,n/a,mobile,friend", "Bo,none,555 0101,x"],
        ["Cooling,Fan,,quiet", "Cooling,Sink,copper,loud", "Cables,Cord,,new"],
        ["Site,Yield", "Site,Wheat,Rye", "North,low,high"],
        ["Version: 3.2,,Approved: May", "Part,Price,Stock", "Fan,12,4"],
        ["Part,Price,,Stock", "Fan,12,13,4", "Cord,14,15,5"],
    ],
)
def test_first_row_of_data_is_no_second_row_of_a_header(tmp_path: Path, lines: list[str]) -> None:
    (table,) = tables(read(files.write_text(tmp_path / "a.csv", "\n".join(lines))))
    assert table.header in ((), tuple(lines[0].split(",")))


def test_caption_has_the_title_lines_that_stand_together(tmp_path: Path) -> None:
    table = "Month,Cost\nMay,455\n"
    content = f"Energy\nBy facility team\n\n{table}\nSource: meters\n\nWater\n{table}"
    extracted = read(files.write_text(tmp_path / "a.csv", content))
    captions = [table.caption for table in tables(extracted)]
    assert captions == ["Energy – By facility team", "Water"]


def test_dates_and_numbers_are_shown_in_their_format(tmp_path: Path) -> None:
    moment = datetime.datetime.fromisoformat("2024-04-01T09:30")
    row = [
        (moment, "h:mm AM/PM"),
        (moment, "m/d/yy"),
        (moment, "d/m/yyyy h:mm"),
        (1234567, "#,##0"),
        (datetime.timedelta(hours=26, minutes=5), "[h]:mm"),
        (datetime.timedelta(hours=1, seconds=7), "[h]:mm:ss"),
    ]
    extracted = read(sheets.write_xlsx(tmp_path / "a.xlsx", Sheet1=[row]))
    assert extracted.text == "09:30 | 2024-04-01 | 2024-04-01 09:30 | 1,234,567 | 26:05 | 1:00:07"


def test_row_far_down_is_found_with_its_header(tmp_path: Path) -> None:
    rows = "".join(f"E{n:05},员工{n},研发部,{8000 + n}\n" for n in range(5_000))
    extracted = read(files.write_text(tmp_path / "a.csv", f"工号,姓名,部门,月薪\n{rows}"))
    (chunk,) = [chunk for chunk in split(extracted) if "E04321" in chunk.content]
    assert chunk.context == "工号 | 姓名 | 部门 | 月薪"
    assert "E04321 | 员工4321 | 研发部 | 12321" in chunk.content.split("\n")


def test_table_without_a_header_has_none(tmp_path: Path) -> None:
    extracted = read(files.write_text(tmp_path / "a.csv", "1,2\n3,4\n"))
    assert tables(extracted)[0].header == ()


def test_unclosed_quotation_mark_loses_nothing(tmp_path: Path) -> None:
    rest = "x,y\n" * 400_000
    extracted = read(files.write_text(tmp_path / "a.csv", f'a,b\n1,"open\n{rest}last,line\n'))
    assert "last | line" in extracted.text


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (sheets.xlsx_bomb, UnpacksToTooMuch),
        (sheets.xlsx_billion_laughs, BrokenFile),
        (sheets.xlsx_of_wide_rows, TooMuchInOne),
        (sheets.xlsx_with_nested_elements, TooMuchInOne),
    ],
)
def test_hostile_workbooks_are_refused_with_a_reason(
    tmp_path: Path, make: Callable[[Path], Path], error: type[PortalError]
) -> None:
    with pytest.raises(error):
        read(make(tmp_path / "a.xlsx"))


def test_macros_and_links_are_not_followed(tmp_path: Path) -> None:
    extracted = read(sheets.xlsx_with_a_macro_and_a_link(tmp_path / "a.xlsm"))
    assert extracted.text == "A\n\nstored | 2"
    assert extracted.warnings == ()


def test_too_many_cells_are_refused(tmp_path: Path) -> None:
    path = files.write_text(tmp_path / "a.csv", "1,2,3\n" * 1_000_000)
    with pytest.raises(TooMuchInOne, match="cells"):
        read(path)


def test_too_many_columns_are_refused(tmp_path: Path) -> None:
    for count in (16_384, 16_385):
        header = ",".join(f"q{number}" for number in range(count))
        path = files.write_text(tmp_path / f"{count}.csv", f"{header}\n1\n")
        if count == 16_384:
            assert "q16383" in read(path).text
        else:
            with pytest.raises(TooMuchInOne, match="16384 columns"):
                read(path)


def test_csv_files_have_an_encoding() -> None:
    assert MediaType.CSV.has_encoding
    assert not MediaType.XLSX.has_encoding


def test_long_first_line_does_not_stop_a_csv_file(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text("x" * 1_100_000 + "\na,b\n1,2\n")
    assert "a | b" in read(path).text
