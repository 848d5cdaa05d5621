"""PDF: the text of its pages, read by PDFium in a limited process."""

from __future__ import annotations

import re
import sys
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from portal.domain.documents import ExtractedText, Page
from portal.domain.documents.structure import Block, BlockKind
from portal.errors import BlankPdf, BrokenPdf, EncryptedPdf, NoTextInPdf, PortalError
from portal.ingest.fonts import measuring_fonts
from portal.ingest.formats.pages import page_recognition
from portal.ingest.formats.pages.page_layout import (
    LINE_END_HYPHEN,
    Line,
    Paragraph,
    join,
    paragraphs,
    readable,
    words_of,
)
from portal.ingest.formats.pages.pdf_headings import outlined_headings, styled_headings
from portal.ingest.formats.pages.running_lines import without_running_lines
from portal.ingest.formats.texts.readable_text import ReadableText, is_caption, one_line
from portal.ingest.limits import ExtractionLimits, FileToRead
from portal.ingest.reader_process import read_records
from portal.text.characters.scripts import HAN

EXTRACTOR = "pypdfium2"

# The max lines of a file in the worker's memory; 5,000 full pages have a third as many.
_MAX_LINES = 1_000_000
_SYMBOLS = str.maketrans(dict.fromkeys("\uf0a7\uf0b7\uf0d8\uf06e\uf076\uf0fc", "•"))
_MAX_LABEL_LENGTH = 30
_OPEN_LIMITS = ExtractionLimits(timeout_s=10)
_SPACES = re.compile(r"[^\S\n]+")
_ENDS_PARAGRAPH = re.compile(r"[.!?:;…。！？：；][”’」』）\"')\]]*\Z")
_HAN_ON_BOTH_SIDES = re.compile(f"[{HAN}，、][{HAN}]")


@dataclass(slots=True)
class _Pages:
    """The reader's output for a file: the lines and label of each page, the numbers of `blank`
    pages, and the outline."""

    lines: list[list[Line]] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    blank: set[int] = field(default_factory=set)
    outline: list[tuple[int, str, int]] = field(default_factory=list)

    def without_text(self, pages: Sequence[Sequence[Line]]) -> list[int]:
        """Return the numbers of the pages that are not blank and have no readable text."""
        return [
            number
            for number, lines in enumerate(pages, 1)
            if number not in self.blank and not any(line.text.strip() for line in lines)
        ]


def extract(file: FileToRead) -> ExtractedText:
    """Return text by paragraphs, with pages, their labels, and headings by outline or size. Pages
    without text are recognised if the extra `ocr` is installed; else a warning names them. Raises
    EncryptedPdf, BrokenPdf, BlankPdf, NoTextInPdf, ExtractionTimedOut and ExtractionTooLarge."""
    read = _read(file)
    recognised = page_recognition.read_pages(file, read.without_text(read.lines))
    for number, recognised_lines in recognised.lines.items():
        read.lines[number - 1] = page_lines(recognised_lines)
    pages = without_running_lines(read.lines)
    paragraphs_by_page = []
    words = words_of(pages)
    for page in pages:
        file.on_page(len(pages), len(pages))  # All are read, but the caller may want to stop.
        paragraphs_by_page.append(paragraphs(page, words))
    empty = read.without_text(pages)
    if not any(paragraphs_by_page):
        if not empty:
            raise BlankPdf(name=file.name)
        raise NoTextInPdf(
            name=file.name,
            where=page_recognition.in_words(empty),
            advice=page_recognition.advice(recognised),
        )
    text, ranges = join_pages(paragraphs_by_page)
    labels = [_label(label, number) for number, label in enumerate(read.labels, 1)]
    headings = outlined_headings(read.outline, text, ranges)
    headings = headings or styled_headings(paragraphs_by_page, text, ranges)
    blocks = tuple(_blocks(paragraphs_by_page, ranges, {heading.start for heading in headings}))
    return ExtractedText(
        text=text,
        extractor=EXTRACTOR,
        pages=tuple(
            Page(number, start, end, label)
            for number, ((start, end), label) in enumerate(zip(ranges, labels, strict=True), 1)
        ),
        blocks=blocks,
        headings=headings,
        warnings=page_recognition.warnings(empty, recognised),
    )


def is_encrypted_pdf(path: Path) -> bool:
    """Return whether a PDF needs a password, quickly enough to check at upload. Files with an empty
    user password, which anyone can open, do not count."""
    with path.open("rb") as opened:
        if not mentions_encryption(iter(lambda: opened.read(1 << 20), b"")):
            return False
    file = FileToRead(path, path.name, _OPEN_LIMITS)
    records = read_records("pdf_reader", file, pages=sys.maxsize, characters=0, lines=0)
    with closing(records):
        try:
            next(records)
        except EncryptedPdf:
            return True
        except PortalError:
            return False  # Broken or slow: the reader will report it.
    return False


def mentions_encryption(blocks: Iterable[bytes]) -> bool:
    """Return whether these bytes may be from a PDF with a password; nearly all are not."""
    tail = b""
    for block in blocks:
        if b"/Encrypt" in tail + block:
            return True
        tail = block[-16:]
    return False


def page_lines(lines: Iterable[Sequence[Any]], tables: Iterable[Sequence[Any]] = ()) -> list[Line]:
    """Return the lines and tables of a page as a reader process measured them."""
    found = [
        Line(
            _SPACES.sub(_one_space, readable(_visible(text))),
            left,
            right,
            baseline,
            size,
            style=style[0] if style else "",
        )
        for text, left, right, baseline, size, *style in lines
    ]
    for place, raw_rows, top, size in sorted(tables, key=lambda table: table[0], reverse=True):
        rows = tuple(tuple(_cell(cell) for cell in row) for row in raw_rows)
        text = _table_text(rows, "").text()
        near = found[min(place, len(found) - 1)] if found else Line("", 0, 0, 0, 0)
        found.insert(place, Line(text, near.left, near.right, top, size, rows))
    return found


def _visible(text: str) -> str:
    """Return text with bullets and hyphens for the characters that many fonts have for these."""
    text = text.translate(_SYMBOLS)
    if "\u00ad" in text:
        end = LINE_END_HYPHEN if text.rstrip().endswith("\u00ad") else ""
        text = text.rstrip()[:-1] + end if end else text
        text = text.replace("\u00ad", "-")
    return text


def _cell(text: str) -> str:
    """Return the lines of a cell as one."""
    return one_line(join(readable(_visible(line)) for line in text.split("\n")))


def _table_text(rows: Sequence[Sequence[str]], caption: str) -> ReadableText:
    written = ReadableText()
    title, rows = (rows[0], rows[1:]) if len(rows[0]) < len(rows[-1]) else ((), rows)
    written.add_caption("".join(title))
    written.open_table("".join(title) or caption)
    for row in rows:
        written.add_row(row)
    written.close_table()
    return written


def _blocks(
    paragraphs_by_page: Sequence[Sequence[Paragraph]],
    ranges: Sequence[tuple[int, int]],
    heading_starts: Container[int],
) -> Iterator[Block]:
    """Yield items, captions above tables, and tables with the caption above or below them. A table
    at the top of a page may continue the last one of the page before."""
    last: tuple[Block, Paragraph] | None = None  # The table that ends the page before.
    for page, (place, _) in zip(paragraphs_by_page, ranges, strict=True):
        above = ""
        for index, paragraph in enumerate(page):
            before, last = last, None
            if paragraph.rows:
                caption = above if is_caption(above) else ""
                if caption:
                    yield Block(BlockKind.CAPTION, place - 2 - len(above), place - 2)
                else:
                    caption = _caption_below(page[index + 1 : index + 3])
                for block in _table_text(paragraph.rows, caption).blocks:
                    table = block.shifted(place)
                    if before and index == 0 and block.kind is BlockKind.TABLE:
                        table = _continued(table, paragraph, *before)
                    yield table
                    last = table, paragraph
            elif paragraph.is_item and place not in heading_starts:
                yield Block(BlockKind.ITEM, place, place + len(paragraph.text), level=1)
            above = paragraph.text
            place += len(paragraph.text) + 2  # noqa: PLW2901 - walks along the page


def _continued(table: Block, part: Paragraph, above: Block, part_above: Paragraph) -> Block:
    """Return a table with the caption and header of the one above if it continues that one: it has
    as many columns, and its first row is the same header or has figures where the last row has."""
    if len({len(row) for row in (part.rows[0], part.rows[-1], part_above.rows[-1])}) > 1:
        return table
    table_with_caption = replace(table, caption=table.caption or above.caption)
    if part.rows[0] in part_above.rows[:2]:  # The first may be a title.
        return table_with_caption
    if table.header and _have_figures(part.rows[0]) != _have_figures(part_above.rows[-1]):
        return table
    return replace(table_with_caption, header=above.header, body=table.start)


def _have_figures(row: Iterable[str]) -> list[bool]:
    return [any(map(str.isdigit, cell)) for cell in row]


def _caption_below(following: Sequence[Paragraph]) -> str:
    """Return the caption below a table, unless it is that of the next table."""
    is_own = following and is_caption(following[0].text) and not any(p.rows for p in following)
    return following[0].text if is_own else ""


def _read(file: FileToRead) -> _Pages:
    pages = _Pages()
    for record in read_records(
        "pdf_reader",
        file,
        broken=BrokenPdf,
        pages=file.limits.max_pages,
        characters=file.limits.max_characters,
        lines=_MAX_LINES,
        fonts=measuring_fonts(),
    ):
        if "lines" in record:
            pages.lines.append(page_lines(record["lines"], record.get("tables", ())))
            pages.labels.append(record["label"])
            if record.get("is_blank"):
                pages.blank.add(len(pages.lines))
        elif "outline" in record:
            pages.outline = record["outline"]
    return pages


def _one_space(match: re.Match[str]) -> str:
    return "\u3000" if match.group().startswith("\u3000") else " "


def join_pages(
    paragraphs_by_page: Sequence[Sequence[Paragraph]],
) -> tuple[str, list[tuple[int, int]]]:
    """Return the whole text, and the range of each page in it (empty for a page without text). A
    paragraph that goes on on the next page is not divided by an empty line."""
    parts: list[str] = []
    ranges = []
    length = 0
    above: Paragraph | None = None
    for page in paragraphs_by_page:
        body = "\n\n".join(paragraph.text for paragraph in page)
        if body and above:
            gap = "\n" if _goes_on(above, page[0]) else "\n\n"
            parts.append(gap)
            length += len(gap)
        ranges.append((length, length + len(body)))
        if body:
            parts.append(body)
            length += len(body)
            above = page[-1]
    return "".join(parts), ranges


def _goes_on(above: Paragraph, below: Paragraph) -> bool:
    """Return whether the last paragraph of a page continues at the top of the next one."""
    if above.rows or below.rows or below.is_item or _ENDS_PARAGRAPH.search(above.text):
        return False
    if not (above.text and below.text):
        return False
    if below.text[0].islower():
        return above.text[-1].isascii() or above.text[-1].islower()
    is_long = above.line_count > 1 or above.text.endswith(("，", "、"))
    return is_long and _HAN_ON_BOTH_SIDES.fullmatch(above.text[-1] + below.text[0]) is not None


def _label(label: str, number: int) -> str | None:
    """Return the label printed on the page; None if it is the number or not a usable label."""
    label = one_line(readable(label))
    is_other = label != str(number) and len(label) <= _MAX_LABEL_LENGTH
    return label if label and is_other else None
