"""Reader of a PDF that yields its page count, then each page, then the document.

    {"pages": 12}
    {"label": "iv", "lines": [[text, left, right, baseline, size], …], "tables": [[3, rows], …]}
    {"title": …, "outline": [[level, title, page index], …]}

`tables` are tagged or ruled tables: the index of the line that follows, and the texts of the cells;
their lines are left out of `lines`.

PDFium is C++ and not thread-safe, one more reason not to share a process with the portal.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

import pypdfium2
import pypdfium2.raw as pdfium

from portal.ingest.readers import pdf_tables, pdf_tags

MAX_OUTLINE_ITEMS = 5_000
_MAX_TITLE_LENGTH = 500
# PDFium's character for a hyphen where it joined two lines ends a line too.
_LINE = re.compile(r"[^\r\n\x02]*\x02|[^\r\n\x02]+")
_VISIBLE = re.compile(r"[^\s\0](?:.*[^\s\0])?", re.DOTALL)


def read(file: BinaryIO, *, pages: int, characters: int, lines: int) -> Iterator[dict[str, Any]]:
    """Yield the records; end with an error past a limit of `pages`, `characters` or `lines`.

    Lines have a limit of their own because short ones take the caller a hundred times the memory of
    their text.
    """
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
        cells = [cell for _, rows in page.get("tables", ()) for row in rows for cell in row]
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
    yield {"title": _title(document), "outline": list(_outline(document))}


def _read_page(document: pypdfium2.PdfDocument, index: int) -> dict[str, Any]:
    try:
        page = document[index]
        text_page = page.get_textpage()
    except pypdfium2.PdfiumError:
        return {"label": "", "lines": [], "broken": True}
    lines = [_measured(text_page.raw, line) for line in _lines(text_page.raw)]
    tables = _tables(page.raw, text_page.raw) if lines else []
    text_page.close()
    page.close()
    lines, placed = _without_tables(lines, tables)
    return {"label": document.get_page_label(index), "lines": lines, "tables": placed}


def _tables(page: Any, text_page: Any) -> list[pdf_tables.Table]:
    """Return the tables of a page, top to bottom: by its tags where it has any, else by rules."""
    tagged = pdf_tags.find_tables(page, text_page)
    ruled = [
        table
        for table in pdf_tables.find_tables(page, text_page)
        if not any(one.bottom < table.top and table.bottom < one.top for one in tagged)
    ]
    return sorted([*tagged, *ruled], key=lambda table: -table.top)


def _without_tables(
    lines: list[list[Any]], tables: list[pdf_tables.Table]
) -> tuple[list[list[Any]], list[list[Any]]]:
    """Return the lines outside tables, and the line before which each table is."""
    kept: list[list[Any]] = []
    placed: dict[int, list[Any]] = {}
    for line in lines:
        _, left, right, baseline, _ = line
        within = (number for number, t in enumerate(tables) if t.holds(left, right, baseline))
        number = next(within, None)
        if number is None:
            kept.append(line)
        else:
            placed.setdefault(number, [len(kept), tables[number].rows])
    return kept, list(placed.values())


def _lines(text_page: Any) -> list[re.Match[str]]:
    """Return the lines of one page in reading order, as matches at their character numbers."""
    # One call per character is most of the cost of a page, so nothing else is done in the loop.
    unicode, count = pdfium.FPDFText_GetUnicode, pdfium.FPDFText_CountChars(text_page)
    text = "".join([chr(unicode(text_page, index)) for index in range(count)])
    # NUL marks a glyph without a character.
    return [line for line in _LINE.finditer(text) if line.group().strip("\0")]


def _measured(text_page: Any, line: re.Match[str]) -> list[Any]:
    visible = _VISIBLE.search(line.string, *line.span())
    first, end = visible.span() if visible else (line.start(), line.start() + 1)
    left, _, baseline = _place(text_page, first)
    _, right, _ = _place(text_page, end - 1)
    size = pdfium.FPDFText_GetFontSize(text_page, first)
    # Surrogate halves come one by one; together they are one character.
    text = line.group().replace("\0", "")
    text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return [text, round(left, 1), round(right, 1), round(baseline, 1), round(size, 1)]


def _place(text_page: Any, index: int) -> tuple[float, float, float]:
    left, right, bottom, top, x, y = (ctypes.c_double() for _ in range(6))
    pdfium.FPDFText_GetCharBox(text_page, index, left, right, bottom, top)
    pdfium.FPDFText_GetCharOrigin(text_page, index, x, y)
    return left.value, right.value, y.value


def _title(document: pypdfium2.PdfDocument) -> str:
    return str(document.get_metadata_value("Title") or "").strip()[:_MAX_TITLE_LENGTH]


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
