"""Makes workbooks and tables for tests, good and hostile ones."""

from __future__ import annotations

import datetime
import zipfile
from pathlib import Path
from typing import Any

import openpyxl


def write_xlsx(path: Path, **sheets: list[list[Any]]) -> Path:
    """Write a workbook with these sheets; a cell is a value, or a pair (value, number format)."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for number, row in enumerate(rows, 1):
            for column, content in enumerate(row, 1):
                value, number_format = content if isinstance(content, tuple) else (content, None)
                cell = sheet.cell(number, column, value)
                if number_format:
                    cell.number_format = number_format
    book.save(path)
    return path


def merge_cells(path: Path, *ranges: str) -> Path:
    """Merge cells of the first sheet."""
    with path.open("rb") as file:  # Its name may have no suffix.
        book = openpyxl.load_workbook(file)
    for cells in ranges:
        book.worksheets[0].merge_cells(cells)
    book.save(path)
    return path


def _moment() -> datetime.datetime:
    return datetime.datetime.fromisoformat("2024-04-01T09:30")


def price_list(path: Path) -> Path:
    """Write two sheets: a title above a table with merged cells, formats and a formula; and a
    hidden one."""
    rows: list[list[Any]] = [
        ["2024 年价目表"],
        [],
        ["类别", "部件", "单价", "折扣", "生效日"],
        ["散热", "风扇", (12.5, '"¥"#,##0.00'), (0.15, "0%"), datetime.date(2024, 3, 1)],
        [None, "散热片", (1200, "#,##0.00"), (0.075, "0.0%"), _moment()],
        ["线材", "电源线", 3, None, True],
        [],
        ["部件", "产地"],
        ["风扇", "苏州"],
        ["电源线", '=CONCATENATE("东","莞")'],
    ]
    write_xlsx(path, 价目=rows, Secret=[["never shown"]])
    with path.open("rb") as file:  # Its name may have no suffix.
        book = openpyxl.load_workbook(file)
    book["价目"].merge_cells("A4:A5")
    book["Secret"].sheet_state = "hidden"
    book.save(path)
    return path


def _replace_part(path: Path, name: str, content: str) -> Path:
    with zipfile.ZipFile(path) as archive:
        parts = {each: archive.read(each) for each in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for each, data in (parts | {name: content.encode()}).items():
            archive.writestr(each, data)
    return path


_SHEET = "xl/worksheets/sheet1.xml"
_NAMESPACE = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def xlsx_with_sheet(path: Path, data: str, *, before: str = "") -> Path:
    """Write a workbook whose only sheet has this XML."""
    write_xlsx(path, A=[["x", "y"]])
    sheet = f'{before}<worksheet xmlns="{_NAMESPACE}"><sheetData>{data}</sheetData></worksheet>'
    return _replace_part(path, _SHEET, sheet)


def xlsx_bomb(path: Path) -> Path:
    """Write an archive with a part that claims to unpack to more XML than any sheet has."""
    return claim_size(write_xlsx(path, A=[["x", "y"]]), "xl/worksheets/sheet9.xml", 401 << 20)


def claim_size(path: Path, name: str, size: int) -> Path:
    """Add a part to an archive that claims to have `size` bytes."""
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, b" " * 1_000)
        archive.getinfo(name).file_size = size
    return path


def xlsx_billion_laughs(path: Path) -> Path:
    entities = '<!ENTITY a0 "ha">' + "".join(
        f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10)
    )
    row = '<row r="1"><c r="A1" t="inlineStr"><is><t>&a9;</t></is></c></row>'
    return xlsx_with_sheet(path, row, before=f"<!DOCTYPE worksheet [{entities}]>")


def xlsx_of_wide_rows(path: Path) -> Path:
    """Write a short XML that spans millions of cells: each row has one, in the last column."""
    rows = "".join(f'<row r="{n}"><c r="XFD{n}"><v>1</v></c></row>' for n in range(1, 2_000))
    return xlsx_with_sheet(path, rows)


def xlsx_with_nested_elements(path: Path) -> Path:
    return xlsx_with_sheet(path, "<row>" * 5_000 + "</row>" * 5_000)


def xlsx_with_a_macro_and_a_link(path: Path) -> Path:
    """Write a workbook with a macro, and a formula that refers to another file and whose last
    result is stored."""
    row = (
        '<row r="1"><c r="A1" t="str"><f>\'http://evil.example/[x.xlsx]S\'!A1</f><v>stored</v></c>'
        '<c r="B1"><f>1+1</f><v>2</v></c></row>'
    )
    xlsx_with_sheet(path, row)
    return _replace_part(path, "xl/vbaProject.bin", "Shell")
