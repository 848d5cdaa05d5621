"""Sentences of Chinese and English text, with their ranges."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

from portal.text.characters.scripts import HAN

_CLOSERS = "”’」』）》】〉〕\"')\\]"
_NOTE_MARKS = r"(?:\[\d{1,3}\])*"  # Marks of footnotes belong to the sentence before them.
# A line as long as this was broken by the layout, not by the writer.
_WRAPPED_LINE_LENGTH = 30

# Searching for single characters is many times faster than for the full pattern.
_MAY_END = re.compile(r"[。！？；｡….!?\n]")
_STOPS = re.compile(r"[.!?]+")
_BOUNDARY = re.compile(
    rf"(?P<full>(?:[。！？；｡]+|…+)[{_CLOSERS}]*{_NOTE_MARKS})"
    rf"|(?P<latin>[.!?]+[{_CLOSERS}]*{_NOTE_MARKS}(?=\s|[{HAN}]|\Z))"
    r"|(?P<blank>\n[^\S\n]*\n\s*)"
    r"|(?P<line>\n)"
)
_ABBREVIATION = re.compile(
    r"(?:^|[^\w.])([A-Za-z]|(?:[A-Za-z]\.)+[A-Za-z]|Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|Gen|Col|Lt|Sgt|Rev"
    r"|Fig|Figs|No|Nos|Vol|pp|Eq|Sec|Ch|Inc|Ltd|Corp|Co|vs|cf|etc|approx|est|al|ca|Jan|Feb|Mar|Apr"
    r"|Jun|Jul|Aug|Sept|Sep|Oct|Nov|Dec)$"
)
# These may end a sentence ("after 5 min."), but not before a number.
_BEFORE_NUMBER = re.compile(
    r"(?:^|[^\w.])(?:extn?|tel|min|max|art|arts|para|sect|ver|rev|nr|rm|apt)$", re.IGNORECASE
)
_MAX_ABBREVIATION_LENGTH = 12
_OPENS_SENTENCE = re.compile(rf"[\"'“‘(\[]*[A-Z0-9{HAN}]")
LIST_ITEM = re.compile(
    r"\s*(?:[-*•·▪●○①-⑳]|\d{1,3}\.(?:\d{1,2}(?:\.\d{1,2})*(?=[ \t]))?"
    r"|[（(]?(?:\d{1,3}|[一二三四五六七八九十]+)[）)、])"
)
# These also end sentences.
_MAY_BE_LAST = frozenset({"etc", "al", "Inc", "Ltd", "Corp", "Co", "Jr", "Sr"})


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Return ranges of sentences, in order, without surrounding white space and never empty.

    Together they hold every character that is not white space. Linear in len(text).
    """
    return list(each_sentence(text))


def each_sentence(text: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges of `sentence_spans` one by one."""
    start = 0
    for end in chain(_boundaries(text), [len(text)]):
        trimmed = trim(text, start, end)
        if trimmed[0] < trimmed[1]:
            yield trimmed
        start = end


def trim(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the range without white space at either end."""
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())


def _boundaries(text: str) -> Iterator[int]:
    line_start = 0
    for match in _ends(text):
        kind = match.lastgroup
        at, end = match.span()
        if kind in {"full", "blank"}:
            yield end
        elif kind == "latin":
            if not match.group().startswith(".") or _dot_ends_sentence(text, at, end):
                yield end
        elif not _wraps(text, line_start, at):
            yield end
        if kind in {"blank", "line"}:
            line_start = end


def _ends(text: str) -> Iterator[re.Match[str]]:
    """Yield all matches of `_BOUNDARY`, in order."""
    place = 0
    while candidate := _MAY_END.search(text, place):
        start = candidate.start()
        match = _BOUNDARY.match(text, start)
        # If a run of stops ends no sentence, no part of it does.
        place = (match or _STOPS.match(text, start) or candidate).end()
        if match:
            yield match


def _dot_ends_sentence(text: str, at: int, end: int) -> bool:
    following = text[end : end + 80].lstrip()
    if following and not _OPENS_SENTENCE.match(following):
        return False
    said = text[max(0, at - _MAX_ABBREVIATION_LENGTH) : at]
    if following[:1].isdigit() and _BEFORE_NUMBER.search(said):
        return False
    before = _ABBREVIATION.search(said)
    if not before or end - at > 1:
        return True
    return before[1] in _MAY_BE_LAST or not following


def _wraps(text: str, line_start: int, line_end: int) -> bool:
    """Return whether a sentence continues after this line end."""
    line = text[max(line_start, line_end - 200) : line_end].rstrip()
    following = text[line_end : line_end + 40]
    if not line or not following.strip() or LIST_ITEM.match(following):
        return False
    if following.lstrip()[0].islower():
        return True
    return len(line) >= _WRAPPED_LINE_LENGTH and not line.endswith((":", "：", "|"))
