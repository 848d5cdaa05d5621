"""Tables that plain text draws with spaces, tabs or bars."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from statistics import fmean

from portal.domain.documents.structure import Block
from portal.ingest.formats.texts.readable_text import ReadableText
from portal.text.characters.scripts import WIDE
from portal.text.layout.tables import header_count

_CELL = re.compile(r"\S+(?: \S+)*")
_FIGURE = re.compile(r"\W{0,3}\d[\d,./\s-]*\w{0,3}")  # 5 EUR, £95, ±2
_WIDE = re.compile(f"[{WIDE}]")
# Spaces alone are not a rule: they end a paragraph, and so a table.
_RULE = re.compile(r"(?=.*[-=─━═])[\s:=\-─━═|│┃+┌┬┐├┼┤└┴┘╒╤╕╞╪╡╘╧╛]{3,}")
_BARRED_RULE = re.compile(rf"(?=.*[|│┃+┌┬┐├┼┤└┴┘╒╤╕╞╪╡╘╧╛]){_RULE.pattern}")
# Edges of boxes, alone or side by side; a grid has crosses between its corners.
_EDGE = re.compile(r"\s*(?:[+┌└╒╘][-=─═]+[+┐┘╕╛]\s*)+")
# Bars of a chart and arrows, whose meaning is their place in the line.
_DRAWN = re.compile(r"<?[-=─━═#█▓▒░■]{4,}>?")
_BAR = re.compile(r"[|│┃]")
# Bars between cells have a space beside them; "a|b" has no border, unless bars enclose the line.
_BORDER = re.compile(r"\s[|│┃]\s?|[|│┃]\s")
_OPEN_EDGE = re.compile(r"\A[|│┃]\s+")
# Cells of programs, settings, listings of files and logs, which stay as they are.
_OF_PROGRAMS = re.compile(
    r"(?://|[#=$] |[-dl][rwx-]{9}\b).*|.*[;{}]|\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*"
    r"|.*\d>&\d.*|(?:awk|grep|jq|sed|tee|xargs) .+"
)
# Labels of clauses and items, after which a text may have two spaces.
_LABEL = re.compile(
    r"第.{1,6}[条章节款项]|[（(]?(?:\d{1,3}|[a-z]|[ivx]{1,4}|[一二三四五六七八九十]{1,3})[)）.、]"
    r"|(?:article|section|clause|art\.|§)\s?\d{1,3}[.:]?",
    re.IGNORECASE,
)
_MIN_ROWS = 3
_MIN_BARRED = 2  # Rows and columns of a table with bars and a rule.
_MIN_COLUMNS = 3  # Two columns are a table only below a header.
_MAX_COLUMNS = 50  # Each cell of a row is compared with each column.
_MAX_MEAN_CELL = 30  # Characters; longer ones are text set in columns.

_Cells = list[tuple[int, str]]


def with_tables(text: str) -> tuple[str, tuple[Block, ...]]:
    """Return a text with borders between the cells of the tables that it draws, and these tables.
    Linear in len(text)."""
    lines = text.split("\n")
    parts: list[str] = []
    blocks: list[Block] = []
    length = done = 0
    for first, end, rows in find_tables(lines):
        before = "".join(f"{line}\n" for line in lines[done:first])
        table = ReadableText()
        for row in rows:
            table.add_row(row)
        table.close_table()
        blocks += (block.shifted(length + len(before)) for block in table.blocks)
        parts += (before, table.text(), "\n" if end < len(lines) else "")
        length += sum(map(len, parts[-3:]))
        done = end
    return "".join((*parts, "\n".join(lines[done:]))), tuple(blocks)


def find_tables(lines: Sequence[str]) -> Iterator[tuple[int, int, list[list[str]]]]:
    """Yield the index of the first line of each table, that of the line after it, and its rows."""
    place = 0
    while place < len(lines):
        if _BAR.search(lines[place]) or _BARRED_RULE.fullmatch(lines[place]):
            first = place
            place, rows = _barred(lines, first)
            if rows:
                yield first, place, rows
            continue
        columns = [[start for start, _ in cells] for cells in _cells(lines[place])]
        end, rows = place, list[list[str]]()
        while len(columns[0]) > 1 and end < len(lines):
            if end != place + 1 or not _RULE.fullmatch(lines[end]):
                row = _row(lines[end], columns, rows[-1] if rows else [])
                if row is None:
                    break
                rows.append(row)
            end += 1
        if len(rows) >= _MIN_ROWS and _are_cells(rows):
            yield place, end, rows
        place = end if len(rows) >= _MIN_ROWS else place + 1


def _barred(lines: Sequence[str], first: int) -> tuple[int, list[list[str]]]:
    """Return the index of the line after a table that is drawn with bars, and its rows; no rows if
    the lines do not form a table."""
    rows = list[list[str]]()
    place = end = first
    while place < len(lines):
        if not _RULE.fullmatch(lines[place]):
            row = _between_bars(lines[place])
            if len(row) < _MIN_BARRED or (rows and len(row) != len(rows[0])):
                break
            rows += [row] if any(row) else []
            end = place + 1
        place += 1
    # A plain rule below the last row may belong to what follows, as the frame of a heading.
    if end < place and _BARRED_RULE.fullmatch(lines[end]):
        end += 1
    # With a rule above its header or below, one row is enough.
    rules = list(filter(_RULE.fullmatch, lines[first:end]))
    is_ruled = len(rows) >= _MIN_BARRED and not all(map(_EDGE.fullmatch, rules))
    is_plain = len(rows) >= _MIN_ROWS and not rules and _has_columns(rows)
    is_table = is_ruled or (is_plain and not _match_any(_OF_PROGRAMS, rows))
    is_table = is_table and not _match_any(_DRAWN, rows)
    return (end, rows) if is_table else (max(place, first + 1), [])


def _between_bars(line: str) -> list[str]:
    bare = line.strip()
    if not _BAR.search(bare):
        return []
    if len(bare) > 1 and _BAR.match(bare) and _BAR.match(bare[-1]):
        cells = _BAR.split(bare[1:-1])
    elif "||" in bare:
        return []  # "a || b" is one condition.
    else:
        cells = _BORDER.split(_OPEN_EDGE.sub("", bare))
    return [cell.strip() for cell in cells] if len(cells) <= _MAX_COLUMNS else []


def _cells(line: str) -> tuple[_Cells, _Cells]:
    """Return the cells of a line, each with its screen column, twice. Between tabs the column is
    the number of the cell, counted with the empty cells and without, because several tabs may be
    mere alignment."""
    found: _Cells = []
    if _BAR.search(line) or _RULE.fullmatch(line):
        pass  # Of a table that is drawn with bars, or a rule.
    elif "\t" in line.strip():
        fields = [(2 * number, field.strip()) for number, field in enumerate(line.split("\t"))]
        found = [field for field in fields if field[1]]
    else:
        column = done = 0
        for match in _CELL.finditer(line):
            column += match.start() - done + len(_WIDE.findall(line, done, match.start()))
            done = match.start()
            found.append((column, match.group()))
    if len(found) > _MAX_COLUMNS:
        return [], []
    is_tabbed = "\t" in line.strip()
    return found, [(2 * n, text) for n, (_, text) in enumerate(found)] if is_tabbed else found


def _row(line: str, columns: Sequence[Sequence[int]], above: Sequence[str]) -> list[str] | None:
    """Return the cells of a line by column, or None unless each begins where a column does."""
    rows = (_fit(cells, starts, above) for cells, starts in zip(_cells(line), columns, strict=True))
    return next(filter(None, rows), None)


def _fit(cells: _Cells, columns: Sequence[int], above: Sequence[str]) -> list[str] | None:
    """Return the cells by column: each begins where its column does or, in a row with a cell for
    every column, between the columns on either side."""
    if 1 < len(cells) < len(columns):
        cells = _split_at(cells, columns, above)
    if not 1 < len(cells) <= len(columns):
        return None
    if len(cells) == len(columns) >= _MIN_COLUMNS:
        ends = (-1, *columns[:-1]), (*columns[1:], math.inf)
        if all(low < start < high for (start, _), low, high in zip(cells, *ends, strict=True)):
            return [text for _, text in cells]
    row = [""] * len(columns)
    for start, text in cells:
        fitting = [place for place, column in enumerate(columns) if abs(column - start) <= 1]
        if not fitting or row[fitting[0]]:
            return None
        row[fitting[0]] = text
    return row if row[0] else None


def _split_at(cells: _Cells, columns: Sequence[int], above: Sequence[str]) -> _Cells:
    """Split cells that only one space separates where a column begins, if that makes a whole row
    with figures below figures. Labels are not split: long ones reach into the next column."""
    found = list(cells[:1])
    for first, text in cells[1:]:
        start, column, done = first, first, 0
        for place, character in enumerate(text):
            if place and text[place - 1] == " " and column in columns:
                found.append((start, text[done : place - 1]))
                start, done = column, place
            column += 2 if _WIDE.match(character) else 1
        found.append((start, text[done:]))
    is_row = len(found) == len(columns) and all(
        cell in cells or not _FIGURE.fullmatch(upper) or _FIGURE.match(cell[1])
        for cell, upper in zip(found, above, strict=True)
    )
    return found if is_row else cells


def _has_columns(rows: Sequence[Sequence[str]]) -> bool:
    return len(rows[0]) >= _MIN_COLUMNS or bool(header_count(rows))


def _match_any(pattern: re.Pattern[str], rows: Sequence[Sequence[str]]) -> bool:
    return any(pattern.fullmatch(cell) for row in rows for cell in row)


def _are_cells(rows: Sequence[Sequence[str]]) -> bool:
    cells = [cell for row in rows for cell in row]
    is_short = fmean(map(len, cells)) <= _MAX_MEAN_CELL
    is_labelled = len(rows[0]) < _MIN_COLUMNS and all(_LABEL.fullmatch(row[0]) for row in rows)
    is_text = is_labelled or _match_any(_OF_PROGRAMS, rows)
    return _has_columns(rows) and is_short and not is_text
