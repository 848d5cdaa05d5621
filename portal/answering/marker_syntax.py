"""The markers and links that models write, as patterns for text that is still being streamed."""

from __future__ import annotations

import re

BRACKETS = "[【［〔]】］〕"
_OPEN, _CLOSE = "\\[【［〔", "\\]】］〕"
_SPACE = r"[^\S\n]"
_WORD = (
    r"(?:sources?|passages?|docs?|documents?|citations?|refs?|references?"
    r"|来源|來源|文档|文檔|文件|段落|资料|資料|引用|参考|參考|出处|出處|片段)"
)
# Each space can match in one way only: with two, a list of numbers would take exponential time.
_NUMBER = rf"(?:[\^#]{_SPACE}?)?(?:{_WORD}(?:{_SPACE}?[:：#])?{_SPACE}?)?\d{{1,3}}"
_BETWEEN = rf"{_SPACE}*(?:[,，、;；&+]|and|和|与|與|至|-|–|—|~|～){_SPACE}*"
_BODY = rf"{_SPACE}*+{_NUMBER}(?:{_BETWEEN}{_NUMBER})*{_SPACE}*"
# Some models append a dagger and the name of the file: 【1†notes.pdf】.
_DAGGER = rf"(?:†[^\n{_OPEN}{_CLOSE}]{{0,40}})?"
MARKER = re.compile(
    rf"\[\[(?P<inner>{_BODY}){_DAGGER}\]\]|[{_OPEN}](?P<body>{_BODY}){_DAGGER}[{_CLOSE}]",
    re.IGNORECASE,
)
_PART = re.compile(r"(?P<dash>[-–—~～至])|(?P<number>\d{1,3})")
# A beginning that may become a marker as more text arrives.
BEGINNING = re.compile(
    rf"(?:\[\[|[{_OPEN}])(?:[\w^#:：,，、;；&+–—~～ \t-]{{0,60}}"
    rf"(?:†[^\n{_OPEN}{_CLOSE}]{{0,40}})?\]?)?\Z"
)
MAX_BODY_LENGTH = 60
_MAX_IN_RANGE = 20
PLAIN = re.compile(rf"[^{_OPEN}\]<!\\\n \t(:]+")
SPACES = re.compile(r"[ \t]+")
SHOWN = re.compile(r"\[(\d{1,3})\]")
ALMOST_MARKER = re.compile(r"\[\d{1,3}\Z")
# Markup of quotations and lists at the start of a line: what follows may define a link.
LINE_PREFIX = re.compile(r"[\s>*+\d.)-]*\[[^\]]*\Z")
_INDENT = rf"{_SPACE}*+(?:\n{_SPACE}*+)?"
ADDRESS = re.compile(
    rf"\({_INDENT}(?:<[^<>\n]*>|(?:[^\s()<>]|\([^\s()]*\))*)"
    r"(?:\s*+(?<=\s)(?:\"[^\"\n]*\"|'[^'\n]*'|\([^()\n]*\)))?\s*+\)"
)
MAYBE_ADDRESS = re.compile(
    rf"\({_INDENT}(?:<[^<>\n]*>?|(?:[^\s()<>]|\([^\s()]*+\)?)*)"
    r"(?:\s*+(?<=\s)(?:\"[^\"\n]*\"?|'[^'\n]*'?|\([^()\n]*\)?)?)?\s*+\Z"
)
_LIKE_MARKER = re.compile(
    r"[\[【［〔]([^\S\n]*\^?\d{1,3}(?:[^\S\n]*[,，、;；–-][^\S\n]*\d{1,3})*[^\S\n]*)[\]】］〕]"
)
LOOKS_REMOTE = re.compile(r"[:/#.?&=]")
MAX_ADDRESS_LENGTH = 2000
OPENS_TAG = re.compile(r"[A-Za-z/!?]")


def numbers_in(body: str) -> list[int]:
    """Return the numbers of a marker, expanding ranges."""
    found: list[int] = []
    is_range = False
    for part in _PART.finditer(body):
        if part["dash"]:
            is_range = True
            continue
        number = int(part["number"])
        if is_range and found and found[-1] < number <= found[-1] + _MAX_IN_RANGE:
            found += range(found[-1] + 1, number)
        found.append(number)
        is_range = False
    return list(dict.fromkeys(found))


def without_markers(line: str) -> str:
    return SHOWN.sub("", line)


def without_markers_of_its_own(text: str) -> str:
    """Return text with bracketed numbers in parentheses: [3] as (3)."""
    return _LIKE_MARKER.sub(r"(\1)", text)
