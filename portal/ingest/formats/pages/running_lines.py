"""Headers, footers and page numbers, which repeat on the pages of a layout."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from heapq import nsmallest

from portal.ingest.formats.pages.page_layout import HEADING_SIZE, Line, usual_size

_PAGE_NUMBER = re.compile(
    r"(?:[-–—•·\s]*(?:\d{1,4}|[ivxlc]{1,7})[-–—•·\s]*|第\s*\d+\s*[页頁](?:[,，/\s共]*\d+\s*[页頁])?"
    r"|page\s+\d+(?:\s+of\s+\d+)?|\d+\s*/\s*\d+)",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?<!\d)\d{1,4}(?!\d)")
_SMALL_SIZE = 0.95
_MAX_RUNNING = 2  # Lines of a header, and of a footer.


def without_running_lines(pages: Sequence[Sequence[Line]]) -> list[list[Line]]:
    """Return pages without page numbers, headers and footers: lines at the top or bottom that most
    pages repeat, or several at the same height or next to the page number. They would interrupt
    sentences that continue on the next page."""
    edges = [_page_edges(page) for page in pages]
    body_size = usual_size(line for page in pages for line in page)
    counts = Counter(
        key
        for number, page in enumerate(pages)
        for key in {
            key
            for edge in edges[number]
            for place in edge
            for key in _running(page[place], number, body_size)
        }
    )
    # Fewer than three lines without a number may be chance, except in small type.
    min_counts = {
        "text": max(3, len(pages) * 0.6),
        "place": max(3, len(pages) * 0.05),
        "small": max(2, len(pages) * 0.05),
        "number": 2,
    }
    repeated = {key for key, count in counts.items() if count >= min_counts[key[0]]}
    kept = []
    for number, page in enumerate(pages):
        running: set[int] = set()
        for edge in edges[number]:
            for place in edge:
                if len(running) + 1 >= len(page) or not (
                    repeated.intersection(_running(page[place], number, body_size))
                    or _PAGE_NUMBER.fullmatch(page[place].text)
                ):
                    break
                running.add(place)
        kept.append([line for place, line in enumerate(page) if place not in running])
    return kept


def _page_edges(page: Sequence[Line]) -> tuple[list[int], list[int]]:
    """Return the indexes of the lowest and of the highest lines, from the edge inwards. Programs
    may write headers and footers before or after the rest of the page."""
    if len(page) < 2:  # noqa: PLR2004
        return [], []
    lowest = nsmallest(
        _MAX_RUNNING, range(len(page)), key=lambda place: (page[place].baseline, -place)
    )
    highest = nsmallest(
        _MAX_RUNNING, range(len(page)), key=lambda place: (-page[place].baseline, place)
    )
    return lowest, highest


def _running(line: Line, page: int, body_size: float) -> Iterator[tuple[str, str, int]]:
    """Yield what the line shares with running lines of other pages: its text, that with its height,
    and that with a number at its end or beginning that follows the page's."""
    if not line.text or line.rows:
        return
    yield from _repeated_as(line, line.text, body_size)
    for match in _NUMBER.finditer(line.text):
        start, end = match.span()
        # Other numbers stay, because lines that differ in them, such as totals, have content.
        pattern = f"{line.text[:start]}#{int(match.group()) - page}{line.text[end:]}"
        yield from _repeated_as(line, pattern, body_size)
        is_leading = start == 0 and line.text[end : end + 1].isspace()
        if is_leading or (end == len(line.text) and line.text[start - 1 : start].isspace()):
            yield "number", pattern, 0


def _repeated_as(line: Line, pattern: str, body_size: float) -> Iterator[tuple[str, str, int]]:
    yield "text", pattern, 0
    if line.size <= body_size * HEADING_SIZE:  # Titles of slides are repeated too.
        yield "place", pattern, round(line.baseline / 2)
    if line.size < body_size * _SMALL_SIZE:
        yield "small", pattern, round(line.baseline / 2)
