"""Chunking along the structure of a text: headings, paragraphs, rows, items and sentences.

Implemented here because the ranges must be exact and the time bounded for any text: the library
tried, semantic-text-splitter 0.33, takes 15 s for half a megabyte without a space (quadratic in the
length of a word), ends sentences at "Dr." and ignores headings.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from heapq import merge
from itertools import groupby, pairwise

from portal.domain.documents import Chunk, ExtractedText, Heading
from portal.domain.documents.structure import Block, BlockKind, blocks_within
from portal.text.counting.tokens import token_weight
from portal.text.layout.outlines import heading_paths
from portal.text.layout.sentences import sentence_spans, trim
from portal.text.layout.tables import CELL_BORDER, table_rows

TARGET_TOKENS = 300
# Share of the target above which a chunk may end with its paragraph or section.
_FULL_ENOUGH = 0.6
# A rest smaller than this share joins the chunk before it, which may then grow to the cap.
_SMALL_REST = 0.25
HARD_CAP = 1.3  # times the target; 300 tokens stay far under the 512 that embedders read.
_MAX_PIECE_LENGTH = 2_000  # Characters weighed at once while a text without any space is split.
_MAX_CONTEXT_LENGTH = 600
_UNDERLINE = re.compile(r"\n([=\-~^*+])\1{2,}(?=[ \t]*(?:\n|\Z))")


class _Kind(IntEnum):
    TEXT = 0
    HEADING = 1
    LEAD = 2  # A caption, a header, or the words that introduce a list.
    PART = 3  # A row or an item, split only if it is longer than a chunk.


@dataclass(frozen=True, slots=True)
class _Unit:
    """A sentence, row or item, or a piece of one that is too long; `weight` is in tokens."""

    start: int
    end: int
    weight: float
    section: int  # Index of the heading above, -1 before the first.
    kind: _Kind
    begins_paragraph: bool
    begins_block: bool  # After an empty line.

    @property
    def has_words(self) -> bool:
        """Return whether the unit has content of its own, unlike a heading or a lead."""
        return self.kind is _Kind.TEXT or self.kind is _Kind.PART


def split(extracted: ExtractedText, *, target_tokens: int = TARGET_TOKENS) -> list[Chunk]:
    """Return ordered, disjoint chunks that together hold every visible character. None is empty,
    begins or ends with white space, or weighs more than HARD_CAP times the target. A row or an item
    is split only if it is heavier than the target, and a heading stays with what follows it."""
    text = extracted.text
    pages = [page for page in extracted.pages if page.end > page.start]
    page_starts = [page.start for page in pages]
    headings = sorted(extracted.headings, key=lambda heading: heading.start)
    paths = heading_paths(headings)
    structure = _Structure(extracted.blocks)
    chunks = []
    for index, units in enumerate(_chunks(text, headings, extracted.blocks, target_tokens)):
        start, end = units[0].start, units[-1].end
        page = pages[max(bisect_right(page_starts, start) - 1, 0)] if pages else None
        section = next((unit for unit in units if unit.kind is not _Kind.HEADING), units[0]).section
        chunks.append(
            Chunk(
                index=index,
                content=text[start:end],
                char_start=start,
                char_end=end,
                page=page.number if page else None,
                page_label=page.label if page else None,
                heading=paths[section] if section >= 0 else None,
                context=structure.context(start),
                blocks=_blocks_of(units, structure, headings),
            )
        )
    return chunks


def _blocks_of(
    units: Sequence[_Unit], structure: _Structure, headings: Sequence[Heading]
) -> tuple[Block, ...]:
    """Return the blocks of a chunk, headings included, at offsets from its beginning."""
    first, end = units[0].start, units[-1].end
    blocks = structure.within(first, end)
    titles = tuple(
        Block(
            BlockKind.HEADING,
            unit.start - first,
            unit.end - first,
            level=headings[unit.section].level,
        )
        for unit in units
        if unit.kind is _Kind.HEADING
    )
    return tuple(sorted(blocks + titles, key=lambda block: block.start)) if titles else blocks


class _Structure:
    """The blocks of a text, looked up by position."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        images = [block for block in blocks if block.kind is BlockKind.IMAGE]
        self._images = sorted(images, key=lambda block: block.start)
        self._image_starts = [block.start for block in self._images]
        others = (block for block in blocks if block.kind is not BlockKind.IMAGE)
        self._blocks = sorted(others, key=lambda block: block.start)
        self._starts = [block.start for block in self._blocks]

    def within(self, start: int, end: int) -> tuple[Block, ...]:
        first = max(bisect_right(self._starts, start) - 1, 0)
        blocks = self._blocks[first : bisect_right(self._starts, end)]
        low, high = bisect_left(self._image_starts, start), bisect_right(self._image_starts, end)
        return blocks_within([*blocks, *self._images[low:high]], start, end)

    def context(self, start: int) -> str | None:
        """Return caption and header of the table that is split before `start`, by a chunk or a
        page, if any."""
        place = bisect_right(self._starts, start) - 1
        table = self._blocks[place] if place >= 0 else None
        if table is None or table.kind is not BlockKind.TABLE or start >= table.end:
            return None
        has_own_header = table.body > table.start or not table.header
        if start < table.body or (start == table.start and has_own_header):
            return None
        lines = (table.caption, CELL_BORDER.join(table.header))
        return "\n".join(line for line in lines if line.strip())[:_MAX_CONTEXT_LENGTH] or None


def _chunks(
    text: str, headings: Sequence[Heading], blocks: Sequence[Block], target: int
) -> Iterator[list[_Unit]]:
    units = list(_units(text, headings, blocks, target))
    sections = _with_words([list(group) for _, group in groupby(units, key=lambda u: u.section)])
    for block in _pack_sections(sections, target):
        yield from _merge_rest(_fill_chunks(text, block, target), target)


def _units(
    text: str, headings: Sequence[Heading], blocks: Sequence[Block], target: int
) -> Iterator[_Unit]:
    heading_starts = [heading.start for heading in headings]
    previous_end, previous_section = 0, None
    for first, last, kind in _spans(text, headings, blocks, target):
        section = bisect_right(heading_starts, first) - 1 if heading_starts else -1
        is_first = section != previous_section
        line_ends = text.count("\n", previous_end, first)
        previous_end, previous_section = last, section
        for start, end, weight in _fitting(text, first, last, target):
            begins = start == first
            yield _Unit(
                start,
                end,
                weight,
                section,
                kind,
                begins_paragraph=begins and (is_first or line_ends > 0),
                begins_block=begins and (is_first or line_ends > 1),
            )


_Span = tuple[int, int, _Kind]


def _spans(
    text: str, headings: Sequence[Heading], blocks: Sequence[Block], target: int
) -> Iterator[_Span]:
    """Yield unsplittable blocks, and the sentences between them; these end where a heading
    begins."""
    place = 0
    cuts = merge(_heading_lines(text, headings), _parts(text, blocks))
    for start, end, kind in cuts:
        if start < place:
            continue  # Within another part.
        yield from _sentences(text, place, start, is_led_to=kind in {_Kind.LEAD, _Kind.PART})
        if kind is _Kind.PART and _is_long(text, start, end, target):
            yield from _sentences(text, start, end)
        elif kind is not None:
            yield start, end, kind
        place = end
    yield from _sentences(text, place, len(text))


def _is_long(text: str, start: int, end: int, target: int) -> bool:
    """Return whether a row or an item is heavier than a chunk, and splits into its sentences."""
    # A character weighs less than two tokens.
    piece = text[start : min(end, start + _MAX_PIECE_LENGTH)] if 2 * (end - start) > target else ""
    return token_weight(piece) > target


def _sentences(text: str, start: int, end: int, *, is_led_to: bool = False) -> Iterator[_Span]:
    """Yield sentences. The last leads to the list or table that follows if it ends in a colon."""
    spans = sentence_spans(text[start:end]) if start < end else []
    introduces = is_led_to and spans and text[start + spans[-1][1] - 1] in ":："
    introduction = spans.pop() if introduces else None
    for first, last in spans:
        yield start + first, start + last, _Kind.TEXT
    if introduction:
        yield start + introduction[0], start + introduction[1], _Kind.LEAD


def _heading_lines(
    text: str, headings: Iterable[Heading]
) -> Iterator[tuple[int, int, _Kind | None]]:
    """Yield the lines that are headings. For a heading within a line, begin at the heading."""
    for heading in headings:
        start, length = heading.start, len(heading.title)
        if not 0 <= start < len(text):
            continue
        line_end = text.find("\n", start, start + 2 * length + 10)
        if text[start : start + length + 1].removesuffix("\n") == heading.title:
            line_end = start + length  # A title of several lines.
        end = line_end if line_end >= 0 else min(len(text), start + length)
        first, last = trim(text, start, end)
        is_line = last == len(text) or text[last : last + 1].isspace()
        if first < last and is_line and _fold(text[first:last]) == _fold(heading.title):
            underline = _UNDERLINE.match(text, end)
            yield first, underline.end() if underline else last, _Kind.HEADING
        else:
            yield start, start, None


def _fold(title: str) -> str:
    return "".join(title.strip("#").casefold().split())


def _parts(text: str, blocks: Iterable[Block]) -> Iterator[tuple[int, int, _Kind | None]]:
    for block in sorted(blocks, key=lambda block: block.start):
        if block.kind is BlockKind.TABLE:
            for row in table_rows(text, block):
                kind = _Kind.LEAD if row.is_header else _Kind.PART
                yield *trim(text, row.start, row.end), kind
        elif block.kind is BlockKind.CAPTION:
            yield block.start, block.end, _Kind.LEAD
        elif block.kind in {BlockKind.ITEM, BlockKind.FOOTNOTE}:
            yield block.start, block.end, _Kind.PART


def _fitting(text: str, start: int, end: int, target: int) -> Iterator[tuple[int, int, float]]:
    """Yield a sentence, or pieces of one that is too long, cut at words where possible."""
    while start < end:
        if text[start].isspace():  # Left over where the previous piece ended with a word.
            start += 1
            continue
        stop = min(end, start + _MAX_PIECE_LENGTH)
        weight = token_weight(text[start:stop])
        if stop == end and weight <= target:
            yield start, end, weight
            return
        while weight > target:
            # Proportional, slightly less, and always shorter: this takes few rounds on any text.
            shorter = min(int((stop - start) * target / weight * 0.95), stop - start - 1)
            stop = start + max(1, shorter)
            weight = token_weight(text[start:stop])
            if stop - start == 1:
                break
        stop = _word_end(text, start, stop) if stop < end else stop
        piece_start, piece_end = trim(text, start, stop)
        if piece_start < piece_end:
            yield piece_start, piece_end, token_weight(text[piece_start:piece_end])
        start = stop


def _word_end(text: str, start: int, stop: int) -> int:
    """Return the last word end in the second half of the range."""
    for position in range(stop, start + (stop - start) // 2, -1):
        before, after = text[position - 1], text[position]
        if before.isspace() or after.isspace() or (before in ",，、;；:：)）" and after.isalnum()):
            return position
    return stop


def _with_words(sections: Sequence[list[_Unit]]) -> list[list[_Unit]]:
    """Join sections that are only headings to the next one, the last to the previous one."""
    joined: list[list[_Unit]] = []
    bare: list[_Unit] = []
    for section in sections:
        bare = [*bare, *section]
        if any(unit.kind is not _Kind.HEADING for unit in section):
            joined.append(bare)
            bare = []
    if bare and joined:
        joined[-1] += bare
    elif bare:
        joined.append(bare)
    return joined


def _pack_sections(sections: Sequence[list[_Unit]], target: int) -> Iterator[list[_Unit]]:
    """Yield neighbouring sections, joined as long as they fit into one chunk."""
    block: list[_Unit] = []
    weight = 0.0
    for section in sections:
        section_weight = _weight(section)
        if block and (weight + section_weight > target or weight >= _FULL_ENOUGH * target):
            yield block
            block, weight = [], 0.0
        block = block + section if block else section
        weight += section_weight
    if block:
        yield block


def _weight(units: Iterable[_Unit]) -> float:
    return sum(unit.weight for unit in units)


def _fill_chunks(text: str, units: Sequence[_Unit], target: int) -> list[list[_Unit]]:
    chunks: list[list[_Unit]] = []
    weight = 0.0
    for piece in _pieces(text, units, target):
        piece_weight = _weight(piece)
        # For example, a table stays with its title.
        max_share = HARD_CAP if len(piece) > 1 and weight < _SMALL_REST * target else 1.0
        full = weight + piece_weight > max_share * target
        good_end = piece[0].begins_paragraph and weight >= _FULL_ENOUGH * target
        if not chunks or full or good_end:
            chunks.append([])
            weight = 0.0
        chunks[-1].extend(piece)
        weight += piece_weight
    return chunks


def _pieces(text: str, units: Sequence[_Unit], target: int) -> Iterator[Sequence[_Unit]]:
    """Yield groups of units that stay together, each with the headings, caption and header above
    it. A group is a sentence, or a whole table, list or piece of code if it fits."""
    cap = HARD_CAP * target
    lead: list[_Unit] = []
    for piece in _pieces_without_lead(units, target):
        if not lead and piece[-1].has_words:
            yield piece
            continue
        fits = _weight(lead) + _weight(piece) <= cap
        for part in [piece] if fits else [[unit] for unit in piece]:
            room = cap - _weight(lead)
            if room < _SMALL_REST * target:
                # A list of titles, which are its content, or a header that fills a chunk.
                yield from ([replace(unit, kind=_Kind.TEXT)] for unit in lead)
                lead = []
            elif _weight(part) > room:
                first, *rest = _cut(text, part[0], room)
                yield [*lead, first]
                yield from ([unit] for unit in rest)
                lead = []
                continue
            lead = [*lead, *part]
            if any(unit.has_words for unit in part):
                yield lead
                lead = []
    if lead:
        yield lead


def _cut(text: str, unit: _Unit, room: float) -> Iterator[_Unit]:
    """Yield pieces of a unit that are not heavier than `room`."""
    for start, end, weight in _fitting(text, unit.start, unit.end, int(room)):
        is_first = start == unit.start
        yield replace(
            unit,
            start=start,
            end=end,
            weight=weight,
            begins_paragraph=unit.begins_paragraph and is_first,
            begins_block=unit.begins_block and is_first,
        )


def _pieces_without_lead(units: Sequence[_Unit], target: int) -> Iterator[Sequence[_Unit]]:
    """Yield blocks of lines whole if they fit, else their units one by one."""
    starts = [place for place, unit in enumerate(units) if place == 0 or unit.begins_block]
    for start, end in pairwise([*starts, len(units)]):
        block = units[start:end]
        # Half of the units is enough, because the number of an item reads as a sentence: "3."
        is_of_lines = 2 * sum(unit.begins_paragraph for unit in block) >= len(block) > 1
        if is_of_lines and _weight(block) <= target:
            words = max((place for place, unit in enumerate(block, 1) if unit.has_words), default=0)
            # The last lines introduce the next block.
            yield from filter(None, (block[:words], block[words:]))
        else:
            yield from ([unit] for unit in block)


def _merge_rest(chunks: list[list[_Unit]], target: int) -> list[list[_Unit]]:
    """Join a small rest to the chunk before it. A rest of only headings takes the last unit of that
    chunk."""
    if len(chunks) < 2:  # noqa: PLR2004
        return chunks
    *_, before, rest = chunks
    if (
        _weight(rest) < _SMALL_REST * target
        and _weight(before) + _weight(rest) <= HARD_CAP * target
    ):
        chunks[-2:] = [before + rest]
    elif len(before) > 1 and all(unit.kind is _Kind.HEADING for unit in rest):
        chunks[-2:] = [before[:-1], [before[-1], *rest]]
    return chunks
