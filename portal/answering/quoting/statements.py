"""The statements of a source: sentences, list items and table rows that can be quoted alone.

Headings, questions of a FAQ, table headers and the line that introduces a list are context: they
count for the statements below them and are never quoted alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, pairwise
from typing import NamedTuple

from portal.domain.answering import Source
from portal.domain.documents.structure import Block, BlockKind
from portal.text.characters.scripts import HAN
from portal.text.layout.headings import without_frame
from portal.text.layout.outlines import SEPARATOR
from portal.text.layout.sentences import LIST_ITEM, each_sentence
from portal.text.layout.tables import table_rows
from portal.text.terms.analyser import index_terms

# Matches from the first of several spaces only: tried from each, thousands would take minutes.
_CELL_BORDER = re.compile(r"(?<![^\S\n])[^\S\n]*(?:\s\||\|(?=\s)|\t)")
# The line below a table's header, in a text without known tables: "|---|:-:|".
_TABLE_RULE = re.compile(r"[\s|+:=-]*(?:-\|-|-\+-|\|\s*:?-)[\s|+:=-]*")
_ENDS_STATEMENT = re.compile(r"[。！？；｡….!?;][”’」』）》】〉〕\"')\]]*$")
_ASKS = re.compile(r"[?？][”’」』\"')]*$")
_WROTE = re.compile(r"(?:\bwrote|写道)\s?[:：]\Z")
_QUOTED = ">"  # E-mails keep this before a question that they quote.
# A line that says nothing without what is below it: "Opening hours:", "The profile can", 包括.
_INTRODUCES = re.compile(
    r"[:：]\Z|(?:包括|包含|分为|如下|可以|需要|必须|不得)\Z"
    r"|\b(?:can|may|must|should|will|is|are|includes?|if|when|unless|to|for|with|by|of|and|or)\Z",
    re.IGNORECASE,
)
# A line without a full stop that is shorter than this, and has no number, reads as a heading.
_MAX_HEADING_CHARACTERS = 60
_MAX_HAN_HEADING_CHARACTERS = 24
# "Present: Anna Berg": a whole line, at any length.
_LABEL = re.compile(r"[^\s:：,，。.;；]{1,16}(?: [^\s:：,，。.;；]{1,16}){0,2}[:：]\s*\S")
# How letters end.
_SIGN_OFF = re.compile(
    r"(?:(?:with )?(?:best|kind|warm)(?:est)? (?:regards|wishes)|regards|(?:yours )?sincerely"
    r"|yours (?:faithfully|truly)|cheers|此致|敬礼|祝好|顺祝商祺)[,，.。!！]?",
    re.IGNORECASE,
)
_SALUTATION = (
    r"(?:dear|hi|hello) [^\d,.!?:]{1,40}[,!]?"
    r"|(?:各位|亲爱的|尊敬的)[^\d，。：:]{0,16}[，：:！]?|大家好[！，。]?"
)
_AROUND_LETTER = re.compile(f"{_SIGN_OFF.pattern}|{_SALUTATION}", re.IGNORECASE)
_ENDS_LETTER = re.compile(r"[.!。！][\"”’」』)）]*\Z")
# Who signs: "Jonas Lind", 周敏; a telephone number or an address is worth quoting.
_SIGNS = re.compile(rf"[^\W\d_]+(?:[ .'’-]+[^\W\d_]+){{0,3}}|[{HAN}]{{2,8}}")
_MAX_SIGNING = 4  # Lines.
_MAX_LABEL_CHARACTERS = 80
_HAN_CHAPTER = r"第[一二三四五六七八九十百\d]+[章节節条條部篇]|[一二三四五六七八九十]+、"
_CHAPTER = re.compile(rf"(?:{_HAN_CHAPTER}|\d+(?:\.\d+)*[.、]?\s)")
_DIGIT = re.compile(r"\d")
_NUMBER = re.compile(r"\d+|[一二三四五六七八九十]+|[①-⑳]")
_HAN = re.compile(f"[{HAN}]")
_KINDS = {BlockKind.ITEM: "list", BlockKind.CAPTION: "heading", BlockKind.CODE: "text"}
# A list item longer than this is quoted by its sentences.
_MAX_ITEM_CHARACTERS = 300
# "下表为每人每晚上限(元)" describes the table below; the header need not repeat it.
_NAMES_TABLE = re.compile(
    r"[下如见]表|表\s?\d|如下|以下|\b(?:table|below|following|as follows)\b", re.IGNORECASE
)
_MAX_ABOVE = 2  # Enclosing items in the context of a nested item.


@dataclass(frozen=True, slots=True)
class Statement:
    """Characters `start` to `end` of a source's text. `context` is what it is read under: the
    headings above it and the line that introduces its list or table, or the items above a nested
    one. `heading` is the last heading above. Rows of a table and items of a list have the number of
    their `group`; `group_start` is where the line that introduces a list begins, `depth` the number
    of items that an item is nested in. A table row has `cells`, and a `header` if the table has
    one; `marked` are the places of the cells that answer, in a row of many."""

    start: int
    end: int
    context: str = ""
    cells: tuple[str, ...] = ()
    header: tuple[str, ...] = ()
    heading: str = ""
    group: int | None = None
    group_start: int | None = None
    depth: int = 0
    marked: frozenset[int] = frozenset()
    is_code: bool = False


_STROKES = re.compile(r"([-=_*~─━—])\1{3,}")  # A rule between sections.


@dataclass(frozen=True, slots=True)
class _Line:
    start: int
    end: int
    text: str


class _Item(NamedTuple):
    """An item of a list: its indent, its marker without its number, and its text if short, or else
    the short sentence with which it introduces others."""

    indent: int
    marker: str
    label: str

    def is_nested_in(self, other: _Item) -> bool:
        """Return whether this item is nested in one further up: by its indent or, at the same
        indent, by another marker below an item that ends with a colon, like (1) below 4.4."""
        if self.indent != other.indent:
            return self.indent > other.indent
        return self.marker != other.marker and introduces(other.label)


def introduces(text: str) -> bool:
    """Return whether a text ends with a colon or within a sentence, so that items can follow."""
    return _INTRODUCES.search(text) is not None


def statements(source: Source) -> list[Statement]:
    """Return the statements of a source, in order."""
    return list(_Reader(source).read())


class _Reader:
    """A reader of a source, block by block, that tracks the context of the next block."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._lines = list(_lines(source.text))
        self._heading = ""
        # The headings above, outermost first, and how many levels of headings are left out.
        self._path = (source.heading or "").split(SEPARATOR)
        self._skipped = 0
        self._introduction: _Line | None = None
        self._group = 0

    def read(self) -> Iterator[Statement]:
        for (kind, lines), (following, _) in pairwise([*self._blocks(), ("", [])]):
            if kind == "heading":
                self._enter(lines[0])
            elif kind == "table":
                self._group += 1
                yield from self._rows(lines)
                self._introduction = None
            elif kind == "list":
                self._group += 1
                yield from self._items(lines)
                self._introduction = None
            else:
                yield from self._sentences(lines, following)

    def _enter(self, line: _Line) -> None:
        """Enter the section of a heading, and leave those of its level and deeper."""
        self._heading, self._introduction = without_frame(line.text), None
        block = self._block_at(line)
        if block is None or block.kind is not BlockKind.HEADING:
            return
        if self._heading == self._path[-1]:
            self._skipped = block.level - len(self._path)
        else:
            self._path[max(0, block.level - self._skipped - 1) :] = [self._heading]

    def _context(self, *more: str) -> str:
        """Return the lines that a statement is read under, each without its line breaks."""
        lines = (*self._path, self._heading, *more)
        parts = dict.fromkeys(" ".join(one.split()) for one in lines)
        return "\n".join(filter(None, parts))

    def _blocks(self) -> Iterator[tuple[str, list[_Line]]]:
        """Group the lines into headings, tables, lists and text."""
        kinds = [self._kind(place) for place in range(len(self._lines))]
        place = 0
        while place < len(self._lines):
            kind, end = kinds[place], place + 1
            if kind not in {"heading", "label"}:
                while end < len(kinds) and self._goes_on(kind, kinds, end):
                    end += 1
            kept = [line for line in self._lines[place:end] if line.text]
            if kept and kind != "blank":
                # A lone line with a bar in it is text, unless it is known to be a row.
                is_text = kind == "table" and len(kept) == 1 and self._table_at(kept[0]) is None
                yield ("text" if is_text else kind), kept
            place = end

    def _goes_on(self, kind: str, kinds: list[str], place: int) -> bool:
        if kinds[place] == kind:
            return True
        if kind != "list":
            return False
        if kinds[place] == "blank":
            return place + 1 < len(kinds) and kinds[place + 1] == "list"
        # An item continues on indented lines, and on lines after one that does not end a sentence.
        if kinds[place] != "text" or kinds[place - 1] == "blank":
            return False
        is_indented = self._source.text[self._lines[place].start - 1] != "\n"
        return is_indented or not _ENDS_STATEMENT.search(self._lines[place - 1].text)

    def _kind(self, place: int) -> str:  # noqa: PLR0911 - one kind a line
        line = self._lines[place]
        if not line.text or _AROUND_LETTER.fullmatch(line.text) or self._signs(place):
            return "blank"
        if line.start in self._source.heading_starts:
            return "heading"
        if self._table_at(line) is not None:
            return "table"
        block = self._block_at(line)
        if block is not None and block.kind in _KINDS:
            # In a list of questions and answers, an item is a question with its answer below.
            is_above_answer = line.start <= block.start and line.end < block.end
            asks = is_above_answer and _ASKS.search(line.text) and _is_one_sentence(line.text)
            return "heading" if asks else _KINDS[block.kind]
        if not self._source.blocks and (
            _CELL_BORDER.search(line.text) or _TABLE_RULE.fullmatch(line.text)
        ):
            return "table"
        if _STROKES.fullmatch(line.text):
            return "blank"
        asks = _ASKS.search(line.text) and not line.text.startswith(_QUOTED)
        if asks and (self._is_above_text(place) or _is_one_sentence(line.text)):
            return "heading"
        # Below a marked title, sections may be marked by their number only: 二、住宿.
        is_unmarked = not self._source.heading_starts or re.match(_HAN_CHAPTER, line.text)
        if (is_unmarked and self._reads_as_heading(place)) or self._heads_list(place):
            return "heading"
        if LIST_ITEM.match(line.text):
            return "list"
        return "label" if _LABEL.match(line.text) else "text"

    def _signs(self, place: int) -> bool:
        """Return whether a line is the name or the office of a person who signs a letter: below
        "Regards", or at the end of a text that has such a line or a "Dear all"."""
        line = self._lines[place]
        if not _SIGNS.fullmatch(line.text) or self._block_at(line) is not None:
            return False
        above = [one.text for one in self._lines[max(0, place - _MAX_SIGNING) : place] if one.text]
        if any(map(_SIGN_OFF.fullmatch, above)):
            return True
        if not self._is_letter:
            return False
        following = (self._lines[one].text for one in range(place + 1, len(self._lines)))
        below = list(islice(filter(None, following), _MAX_SIGNING))
        if len(below) == _MAX_SIGNING or not all(map(_SIGNS.fullmatch, below)):
            return False
        said = next((one for one in reversed(above) if not _SIGNS.fullmatch(one)), "")
        return _ENDS_LETTER.search(said) is not None

    @cached_property
    def _is_letter(self) -> bool:
        return any(_AROUND_LETTER.fullmatch(one.text) for one in self._lines)

    def _is_above_text(self, place: int) -> bool:
        """Return whether a short line is the first of a paragraph and not its only one."""
        before, following = self._lines[place - 1 : place], self._lines[place + 1 : place + 2]
        return (
            len(self._lines[place].text) <= _MAX_HEADING_CHARACTERS
            and not any(one.text for one in before)
            and any(one.text for one in following)
        )

    def _block_at(self, line: _Line) -> Block | None:
        for block in self._source.blocks:
            if block.start <= line.end and line.start < block.end:
                return block
        return None

    def _table_at(self, line: _Line) -> Block | None:
        block = self._block_at(line)
        return block if block is not None and block.kind is BlockKind.TABLE else None

    def _reads_as_heading(self, place: int) -> bool:
        """Return whether a line that is not marked as a heading is one."""
        text = self._lines[place].text
        limit = _MAX_HAN_HEADING_CHARACTERS if _HAN.search(text) else _MAX_HEADING_CHARACTERS
        if len(text) > limit or _ENDS_STATEMENT.search(text) or any(c in text for c in ":："):
            return False
        stands_alone = place == 0 or not self._lines[place - 1].text
        if not stands_alone or not any(line.text for line in self._lines[place + 1 :]):
            return False
        if place == 0 and self._begins_with_title():
            return True
        if any(c in text for c in ",，"):
            return False
        if _CHAPTER.match(text):
            return not (
                place + 1 < len(self._lines) and LIST_ITEM.match(self._lines[place + 1].text)
            )
        return not LIST_ITEM.match(text) and not _DIGIT.search(text)

    def _heads_list(self, place: int) -> bool:
        """Return whether a line of a word or two stands alone above a list: "Decisions"."""
        before, following = self._lines[place - 1 : place], self._lines[place + 1 : place + 2]
        return (
            _SIGNS.fullmatch(self._lines[place].text) is not None
            and all(not one.text or _STROKES.fullmatch(one.text) for one in before)
            and any(LIST_ITEM.match(one.text) for one in following)
        )

    def _begins_with_title(self) -> bool:
        """Return whether the first line stands apart and has half of the words of the document's
        title."""
        if self._lines[1].text:
            return False
        title = {*index_terms(self._source.title).split()}
        return 0 < len(title) <= 2 * len(title & {*index_terms(self._lines[0].text).split()})

    def _rows(self, lines: list[_Line]) -> Iterator[Statement]:
        introduction = self._introduction.text if self._introduction else ""
        if (table := self._table_at(lines[0])) is not None:
            text = self._source.text
            context = self._context(introduction, table.caption)
            for row in table_rows(text, table):
                cells = tuple(one.strip() for one in row.texts(text))
                if not row.is_header and any(cells):
                    end = row.start + len(text[row.start : row.end].rstrip())
                    yield Statement(
                        row.start, end, context, cells, table.header, self._heading, self._group
                    )
            return
        lines = [line for line in lines if not _TABLE_RULE.fullmatch(line.text)]
        if not lines:
            return
        header, *rows = [_cells(line.text) for line in lines]
        context = self._context(introduction)
        for line, cells in zip(lines[1:], rows, strict=True):
            yield Statement(
                line.start, line.end, context, cells, header, self._heading, self._group
            )

    def _items(self, lines: list[_Line]) -> Iterator[Statement]:
        introduction = self._introduction
        introduced = introduction.text if introduction else ""
        start = introduction.start if introduction else None
        items: list[tuple[int, int]] = []
        notes: set[int] = set()
        for line in lines:
            # Terms with their definitions are items without a marker.
            block = self._block_at(line)
            begins = LIST_ITEM.match(line.text) or (block is not None and block.start == line.start)
            if begins and block is not None and block.kind is BlockKind.FOOTNOTE:
                notes.add(line.start)
            if items and not begins:
                items[-1] = items[-1][0], line.end
            else:
                items.append((line.start, line.end))
        above: list[_Item] = []  # The items that this one is nested in.
        for first, last in items:
            item = self._item(first, last)
            while above and not item.is_nested_in(above[-1]):
                above.pop()
            context = self._context(introduced, *(one.label for one in above[-_MAX_ABOVE:]))
            # Footnotes stand below the last heading of a document, but belong to any.
            context, heading = ("", "") if first in notes else (context, self._heading)
            spans = [(first, last)]
            if last - first > _MAX_ITEM_CHARACTERS:
                spans = _spans(self._source.text, first, last)
            for span in spans:
                yield Statement(
                    *span, context, heading=heading, group=self._group, group_start=start,
                    depth=len(above),
                )  # fmt: skip
            above.append(item)

    def _item(self, start: int, end: int) -> _Item:
        indent = start - self._source.text.rfind("\n", 0, start) - 1
        text = self._source.text[start:end]
        said = LIST_ITEM.sub("", text, count=1)
        marker = _NUMBER.sub("0", text[: len(text) - len(said)])
        if len(said) > _MAX_LABEL_CHARACTERS and introduces(said):
            first, last = list(each_sentence(said))[-1]
            said = said[first:last]
        return _Item(indent, marker, said if len(said) <= _MAX_LABEL_CHARACTERS else "")

    def _sentences(self, lines: list[_Line], following: str) -> Iterator[Statement]:
        text = self._source.text
        self._introduction = None
        for start, end in _spans(text, lines[0].start, lines[-1].end):
            sentence = text[start:end]
            is_above = following in {"list", "table"} and end == lines[-1].end
            if is_above and introduces(sentence):
                self._introduction = _Line(start, end, sentence)
            elif _WROTE.search(sentence) or (
                sentence.endswith((":", "：")) and end == lines[-1].end
            ):
                self._introduction = None  # "Bob wrote:" says nothing, and introduces nothing.
            elif _ASKS.search(sentence):
                # The lines below a question that an e-mail quotes are not its answer.
                if not sentence.startswith(_QUOTED):
                    self._heading, self._introduction = sentence, None
            else:
                block = self._block_at(_Line(start, end, sentence))
                is_code = block is not None and block.kind is BlockKind.CODE
                context = self._context()
                yield Statement(start, end, context, heading=self._heading, is_code=is_code)
                if following == "table" and _NAMES_TABLE.search(sentence):
                    self._introduction = _Line(start, end, sentence)


def _is_one_sentence(text: str) -> bool:
    return len(list(each_sentence(text))) == 1


def _spans(text: str, start: int, end: int) -> list[tuple[int, int]]:
    return [(start + first, start + last) for first, last in each_sentence(text[start:end])]


def _lines(text: str) -> Iterator[_Line]:
    start = 0
    for raw in text.split("\n"):
        bare = raw.strip()
        first = start + len(raw) - len(raw.lstrip())
        yield _Line(first, first + len(bare), bare)
        start += len(raw) + 1


def _cells(line: str) -> tuple[str, ...]:
    return tuple(cell.strip() for cell in _CELL_BORDER.split(line.strip("|").strip()))
