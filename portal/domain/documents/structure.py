"""Structural parts of a text: headings, tables, list items and so on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any


class BlockKind(StrEnum):
    HEADING = "heading"
    TABLE = "table"
    ITEM = "item"
    CAPTION = "caption"
    FOOTNOTE = "footnote"
    CODE = "code"
    IMAGE = "image"


@dataclass(frozen=True, slots=True)
class Block:
    """Characters `start` to `end` of a text. `level` is that of a heading, or the depth of a list
    item, from 1.

    In a table each line is a row (`portal.text.layout.tables` splits it into cells); the rows after
    the header begin at `body`, which is `start` if the text has no header there. `header` and
    `caption` are known even if the text begins further down. `bars` are positions of "|" inside
    cells. An image takes no characters: it stands where it `start`s, and `key` is its name among
    the images of the file.
    """

    kind: BlockKind
    start: int
    end: int
    level: int = 0
    body: int = 0
    header: tuple[str, ...] = ()
    caption: str = ""
    bars: tuple[int, ...] = ()
    key: str = ""

    def shifted(self, by: int) -> Block:
        """Return the same block in a text that begins `by` characters later."""
        return replace(
            self,
            start=self.start + by,
            end=self.end + by,
            body=self.body + by,
            bars=tuple(bar + by for bar in self.bars),
        )

    def within(self, start: int, end: int) -> Block:
        """Return the part between two positions, counted from the first."""

        def shifted(position: int) -> int:
            return min(max(position, start), end) - start

        return replace(
            self,
            start=shifted(self.start),
            end=shifted(self.end),
            body=shifted(self.body) if self.kind is BlockKind.TABLE else 0,
            bars=tuple(bar - start for bar in self.bars if start <= bar < end),
        )

    def as_json(self) -> list[Any]:
        """Return compact JSON for `from_json`: texts may have a hundred thousand items."""
        values = [self.kind.value, self.start, self.end]
        if self.kind is BlockKind.TABLE:
            return [*values, self.body, list(self.header), self.caption, list(self.bars)]
        if self.kind is BlockKind.IMAGE:
            return [*values, self.key]
        return [*values, self.level] if self.level else values

    @classmethod
    def from_json(cls, stored: Sequence[Any]) -> Block:
        kind, start, end, *rest = stored
        if kind == BlockKind.TABLE:
            body, header, caption, bars = rest
            return cls(
                BlockKind.TABLE, start, end, body=body, header=tuple(header), caption=caption,
                bars=tuple(bars),
            )  # fmt: skip
        if kind == BlockKind.IMAGE:
            return cls(BlockKind.IMAGE, start, end, key=rest[0])
        return cls(BlockKind(kind), start, end, level=rest[0] if rest else 0)


def blocks_within(blocks: Sequence[Block], start: int, end: int) -> tuple[Block, ...]:
    """Return the parts of these blocks between two positions, counted from the first. An image
    belongs to the text above it, or to the text below if there is none above."""
    return tuple(b.within(start, end) for b in blocks if _is_within(b, start, end))


@dataclass(frozen=True, slots=True)
class LaidOutText:
    """A stretch of a text with its blocks, headings included, at offsets from its beginning."""

    content: str
    blocks: tuple[Block, ...] = ()

    def between(self, start: int, end: int) -> LaidOutText:
        """Return the part between two positions."""
        return LaidOutText(self.content[start:end], blocks_within(self.blocks, start, end))


def _is_within(block: Block, start: int, end: int) -> bool:
    if block.kind is BlockKind.IMAGE:
        return start < block.start <= end or block.start == start == 0
    return block.start < end and block.end > start
