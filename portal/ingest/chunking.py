"""Cuts a text into passages: at headings, paragraphs and sentences, about the same size each.

Written here because the ranges must be exact and the time bounded whatever the text: the library
tried, semantic-text-splitter 0.33, takes 15 s for half a megabyte without a space (the square of
the length of a word), ends sentences at "Dr." and knows no headings.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from portal.domain.documents import Chunk, ExtractedText
from portal.text.outlines import heading_paths
from portal.text.sentences import sentence_spans, trim
from portal.text.tokens import token_weight

TARGET_TOKENS = 300
# Of the target: a passage that is at least this full may end with its paragraph or section.
_FULL_ENOUGH = 0.6
# A rest smaller than this joins the passage before it, which may grow to the cap for it.
_SMALL_REST = 0.25
HARD_CAP = 1.3  # times the target; 300 tokens stay far under the 512 that embedders read.
_MAX_PIECE_LENGTH = 2_000  # Characters weighed at once while a text without any space is cut.


@dataclass(frozen=True, slots=True)
class _Unit:
    """A sentence, or a piece of one that is too long; `weight` is in tokens."""

    start: int
    end: int
    weight: float
    section: int  # Number of the heading above, -1 before the first.
    begins_paragraph: bool
    begins_block: bool  # Behind an empty line.


def split(extracted: ExtractedText, *, target_tokens: int = TARGET_TOKENS) -> list[Chunk]:
    """Passages in order, apart from each other; together they hold every visible character.

    None is empty, begins or ends with white space, or weighs more than HARD_CAP times the target.
    """
    text = extracted.text
    pages = [page for page in extracted.pages if page.end > page.start]
    page_starts = [page.start for page in pages]
    headings = sorted(extracted.headings, key=lambda heading: heading.start)
    paths = heading_paths(headings)
    heading_starts = [heading.start for heading in headings]
    chunks = []
    for index, (start, end) in enumerate(_ranges(text, heading_starts, target_tokens)):
        page = pages[max(bisect_right(page_starts, start) - 1, 0)] if pages else None
        section = bisect_right(heading_starts, start) - 1
        chunks.append(
            Chunk(
                index=index,
                content=text[start:end],
                char_start=start,
                char_end=end,
                page=page.number if page else None,
                page_label=page.label if page else None,
                heading=paths[section] if section >= 0 else None,
            )
        )
    return chunks


def _ranges(text: str, heading_starts: Sequence[int], target: int) -> Iterator[tuple[int, int]]:
    units = list(_units(text, heading_starts, target))
    sections = [list(group) for _, group in groupby(units, key=lambda unit: unit.section)]
    for block in _packed_sections(sections, target):
        for chunk in _merged_rest(_filled(block, target), target):
            yield chunk[0].start, chunk[-1].end


def _units(text: str, heading_starts: Sequence[int], target: int) -> Iterator[_Unit]:
    bounds = sorted({0, *(start for start in heading_starts if 0 < start < len(text)), len(text)})
    for section_start, section_end in pairwise(bounds):
        section = bisect_right(heading_starts, section_start) - 1
        previous_end = section_start
        for start, end in sentence_spans(text[section_start:section_end]):
            first, last = section_start + start, section_start + end
            is_first = previous_end == section_start
            line_ends = text.count("\n", previous_end, first)
            previous_end = last
            for piece_start, piece_end, weight in _fitting(text, first, last, target):
                begins = piece_start == first
                yield _Unit(
                    piece_start,
                    piece_end,
                    weight,
                    section,
                    begins_paragraph=begins and (is_first or line_ends > 0),
                    begins_block=begins and (is_first or line_ends > 1),
                )


def _fitting(text: str, start: int, end: int, target: int) -> Iterator[tuple[int, int, float]]:
    """The sentence, or where it is too long pieces of it that end with words where they can."""
    while start < end:
        if text[start].isspace():  # Left over where the piece before ended with a word.
            start += 1
            continue
        stop = min(end, start + _MAX_PIECE_LENGTH)
        weight = token_weight(text[start:stop])
        if stop == end and weight <= target:
            yield start, end, weight
            return
        while weight > target:
            # In proportion, a little less, and always shorter: few rounds whatever the text is.
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
    """The last place from the second half on after which a word does not go on."""
    for position in range(stop, start + (stop - start) // 2, -1):
        before, after = text[position - 1], text[position]
        if before.isspace() or after.isspace() or (before in ",，、;；:：)）" and after.isalnum()):
            return position
    return stop


def _packed_sections(sections: Sequence[list[_Unit]], target: int) -> Iterator[list[_Unit]]:
    """Neighbouring sections together as long as they fill less than one passage."""
    block: list[_Unit] = []
    weight = 0.0
    for section in sections:
        section_weight = sum(unit.weight for unit in section)
        if block and (weight + section_weight > target or weight >= _FULL_ENOUGH * target):
            yield block
            block, weight = [], 0.0
        block = block + section if block else section
        weight += section_weight
    if block:
        yield block


def _filled(units: Sequence[_Unit], target: int) -> list[list[_Unit]]:
    chunks: list[list[_Unit]] = []
    weight = 0.0
    for piece in _pieces(units, target):
        piece_weight = sum(unit.weight for unit in piece)
        # The title of a table, say, stays with it.
        most = HARD_CAP if len(piece) > 1 and weight < _SMALL_REST * target else 1.0
        full = weight + piece_weight > most * target
        good_end = piece[0].begins_paragraph and weight >= _FULL_ENOUGH * target
        if not chunks or full or good_end:
            chunks.append([])
            weight = 0.0
        chunks[-1].extend(piece)
        weight += piece_weight
    return chunks


def _pieces(units: Sequence[_Unit], target: int) -> Iterator[Sequence[_Unit]]:
    """What may be parted: sentences, and whole tables, lists and code as far as they fit."""
    starts = [place for place, unit in enumerate(units) if place == 0 or unit.begins_block]
    for start, end in pairwise([*starts, len(units)]):
        block = units[start:end]
        # Half of them, because the number of an item reads as a sentence: "3."
        is_of_lines = 2 * sum(unit.begins_paragraph for unit in block) >= len(block) > 1
        if is_of_lines and sum(unit.weight for unit in block) <= target:
            yield block
        else:
            yield from ([unit] for unit in block)


def _merged_rest(chunks: list[list[_Unit]], target: int) -> list[list[_Unit]]:
    if len(chunks) > 1:
        rest, before = (sum(unit.weight for unit in chunks[place]) for place in (-1, -2))
        if rest < _SMALL_REST * target and before + rest <= HARD_CAP * target:
            chunks[-2:] = [chunks[-2] + chunks[-1]]
    return chunks
