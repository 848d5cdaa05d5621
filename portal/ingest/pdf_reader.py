"""Reads one PDF in a process of its own and prints what stands on its pages as JSON lines.

PDFium is C++ fed with files from strangers, and not thread-safe: it must not share a process with
the portal. This file is run as a script, so it imports nothing of the portal, which also keeps its
start short. One line a page, then one for the document:

    {"label": "iv", "lines": [[text, left, right, baseline, size], …]}
    {"title": …, "outline": [[level, title, page index], …]}

or `{"error": …}` with one of the ERRORS of `portal.ingest.formats.pdf`.
"""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Iterator
from typing import Any

import pypdfium2
import pypdfium2.raw as pdfium

MOST_OUTLINE_ITEMS = 5_000
LINE_END_HYPHEN = "\x02"  # PDFium's sign for a hyphen at which it joined two lines.


def limit_process(memory_mb: int, cpu_seconds: int) -> None:
    """Make the system end this process rather than let it take the machine down."""
    try:
        import resource
    except ImportError:  # Windows; the wall time limit of the parent still holds.
        return
    memory = memory_mb << 20
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def read(path: str, *, pages: int, characters: int) -> Iterator[dict[str, Any]]:
    """Pages, then the document; ends with an error where a limit is passed."""
    try:
        document = pypdfium2.PdfDocument(path)
        page_count = len(document)
    except pypdfium2.PdfiumError as error:
        locked = error.err_code in {pdfium.FPDF_ERR_PASSWORD, pdfium.FPDF_ERR_SECURITY}
        yield {"error": "encrypted" if locked else "broken"}
        return
    if page_count == 0:
        yield {"error": "broken"}
        return
    if page_count > pages:
        yield {"error": "pages"}
        return
    for index in range(page_count):
        page = _read_page(document, index)
        characters -= sum(len(line[0]) for line in page["lines"])
        if characters < 0:
            yield {"error": "characters"}
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
    text_page.close()
    page.close()
    return {"label": document.get_page_label(index), "lines": lines}


def _lines(text_page: Any) -> Iterator[list[tuple[int, str]]]:
    """Lines of one page in reading order, as (index, character)."""
    line: list[tuple[int, str]] = []
    for index in range(pdfium.FPDFText_CountChars(text_page)):
        character = chr(pdfium.FPDFText_GetUnicode(text_page, index))
        if character not in "\r\n\0":
            line.append((index, character))
        if character in "\r\n" or character == LINE_END_HYPHEN:
            if line:
                yield line
            line = []
    if line:
        yield line


def _measured(text_page: Any, line: list[tuple[int, str]]) -> list[Any]:
    visible = [index for index, character in line if not character.isspace()] or [line[0][0]]
    left, _, baseline = _place(text_page, visible[0])
    _, right, _ = _place(text_page, visible[-1])
    size = pdfium.FPDFText_GetFontSize(text_page, visible[0])
    # Surrogate halves come one by one; together they are one character.
    text = "".join(character for _, character in line)
    text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return [text, round(left, 1), round(right, 1), round(baseline, 1), round(size, 1)]


def _place(text_page: Any, index: int) -> tuple[float, float, float]:
    left, right, bottom, top, x, y = (ctypes.c_double() for _ in range(6))
    pdfium.FPDFText_GetCharBox(text_page, index, left, right, bottom, top)
    pdfium.FPDFText_GetCharOrigin(text_page, index, x, y)
    return left.value, right.value, y.value


def _title(document: pypdfium2.PdfDocument) -> str:
    return str(document.get_metadata_value("Title") or "").strip()


def _outline(document: pypdfium2.PdfDocument) -> Iterator[tuple[int, str, int]]:
    try:
        for number, item in enumerate(document.get_toc(max_depth=6)):
            if number >= MOST_OUTLINE_ITEMS:
                return
            destination = item.get_dest()
            index = destination.get_index() if destination else None
            if index is not None:
                yield item.level + 1, item.get_title(), index
    except pypdfium2.PdfiumError:
        return  # A broken outline takes nothing from the text.


def main(
    path: str, mode: str, *, pages: int, characters: int, memory_mb: int, seconds: int
) -> None:
    """Print what `read` yields; with mode `open`, only whether the file opens."""
    limit_process(memory_mb, seconds)
    out = sys.stdout
    try:
        for record in read(path, pages=pages if mode == "read" else sys.maxsize,
                           characters=characters):  # fmt: skip
            out.write(json.dumps(record) + "\n")
            if mode == "open":
                break
    except MemoryError:
        out.write(json.dumps({"error": "memory"}) + "\n")


if __name__ == "__main__":
    _path, _mode, *_limits = sys.argv[1:]
    _names = ("pages", "characters", "memory_mb", "seconds")
    main(_path, _mode, **dict(zip(_names, map(int, _limits), strict=True)))
