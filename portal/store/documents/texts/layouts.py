"""The blocks and headings of a stretch of a text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, cast, func
from sqlalchemy.dialects.postgresql import JSONPATH
from sqlalchemy.orm import InstrumentedAttribute

from portal.domain.documents import Heading
from portal.domain.documents.structure import Block, BlockKind, LaidOutText, blocks_within

_BLOCKS = cast("strict $[*] ? (@[1] < $end && @[2] > $start)", JSONPATH)
_HEADINGS = cast("strict $[*] ? (@[2] >= $start && @[2] < $end)", JSONPATH)


def blocks_in(
    column: InstrumentedAttribute[list[Any]], start: int, end: int
) -> ColumnElement[list[Any]]:
    """Return SQL for the stored blocks that have characters between two positions."""
    return func.jsonb_path_query_array(column, _BLOCKS, _range(start, end))


def headings_in(
    column: InstrumentedAttribute[list[Any]], start: int, end: int
) -> ColumnElement[list[Any]]:
    """Return SQL for the stored headings that begin between two positions."""
    return func.jsonb_path_query_array(column, _HEADINGS, _range(start, end))


def _range(start: int, end: int) -> ColumnElement[Any]:
    return func.jsonb_build_object("start", start, "end", end)


def laid_out(
    content: str, start: int, blocks: Iterable[Sequence[Any]], headings: Iterable[Sequence[Any]]
) -> LaidOutText:
    """Return `content`, which begins at `start` of a longer text, with its stored structure. Images
    are left out: they belong to the file, which may have been replaced."""
    stored = [block for block in map(Block.from_json, blocks) if block.kind is not BlockKind.IMAGE]
    inside = blocks_within(stored, start, start + len(content))
    titles = (_title(Heading(*heading), content, start) for heading in headings)
    return LaidOutText(content, tuple(sorted([*inside, *titles], key=lambda block: block.start)))


def _title(heading: Heading, content: str, start: int) -> Block:
    first = heading.start - start
    end = content.find("\n", first)
    last = len(content) if end < 0 else end
    return Block(BlockKind.HEADING, first, last, level=heading.level)
