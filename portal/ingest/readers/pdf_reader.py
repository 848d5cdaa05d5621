"""Reader of a PDF that yields its page count, then each page, then the document.

    {"pages": 12}
    {"label": "iv", "lines": [[text, left, right, baseline, size, style], …],
     "tables": [[3, rows, top, size], …]}
    {"outline": [[level, title, page index], …]}

`style` is "bold", "turned" (text that does not run from left to right) or empty.
`tables` are tagged, ruled or aligned tables: the index of the line that follows, the texts of the
cells, the upper end and the usual size; their lines are left out of `lines`. A page with hardly
any text and no pictures has `is_blank`.

PDFium is C++ and not thread-safe, one more reason not to share a process with the portal.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from statistics import median_low
from typing import Any, BinaryIO

import pypdfium2
import pypdfium2.raw as pdfium

from portal.ingest.readers import page_fonts
from portal.ingest.readers.pdf import columns as pdf_columns
from portal.ingest.readers.pdf import tables as pdf_tables
from portal.ingest.readers.pdf import tags as pdf_tags
from portal.ingest.readers.pdf.characters import JOINER, Characters

MAX_OUTLINE_ITEMS = 5_000
_MAX_TITLE_LENGTH = 500
_MAX_BLANK_LINES = 2  # A header and a page number.
_MAX_RULES = 20  # Objects of a page without pictures; drawn letters are more.
_MAX_RULE_WIDTH = 2.5  # points
# PDFium's character for a hyphen where it joined two lines ends a line too.
_LINE = re.compile(r"[^\r\n\x02]*\x02|[^\r\n\x02]+")
_WORD = re.compile(r"[^\s\0]+")
_VISIBLE = re.compile(r"[^\s\0](?:.*[^\s\0])?", re.DOTALL)
# Between parts of a line, in multiples of its size: PDFium ends lines at raised or lowered letters.
_MAX_GAP = 0.5
_MAX_OVERLAP = 1.0
_MAX_SHIFT = 0.5
_WORD_GAP = 0.15
# Alone at the beginning of a line even a hyphen is a bullet.
_BULLET = re.compile(r"[-–•▪●○◆■□►✓\uf0a7\uf0b7\uf0d8\x02]\s*")
_MAX_BULLET_GAP = 4.0


def load(*, fonts: Iterable[Sequence[Any]] = (), **_options: object) -> None:
    """Open `fonts`. Without one for their language, PDFium leaves out single characters whose font
    the file does not embed."""
    page_fonts.install(fonts)


def read(
    file: BinaryIO, *, pages: int, characters: int, lines: int, **_options: object
) -> Iterator[dict[str, Any]]:
    """Yield the records; end with an error above `pages`, `characters` or `lines`. Lines have their
    own limit because short ones take a hundred times the memory of their text in the caller."""
    try:
        document = pypdfium2.PdfDocument(file)
        page_count = len(document)
    except pypdfium2.PdfiumError as error:
        if error.err_code in {pdfium.FPDF_ERR_PASSWORD, pdfium.FPDF_ERR_SECURITY}:
            yield {"error": "encrypted"}
        else:
            # PDFium refuses a valid file without pages, but reports no error.
            is_whole = error.err_code == pdfium.FPDF_ERR_SUCCESS
            yield {"error": "no_pages" if is_whole else "broken"}
        return
    if page_count == 0:
        yield {"error": "no_pages"}
        return
    if page_count > pages:
        yield {"error": "pages"}
        return
    yield {"pages": page_count}
    max_lines = lines
    for index in range(page_count):
        page = _read_page(document, index)
        cells = [cell for _, rows, *_ in page.get("tables", ()) for row in rows for cell in row]
        characters -= sum(len(line[0]) for line in page["lines"]) + sum(map(len, cells))
        lines -= len(page["lines"]) + len(cells)
        if characters < 0 or lines < 0:
            yield (
                {"error": "characters"}
                if characters < 0
                else {"error": "too_many", "what": "lines", "limit": max_lines}
            )
            return
        yield page
    yield {"outline": list(_outline(document))}


def _read_page(document: pypdfium2.PdfDocument, index: int) -> dict[str, Any]:
    try:
        page = document[index]
        text_page = page.get_textpage()
    except pypdfium2.PdfiumError:
        return {"label": "", "lines": []}
    characters = Characters(text_page.raw)
    matches = _lines(characters)
    tags = pdf_tags.LineTags(page.raw, text_page.raw)
    measured = [_measure(characters, line, tags) for line in matches]
    # Headers and footers are artifacts; programs that mark all text as such have tagged none of it.
    kept = [line for line, is_artifact in measured if not is_artifact]
    if 2 * len(kept) < len(measured):
        kept = [line for line, _ in measured]
    lines = _join_lines(kept)
    tables = _tables(page.raw, characters, matches) if lines else []
    is_blank = len(lines) <= _MAX_BLANK_LINES and not _has_pictures(page.raw)
    text_page.close()
    page.close()
    lines, placed = _without_tables(lines, tables)
    record = {"label": document.get_page_label(index), "lines": lines, "tables": placed}
    return record | {"is_blank": True} if is_blank else record


def _has_pictures(page: Any) -> bool:
    """Return whether a page has more than text and a few rules."""
    count = pdfium.FPDFPage_CountObjects(page)
    return count > _MAX_RULES or not all(
        _is_text_or_rule(pdfium.FPDFPage_GetObject(page, index)) for index in range(count)
    )


def _is_text_or_rule(drawn: Any) -> bool:
    kind = pdfium.FPDFPageObj_GetType(drawn)
    if kind != pdfium.FPDF_PAGEOBJ_PATH:
        return bool(kind == pdfium.FPDF_PAGEOBJ_TEXT)
    left, bottom, right, top = (ctypes.c_float() for _ in range(4))
    pdfium.FPDFPageObj_GetBounds(drawn, left, bottom, right, top)
    return min(right.value - left.value, top.value - bottom.value) < _MAX_RULE_WIDTH


def _tables(
    page: Any, characters: Characters, lines: Sequence[re.Match[str]]
) -> list[pdf_tables.Table]:
    """Return the tables of a page, top to bottom: by its tags, by rules, else by their columns."""
    tables = pdf_tags.find_tables(page, characters)
    for found in (
        pdf_tables.find_tables(page, characters),
        pdf_columns.find_tables(characters, lines),
    ):
        known = list(tables)
        tables += [table for table in found if not any(map(table.overlaps, known))]
    return sorted(tables, key=lambda table: -table.top)


def _without_tables(
    lines: list[list[Any]], tables: list[pdf_tables.Table]
) -> tuple[list[list[Any]], list[list[Any]]]:
    """Return the lines outside tables, and the tables as in the record of a page."""
    kept: list[list[Any]] = []
    first: dict[int, int] = {}  # By table, the place of its first line.
    sizes: dict[int, list[float]] = {}
    for line in lines:
        _, left, right, baseline, size, _ = line
        within = (number for number, t in enumerate(tables) if t.holds(left, right, baseline))
        number = next(within, None)
        if number is None:
            kept.append(line)
        else:
            first.setdefault(number, len(kept))
            sizes.setdefault(number, []).append(size)
    placed = [
        [_place_of(table, kept, place), table.rows, round(table.top, 1), median_low(sizes[number])]
        for number, place in sorted(first.items())
        for table in [tables[number]]
    ]
    return kept, placed


def _place_of(table: pdf_tables.Table, lines: list[list[Any]], first: int) -> int:
    """Return the index of the line that follows a table: the one after the nearest line above it on
    the page. Programs may write tables after all other text of the page. `first` is the place of
    the table in the file."""
    beside = [
        (line[3], index)
        for index, line in enumerate(lines)
        if line[1] < table.right and table.left < line[2]
    ]
    above = max(((-y, place) for y, place in beside if y > table.top), default=None)
    below = max(((y, -place) for y, place in beside if y < table.bottom), default=None)
    if above and below and -below[1] < above[1]:
        return first  # A header may be written last, or a footer first.
    if above:
        return above[1] + 1
    return -below[1] if below else first


def _lines(characters: Characters) -> list[re.Match[str]]:
    """Return the lines of one page in reading order, as matches at their character numbers."""
    lines = [line for line in _LINE.finditer(characters.text) if line.group().strip("\0")]
    return [part for line in lines for part in _parts_by_direction(characters, line)]


def _parts_by_direction(characters: Characters, line: re.Match[str]) -> Iterator[re.Match[str]]:
    """Cut a line where its text is turned: PDFium may continue a line with text elsewhere."""
    words = list(_WORD.finditer(line.string, *line.span()))
    starts = [word.start() for word in words]
    if not words or len({characters.is_turned(place) for place in (starts[0], starts[-1])}) == 1:
        yield line
        return
    parts = groupby(starts, characters.is_turned)
    cuts = [line.start(), *[next(group) for _, group in parts][1:], line.end()]
    yield from (part for span in pairwise(cuts) if (part := _LINE.search(line.string, *span)))


def _measure(
    characters: Characters, line: re.Match[str], tags: pdf_tags.LineTags
) -> tuple[list[Any], bool]:
    """Return a line as [text, left, right, baseline, size, style], and whether it is an
    artifact."""
    visible = _VISIBLE.search(line.string, *line.span())
    first, end = visible.span() if visible else (line.start(), line.start() + 1)
    left, right, baseline = characters.place(first, end - 1)
    # A bullet may have a type of its own.
    lead = _BULLET.match(line.string, first, end)
    size, style = characters.type(min(lead.end(), end - 1) if lead else first)
    if style == "bold" and end - 1 > first and characters.type(end - 1)[1] != "bold":
        style = ""
    # Surrogate halves come one by one; together they are one character.
    text = line.group().replace("\0", "").replace(JOINER, "")
    text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if tags.begins_item(first) and not lead:
        text = f"- {text}"
    measures = [round(measure, 1) for measure in (left, right, baseline, size)]
    return [text, *measures, style], tags.is_artifact(first)


def _join_lines(parts: Iterable[list[Any]]) -> list[list[Any]]:
    """Join the parts of lines that PDFium cut at a raised or lowered letter, or after a bullet."""
    groups: list[list[list[Any]]] = []
    for part in parts:
        # PDFium may write another line between the first letter of a line and the rest.
        near = groups[-1:] + [group for group in groups[-3:-1] if _touches(group[-1], part)]
        group = next((group for group in near if _continues(group[-1], part)), None)
        if group:
            group.append(part)
        else:
            groups.append([part])
    return [_join_parts(group) if len(group) > 1 else group[0] for group in groups]


def _continues(part: list[Any], after: list[Any]) -> bool:
    text, _, right, baseline, size, style = part
    _, left, after_right, after_baseline, after_size, after_style = after
    larger = max(size, after_size)
    max_gap = _MAX_BULLET_GAP if _BULLET.fullmatch(text) else _MAX_GAP
    return (
        "turned" not in {style, after_style}
        and (not text.endswith("\x02") or text == "\x02")
        and -_MAX_OVERLAP * larger <= left - right <= max_gap * larger
        and after_right > right
        and abs(baseline - after_baseline) <= _MAX_SHIFT * larger
    )


def _touches(part: list[Any], after: list[Any]) -> bool:
    _, _, right, baseline, size, style = part
    _, left, _, after_baseline, *after_type = after
    is_level = baseline == after_baseline and [size, style] == after_type
    return is_level and abs(left - right) <= _WORD_GAP * size


def _join_parts(parts: list[list[Any]]) -> list[Any]:
    first = parts[0][0]
    texts = ["•" if _BULLET.fullmatch(first) else first]
    for part, after in pairwise(parts):
        is_apart = after[1] - part[2] > _WORD_GAP * max(part[4], after[4])
        texts += [" "] * is_apart + [after[0]]
    _, _, _, baseline, size, style = max(parts, key=lambda part: (part[4], len(part[0])))
    style = style if all(part[5] == style for part in parts if len(part[0].strip()) > 1) else ""
    return ["".join(texts), parts[0][1], max(part[2] for part in parts), baseline, size, style]


def _outline(document: pypdfium2.PdfDocument) -> Iterator[tuple[int, str, int]]:
    try:
        for number, item in enumerate(document.get_toc(max_depth=6)):
            if number >= MAX_OUTLINE_ITEMS:
                return
            destination = item.get_dest()
            index = destination.get_index() if destination else None
            if index is not None:
                yield item.level + 1, item.get_title()[:_MAX_TITLE_LENGTH], index
    except pypdfium2.PdfiumError:
        return  # A broken outline does not affect the text.
