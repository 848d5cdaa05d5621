"""Reader of an Excel workbook (XLSX) that yields the visible sheets row by row.

    {"sheet": "Prices"}
    {"rows": [["Part", "Price"], ["Fan", "12.50"], …]}
    {"has_hidden": false, "lacks_results": false}

openpyxl reads a sheet as a stream. Formulas are not computed: their results are read as the saving
program stored them, and `lacks_results` is true if it stored none. Macros, external links and
pictures are not opened.
"""

from __future__ import annotations

import datetime
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

import openpyxl
from openpyxl.utils import coordinate_to_tuple, range_boundaries

from portal.ingest.readers import archives

MAX_CELLS = 2_000_000  # A million rows of two; read in 20 s.
_MAX_MERGED = 20_000
_MAX_BEYOND = 10  # Cells of a row between its last own one and one that spans it.
_MAX_FORMULAS = 1_000  # A program that stores no results stores none from the start.
_MAX_REPEATED = 100  # Max length of a spanning cell's text that is repeated in each row.
_ROWS_A_RECORD = 500
# Three elements per cell, plus some for the rest.
_LIMITS = archives.Limits(xml_mb=400, elements=8_000_000)
_GROUPED = re.compile(r"[#0],[#0]")
_DECIMALS = re.compile(r"0\.(0+)")
_CURRENCY = re.compile(r"[¥￥$€£₩₹]")
_QUOTED = re.compile(r'"([^"]*)"|\[\$([^\]-]*)[^\]]*\]')


def read(file: BinaryIO, *, characters: int) -> Iterator[dict[str, Any]]:
    """Yield the records, or an error: characters, or one of `archives.read_checked`."""
    notes: defaultdict[str, _PartNotes] = defaultdict(_PartNotes)
    return archives.read_checked(
        file,
        lambda: _sheets(file, notes, characters),
        _LIMITS,
        on_element=lambda part, name, attributes: notes[part].note(name, attributes),
    )


class _PartNotes:
    """Parts of a sheet that openpyxl hides: `merged` ranges, and `formulas` as columns by row."""

    def __init__(self) -> None:
        self.merged: list[str] = []
        self.formulas: defaultdict[int, list[int]] = defaultdict(list)
        self._formula_count = 0
        self._cell = ""  # The reference of the cell that has just begun.

    def note(self, name: str, attributes: dict[str, str]) -> None:
        """Take the next element of the sheet."""
        tag, cell, self._cell = name.rpartition(":")[2], self._cell, ""
        if tag == "c" and attributes.get("t") != "str":  # The result of a text may be empty.
            self._cell = attributes.get("r", "")
        elif tag == "f" and cell and self._formula_count < _MAX_FORMULAS:
            row, column = coordinate_to_tuple(cell)
            self.formulas[row].append(column)
            self._formula_count += 1
        elif tag == "mergeCell" and len(self.merged) < _MAX_MERGED:
            self.merged.append(attributes.get("ref", ""))


def _sheets(
    file: BinaryIO, notes: Mapping[str, _PartNotes], characters: int
) -> Iterator[dict[str, Any]]:
    book = openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)
    cells, lacks_results = MAX_CELLS, False
    for sheet in book.worksheets:
        if sheet.sheet_state != "visible":
            continue
        yield {"sheet": sheet.title}
        rows: list[list[str]] = []
        sheet.reset_dimensions()  # The dimensions that a sheet declares may be wrong.
        part = notes[sheet._worksheet_path.lstrip("/")]  # noqa: SLF001
        for number, row in enumerate(_rows(sheet, part.merged), 1):
            columns = part.formulas.get(number, ())
            lacks_results |= any(not "".join(row[column - 1 : column]) for column in columns)
            cells -= max(len(row), 1)
            characters -= sum(map(len, row))
            if cells < 0:
                yield archives.too_many("cells", MAX_CELLS)
                return
            if characters < 0:
                yield {"error": "characters"}
                return
            rows.append(row)
            if len(rows) == _ROWS_A_RECORD:
                yield {"rows": rows}
                rows = []
        yield {"rows": rows}
    has_hidden = any(sheet.sheet_state != "visible" for sheet in book.worksheets)
    yield {"has_hidden": has_hidden, "lacks_results": lacks_results}


def _rows(sheet: Any, merged: list[str]) -> Iterator[list[str]]:
    """Yield rows; a cell that spans several rows is repeated in each of them. Those far beyond the
    last cell of a row are not."""
    spans = {}
    for reference in merged:
        left, top, _, bottom = range_boundaries(reference)
        if bottom > top:
            spans[top, left] = bottom
    open_spans: dict[int, tuple[str, int]] = {}
    for number, row in enumerate(sheet.iter_rows(), 1):
        texts = [_as_shown(cell) for cell in row]
        if any(texts):  # Rows end with their last own cell.
            beyond = max(open_spans, default=0) - len(texts)
            texts += [""] * (beyond if beyond <= _MAX_BEYOND else 0)
        for column in list(open_spans):
            text, bottom = open_spans[column]
            if number > bottom:
                del open_spans[column]
            elif column <= len(texts) and not texts[column - 1]:
                texts[column - 1] = text
        for column, text in enumerate(texts, 1):
            bottom = spans.get((number, column), 0)
            if bottom and text and len(text) <= _MAX_REPEATED:
                open_spans[column] = (text, bottom)
        yield texts


def _as_shown(cell: Any) -> str:  # noqa: PLR0911 - a table of cases
    value = cell.value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, datetime.datetime):
        return _date(value, cell.number_format or "")
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, datetime.time):
        return value.isoformat(timespec="minutes")
    if isinstance(value, datetime.timedelta):
        return _duration(value, cell.number_format or "")
    if isinstance(value, int | float):
        return _number(value, cell.number_format or "")
    return str(value)


def _date(value: datetime.datetime, number_format: str) -> str:
    """Format a date, a time or both, depending on its number format."""
    codes = _QUOTED.sub("", number_format).lower()
    if value.time() == datetime.time() or ("h" not in codes and "d" in codes):
        return value.date().isoformat()
    if "h" in codes and not re.search("[yd]", codes):
        return value.time().isoformat(timespec="minutes")
    return value.isoformat(sep=" ", timespec="minutes")


def _duration(value: datetime.timedelta, number_format: str) -> str:
    """Format a duration in hours and minutes, and in seconds if its number format has them."""
    seconds = round(value.total_seconds())
    minutes, second = divmod(abs(seconds), 60)
    shown = f"{'-' if seconds < 0 else ''}{minutes // 60}:{minutes % 60:02}"
    has_seconds = "s" in _QUOTED.sub("", number_format).lower()
    return f"{shown}:{second:02}" if has_seconds else shown


def _number(value: float, number_format: str) -> str:
    """Format a number with the decimals, commas, percent sign and currency of its format."""
    positive = number_format.split(";", maxsplit=1)[0]
    decimals = _DECIMALS.search(positive)
    places = len(decimals.group(1)) if decimals else None
    if "%" in positive:
        return f"{value * 100:.{places or 0}f}%"
    comma = "," if _GROUPED.search(positive) else ""
    if places is None and (comma or value == int(value)):
        shown = f"{round(value):{comma}}"
    elif places is None:
        shown = f"{value:.10g}"
    else:
        shown = f"{value:{comma}.{places}f}"
    words = "".join(first or second for first, second in _QUOTED.findall(positive))
    currency = _CURRENCY.search(_QUOTED.sub("", positive)) or _CURRENCY.search(words)
    unit = "" if currency else "".join(re.findall(r'"([^"]*)"\s*$', positive))
    return f"{currency.group() if currency else ''}{shown}{unit}"
