"""Paragraphs from the lines of a page layout."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from portal.ingest.formats.texts.readable_text import is_item
from portal.text.characters.normalise import clean
from portal.text.characters.scripts import HAN, HIRAGANA, KATAKANA, WIDE

LINE_END_HYPHEN = "\x02"

_WIDE = re.compile(f"[{WIDE}“”‘’—…]")
_LIST_ITEM = re.compile(
    r"(?:[-–•·▪●○◆■□►✓*]\s|[-–•▪●○◆■□►](?=[A-Z])|\(?\d{1,2}(?:\.\d{1,2})*[.)、]\s|\d{1,2}(?:\.\d{1,2})+\s|\d{1,2}[.、]\S"
    r"|[（(]?[一二三四五六七八九十]{1,3}[）)、]|第[一二三四五六七八九十百\d]+[章节節条條])"
)
# A number alone also begins lines within a sentence: "40 watts".
_NUMBERED_HEADING = re.compile(rf"\d{{1,2}}\s+[A-Z{HAN}]")
_CAPTION = re.compile(r"(?:Table|Figure|Fig\.|表|图|圖)\s*\d+(?:[.-]\d+)*[\s.:：]", re.IGNORECASE)
_ENDS_SENTENCE = re.compile(r"[.!?。！？；;:：…][”’\"'」』）)]*$")
# Everything but the Chinese punctuation that NFKC would convert.
_BUT_CHINESE_PUNCTUATION = re.compile("[^\u3000，！？：；（）～]+")
_TELLING_COUNT = 4
_PARAGRAPH_LEADING = 1.35  # times the usual distance of lines
_SIZE_CHANGE = 0.12
_NEAR = 4  # Lines above and below that show where lines end, and letters by which ends may differ.
_CUT_MARGIN = 1.0  # times the size
_LETTER_WIDTH = 0.55  # times the size
_FIRST_WORD = re.compile(rf"[{HAN}{HIRAGANA}{KATAKANA}]{{1,2}}|\S[^\s{HAN}]*")
_GOES_ON = re.compile(rf"[,，、;；(（\[/–—]$|-$|{LINE_END_HYPHEN}$")
_SHORT_LINE = 0.6  # of the width of the text
_MIN_COLUMN_LINES = 3
_MIN_COLUMN_WIDTH = 0.25  # of the width of the text
_MAX_WORD_LENGTH = 500
HEADING_SIZE = 1.15  # times the size of most of the text
_TITLE_LEADING = 1.6  # times its size: the lines of one title
_TITLE_SIZE_CHANGE = 0.05
_BOLD_LINE = 0.9  # of the width of the text: a longer line in bold type is not a heading
_LETTERS = "a-zA-ZÀ-ÖØ-öø-ɏͰ-ϿЀ-ӿ"
# Words within a line; the first and the last may be halves of words.
_WORDS = re.compile(rf"(?<=[\s(“‘\"'])[{_LETTERS}]+(?:-[{_LETTERS}]+)*(?![-\x02{_LETTERS}])")
_WORD_END = re.compile(rf"[{_LETTERS}-]+$")
_WORD = re.compile(rf"[{_LETTERS}]+")
# What follows the hyphen of a serial number: "AQ6-" and "20417", "X2-" and "B".
_CODE = re.compile(r"\d|[A-Z](?![a-z])")
_MAX_WORD = 60
_MIN_WORD = 4  # Letters of each half of a compound; shorter ones are prefixes.


class Line(NamedTuple):
    """A line on the page, in points; y grows upwards."""

    text: str
    left: float
    right: float
    baseline: float
    size: float
    rows: tuple[tuple[str, ...], ...] = ()
    """The rows of a table that takes the place of a line."""
    style: str = ""
    """ "bold", "turned" for text that does not run from left to right, or empty."""


@dataclass(frozen=True, slots=True)
class Paragraph:
    text: str
    size: float
    line_count: int
    rows: tuple[tuple[str, ...], ...] = ()
    style: str = ""
    baseline: float = 0.0
    """That of the first line."""

    @property
    def is_item(self) -> bool:
        return is_item(self.text)


def readable(text: str) -> str:
    """Apply NFKC (Kangxi radicals, ligatures, full-width letters), keeping Chinese punctuation."""
    return _BUT_CHINESE_PUNCTUATION.sub(lambda match: clean(match.group()), text)


def words_of(pages: Iterable[Iterable[Line]]) -> frozenset[str]:
    """Return the words within lines, including those with hyphens, in lower case."""
    return frozenset(
        word for page in pages for line in page for word in _WORDS.findall(line.text.lower())
    )


def paragraphs(lines: Sequence[Line], words: frozenset[str] = frozenset()) -> list[Paragraph]:
    """Join lines into paragraphs: Chinese without spaces, words with spaces and without line-end
    hyphens. `words` are those of the document: "well-known" is among them, "know-ledge" is not."""
    return [
        Paragraph(
            join([line.text for line in group], words),
            group[0].size,
            len(group),
            group[0].rows,
            style,
            group[0].baseline,
        )
        for group in _lines_of_paragraphs(lines)
        for style in [group[0].style if len({line.style for line in group}) == 1 else ""]
    ]


def _lines_of_paragraphs(lines: Sequence[Line]) -> Iterator[list[Line]]:
    leading = _usual_leading(lines)
    margins = _margins(lines)
    title_size = HEADING_SIZE * usual_size(lines)
    group: list[Line] = []
    for place, line in enumerate(lines):
        left, right = margins[max(0, place - 1)]  # Of the previous line, which may end a paragraph.
        is_blank = not line.text.strip()
        near = (one.right for one in lines[max(0, place - _NEAR) : place + _NEAR] if not one.rows)
        is_cut = bool(group) and _is_cut(group[-2:], line, min(right, max(near, default=right)))
        is_table = bool(line.rows or (group and group[-1].rows))
        if group and (
            is_blank
            or is_table
            or (
                not _continues_title(group[-1], line, title_size)
                and (is_cut or _begins_paragraph(group[-1], line, leading, left, right - left))
            )
        ):
            yield group
            group = []
        if not is_blank:
            group.append(line)
    if group:
        yield group


def _margins(lines: Sequence[Line]) -> list[tuple[float, float]]:
    """Return the left and right margin of the text around each line: of its column, else of the
    page."""
    page = _edges(lines)
    margins = [page] * len(lines)
    # Where a line jumps up, the next column begins.
    jumps = (
        place
        for place, (above, line) in enumerate(pairwise(lines), 1)
        if above.baseline - line.baseline < -line.size / 2
    )
    runs = list(pairwise((0, *jumps, len(lines))))
    for (begin, middle), (_, end) in pairwise(runs):
        # The columns are the lines on either side of the jump that do not reach across it.
        first = middle
        while first > begin and lines[first - 1].right < lines[middle].left:
            first -= 1
        edge = max((line.right for line in lines[first:middle]), default=lines[middle].left)
        last = middle
        while last < end and lines[last].left > edge:
            last += 1
        for column in (slice(first, middle), slice(middle, last)):
            edges = _edges(lines[column])
            if column.stop - column.start >= _MIN_COLUMN_LINES and _is_wide(edges, page):
                margins[column] = [edges] * (column.stop - column.start)
    return margins


def _edges(lines: Sequence[Line]) -> tuple[float, float]:
    return (
        min((line.left for line in lines), default=0.0),
        max((line.right for line in lines), default=0.0),
    )


def _is_wide(column: tuple[float, float], page: tuple[float, float]) -> bool:
    """Return whether a column is wide enough for text; cells of a table without rules are not."""
    return column[1] - column[0] >= _MIN_COLUMN_WIDTH * (page[1] - page[0])


def usual_size(lines: Iterable[Line]) -> float:
    """Return the size in which most of the text is set."""
    amount: Counter[float] = Counter()
    for line in lines:
        if not line.rows:
            amount[line.size] += len(line.text)
    return max(amount, key=amount.__getitem__, default=0.0)


def _continues_title(previous: Line, line: Line, title_size: float) -> bool:
    return (
        min(previous.size, line.size) > title_size
        and abs(previous.size - line.size) <= _TITLE_SIZE_CHANGE * line.size
        and previous.style == line.style
        and 0 < previous.baseline - line.baseline < _TITLE_LEADING * line.size
        and not _LIST_ITEM.match(line.text.lstrip())
    )


def join(lines: Iterable[str], words: frozenset[str] = frozenset()) -> str:
    """Return lines as the text of one paragraph. Joining depends on the last word only, so earlier
    text is set aside: otherwise every line would copy all text before it."""
    aside: list[str] = []
    end = ""
    for line in lines:
        end = _join_lines(end, line.strip(), words) if end else line.strip()
        if len(end) > 2 * _MAX_WORD_LENGTH:
            aside.append(end[:-_MAX_WORD_LENGTH])
            end = end[-_MAX_WORD_LENGTH:]
    return "".join((*aside, end)).replace(LINE_END_HYPHEN, "-")


def _join_lines(before: str, after: str, words: frozenset[str]) -> str:
    """Join two lines of one paragraph. `words` are those that the document has elsewhere."""
    if before.endswith(LINE_END_HYPHEN) or (before.endswith("-") and before[-2:-1].isalpha()):
        # A4-Format and state-of-the-art keep their hyphens; other words were divided here.
        divided = after[:1].islower() and before[-2:-1].islower()
        divided = divided and not _is_compound(before[-_MAX_WORD:-1].lower(), after.lower(), words)
        return before[:-1] + ("" if divided else "-") + after
    if before.endswith("-") and before[-2:-1].isdigit() and _CODE.match(after):
        return before + after
    if _WIDE.match(before[-1:]) or _WIDE.match(after):
        return before + after
    return f"{before} {after}"


def _is_compound(before: str, after: str, words: frozenset[str]) -> bool:
    first, second = _WORD_END.search(before), _WORD.match(after)
    if not first or not second:
        return False
    *_, part = first.group().rsplit("-", 1)
    if f"{first.group()}-{second.group()}" in words:
        return True
    if part + second.group() in words:
        return False
    are_words = min(len(part), second.end()) >= _MIN_WORD and {part, second.group()} <= words
    return are_words or part != first.group()


def _usual_leading(lines: Sequence[Line]) -> float:
    """Return the usual distance between lines: the most frequent, on sparse pages the smallest."""
    distances = Counter(
        round(distance)
        for above, below in pairwise(lines)
        if not above.rows and not below.rows
        if 0.8 * below.size < (distance := above.baseline - below.baseline) < 3 * max(below.size, 8)
    )
    if not distances:
        return 0.0
    distance, count = max(distances.items(), key=lambda item: (item[1], -item[0]))
    return distance if count >= _TELLING_COUNT else min(distances)


def _is_cut(last: Sequence[Line], line: Line, right: float) -> bool:
    """Return whether a paragraph that ends with the lines `last` was ended by hand: the first word
    of the next line would have fitted before `right`, where the lines nearby end."""
    *above, previous = last
    if above and abs(above[-1].right - previous.right) < _NEAR * line.size:
        return False  # Lines next to a picture end earlier than others.
    text, before = line.text.lstrip(), previous.text.rstrip()
    if text[:1].islower() or _GOES_ON.search(before):
        return False
    return (
        abs(previous.left - line.left) < line.size / 2
        and previous.baseline > line.baseline
        and previous.style == line.style
        and _fits(line, right - previous.right - _CUT_MARGIN * line.size)
    )


def _fits(line: Line, room: float) -> bool:
    """Return whether the first word of a line would have fitted into `room` above it."""
    word = _FIRST_WORD.match(line.text.lstrip())
    widths = (
        (1.0 if _WIDE.match(letter) else _LETTER_WIDTH for letter in word.group()) if word else ()
    )
    return sum(widths) * line.size < room


def _begins_paragraph(  # noqa: PLR0911 - a table of cases
    previous: Line, line: Line, leading: float, left: float, width: float
) -> bool:
    if re.search(rf"[^\W\d]-$|{LINE_END_HYPHEN}$", previous.text.rstrip()):
        return False
    if _LIST_ITEM.match(line.text.lstrip()) or line.text.startswith("\u3000"):
        return True
    if abs(previous.size - line.size) > _SIZE_CHANGE * max(previous.size, line.size):
        return True
    if "turned" in {previous.style, line.style}:
        return previous.style != line.style
    ended = bool(_ENDS_SENTENCE.search(previous.text.rstrip()))
    filled = (previous.right - left) / width if width else 1.0
    distance = previous.baseline - line.baseline
    if distance < -line.size / 2:  # A jump up is the next column.
        return ended or filled < _SHORT_LINE
    is_apart = leading and distance > _PARAGRAPH_LEADING * leading
    if is_apart or (ended and (_CAPTION.match(line.text) or _NUMBERED_HEADING.match(line.text))):
        return True
    indented = line.left > previous.left + 0.9 * line.size
    if previous.style != line.style and (ended or indented or filled < _BOLD_LINE):
        return True  # A heading in bold type, in the size of the text.
    is_short = filled < 1 - 2 * line.size / max(width, 1.0) - 0.05
    is_short = is_short and _fits(line, left + width - previous.right)
    return (ended and (indented or is_short)) or filled < _SHORT_LINE
