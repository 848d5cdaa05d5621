"""Headings of a PDF: by its outline, else by large or bold type."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from portal.domain.documents import Heading
from portal.ingest.formats.pages.page_layout import HEADING_SIZE, Paragraph, readable
from portal.ingest.formats.texts.readable_text import is_caption
from portal.text.characters.scripts import HAN

_MIN_BOLD_SIZE = 0.95
_MAX_HEADING_LENGTH = 120
_MAX_HEADING_LINES = 4
_HEADING_LEVELS = 4
_MAX_HEADING_RUN = 3
_MIN_HEADER_CELLS = 3  # A title and its number may be two paragraphs.
_TWO_LETTERS = re.compile(rf"[^\W\d_]{{2}}|[{HAN}]")
# The end of a sentence or of a label, or a line of a table of contents.
_NO_HEADING = re.compile(r"[.,;:。，；：、]$|(?:[.·…]\s?){4,}")
_HEADING_NUMBER = re.compile(r"\d{1,2}(?:\.\d{1,2}){0,4}\.?\s*(?=[^\W\d_])")
# Numbering that the text may have before a title of the outline: "2.1", "Chapter 3:", "第三章".
_NUMBERING = re.compile(
    r"(?:(?:Chapter|Section|Part|Appendix)\s+)?(?:[\dA-Z]{1,3}(?:\.\d{1,3}){0,4}[.:]?|[IVXL]+\.)\s+\Z"
    r"|第[一二三四五六七八九十百\d]{1,4}[章节節部篇条條]\s*\Z|[一二三四五六七八九十]{1,3}、\s*\Z",
    re.IGNORECASE,
)
_MAX_NUMBER_LENGTH = 24
_SEARCHED = 20_000  # Characters of a page searched for a title; no page has more.
_SPACES = re.compile(r"[^\S\n]+")


def outlined_headings(
    outline: Iterable[tuple[int, str, int]], text: str, ranges: Sequence[tuple[int, int]]
) -> tuple[Heading, ...]:
    headings = []
    found_until = 0
    for level, raw_title, page in outline:
        title = _SPACES.sub(" ", readable(raw_title)).strip()
        if not title or not 0 <= page < len(ranges):
            continue
        start, end = ranges[page]
        # Titles follow each other in order; the same words further up are a table of contents.
        first = max(start, found_until)
        place = _find_words(text, title, first, min(end, first + _SEARCHED))
        if place is None:
            place = max(start, min(found_until, end))
        else:
            number = _NUMBERING.search(text, max(start, place - _MAX_NUMBER_LENGTH), place)
            if number and (number.start() == start or text[number.start() - 1] == "\n"):
                place, title = number.start(), text[number.start() : place] + title
        found_until = place
        headings.append(Heading(level, title, place))
    return tuple(headings)


def _find_words(text: str, title: str, start: int, end: int) -> int | None:
    """Return the position of a title: the first that is a whole line, else the first of all."""
    words = re.compile(r"\s*".join(map(re.escape, title.split())), re.IGNORECASE)
    found = [match.span() for match in words.finditer(text, start, end)]
    return next((at for at, to in found if _is_line(text, at, to)), found[0][0] if found else None)


def _is_line(text: str, start: int, end: int) -> bool:
    begin = text.rfind("\n", max(start - _MAX_NUMBER_LENGTH, 0), start) + 1
    number = text[begin:start]
    return text[end : end + 1] in {"", "\n"} and (not number or bool(_NUMBERING.match(number)))


def styled_headings(
    paragraphs_by_page: Sequence[Sequence[Paragraph]], text: str, ranges: Sequence[tuple[int, int]]
) -> tuple[Heading, ...]:
    """Return short paragraphs in larger or bold type; the largest is level one."""
    amount: Counter[tuple[float, str]] = Counter()
    in_tables: Counter[tuple[float, str]] = Counter()
    for page in paragraphs_by_page:
        for paragraph in page:
            (in_tables if paragraph.rows else amount)[_type(paragraph)] += len(paragraph.text)
    if not amount:
        return ()
    body, length = amount.most_common(1)[0]
    if in_tables.total() > length and _has_only_titles(paragraphs_by_page, body):
        body = in_tables.most_common(1)[0][0]
    types = sorted((style for style in amount if _stands_out(style, body)), reverse=True)
    levels = {one: min(rank, _HEADING_LEVELS) for rank, one in enumerate(types, 1)}
    headings: list[Heading] = []
    run: list[tuple[Heading, Paragraph]] = []  # Headings with nothing between.
    for page, (place, _) in zip(paragraphs_by_page, ranges, strict=True):
        for paragraph in page:
            level = levels.get(_type(paragraph))
            if level and _is_title(paragraph):
                run.append((Heading(level, paragraph.text, place), paragraph))
            else:
                headings += _titles(run)
                run = []
            place += len(paragraph.text) + 2  # noqa: PLW2901 - walks along the page
    headings += _titles(run)
    found = [heading for heading in headings if text.startswith(heading.title, heading.start)]
    first = min((h.level for h in found if _depth(h) == 1), default=1)
    return tuple(replace(h, level=first + depth - 1) if (depth := _depth(h)) else h for h in found)


def _depth(heading: Heading) -> int:
    """Return the depth of a numbered heading, 2 for "3.1 Costs", 0 without a number."""
    number = _HEADING_NUMBER.match(heading.title)
    return number.group().rstrip(". ").count(".") + 1 if number else 0


def _type(paragraph: Paragraph) -> tuple[float, str]:
    return round(2 * paragraph.size) / 2, paragraph.style


def _stands_out(one: tuple[float, str], body: tuple[float, str]) -> bool:
    size, style = one
    is_bold = style == "bold" and body[1] != "bold" and size >= _MIN_BOLD_SIZE * body[0]
    return style != "turned" and (is_bold or size > HEADING_SIZE * body[0])


def _is_title(paragraph: Paragraph) -> bool:
    text = paragraph.text
    return (
        not paragraph.rows
        and len(text) <= _MAX_HEADING_LENGTH
        and paragraph.line_count <= _MAX_HEADING_LINES
        and bool(_TWO_LETTERS.search(text))
        and not _NO_HEADING.search(text)
        and not is_caption(text)
        and (not paragraph.is_item or text[:1].isdigit())
    )


def _has_only_titles(
    paragraphs_by_page: Iterable[Iterable[Paragraph]], one: tuple[float, str]
) -> bool:
    """Return whether all paragraphs of a type may be titles, as in a document of tables."""
    return all(
        _is_title(paragraph)
        for page in paragraphs_by_page
        for paragraph in page
        if not paragraph.rows and _type(paragraph) == one
    )


def _titles(run: Sequence[tuple[Heading, Paragraph]]) -> Sequence[Heading]:
    """Return the headings of a run; of many only the first, because they are labels of a drawing,
    or names below a title. Several side by side are the header of a table."""
    headings = [heading for heading, _ in run]
    if len(run) >= _MIN_HEADER_CELLS and all(
        abs(one.baseline - after.baseline) < after.size for (_, one), (_, after) in pairwise(run)
    ):
        return []
    return headings if len(run) <= _MAX_HEADING_RUN else headings[:1]
