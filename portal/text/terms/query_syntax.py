"""Search operators that narrow a query, parsed apart from its text.

=========================  ==================================================================
`"annual leave"`, `「年假」`  the chunk holds exactly these words, in this order
`-draft`, `-"first draft"`  the chunk does not hold it
`title:leave`, `标题:年假`   the document's title holds it; `title:"annual leave"` for several words
`type:pdf`, `类型:pdf`      the document is of this type; of several, any is enough
=========================  ==================================================================

Text that is not clearly one of these is part of the query, unchanged: `C++`, `a - b`, `e-mail`,
`-5`, a quote that never closes, `<a href="x">`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from portal.domain.documents import TYPES, MediaType
from portal.text.characters.scripts import HAN, HANGUL, HIRAGANA, KATAKANA, SYMBOLS

# Longer operands, or operators beyond this number, are pasted text.
MAX_OPERAND_LENGTH = 200
MAX_OPERATORS = 16

_TITLE_NAMES = "title|标题|標題"
_TYPE_NAMES = "type|类型|類型"
_TYPES = TYPES | {
    "text": MediaType.TEXT,
    "markdown": MediaType.MARKDOWN,
    "htm": MediaType.HTML,
    "word": MediaType.DOCX,
    "excel": MediaType.XLSX,
    "tsv": MediaType.CSV,
    "powerpoint": MediaType.PPTX,
    "mail": MediaType.EML,
    "jpg": MediaType.JPEG,
    "tif": MediaType.TIFF,
}

_UNSPACED = f"{HAN}{HIRAGANA}{KATAKANA}{HANGUL}\u3000-\u303f\uff01-\uff1f"
# A quote counts only where a word could begin and end: not in 5" or href="x".
_BEFORE_QUOTE = f"(?<![^\\s(（{_UNSPACED}])"
_AFTER_QUOTE = f"(?![^\\s.,;:!?)）{_UNSPACED}])"
_QUOTED = "|".join(
    f"{opening}(?P<PREFIX_{name}>[^{opening}{closing}]{{1,{MAX_OPERAND_LENGTH}}}){closing}"
    for name, opening, closing in (
        ("straight", '"', '"'),
        ("wide", "＂", "＂"),
        ("curly", "“", "”"),
        ("corner", "「", "」"),
        ("double", "『", "』"),
    )
)


def _quote(prefix: str) -> str:
    return f"(?:{_QUOTED.replace('PREFIX', prefix)})"


_WORD = f"\\S{{1,{MAX_OPERAND_LENGTH}}}(?!\\S)"
# Not a currency: -€5 is an amount.
_EMOJI = f"(?![\\u00a3\\u00a5\\u20a0-\\u20cf])[{SYMBOLS}]"
_OPERATORS = re.compile(
    "(?:"
    # These begin at the start of a word, after white space.
    r"(?<!\S)(?:"
    f'(?:{_TITLE_NAMES})[:：](?:{_quote("title")}{_AFTER_QUOTE}|(?P<title>(?!["“「『＂]){_WORD}))'
    f"|(?:{_TYPE_NAMES})[:：](?P<type>(?a:{'|'.join(_TYPES)}))(?!\\S)"
    f"|[-－](?:{_quote('not')}{_AFTER_QUOTE}|(?P<not>(?=[^\\W\\d_]|{_EMOJI}){_WORD}))"
    ")"
    f"|{_BEFORE_QUOTE}{_quote('phrase')}{_AFTER_QUOTE}"
    ")",
    re.IGNORECASE,
)
# Emoji and similar signs are searched for like words.
_SAYS_SOMETHING = re.compile(f"[^\\W_]|[{SYMBOLS}]")
_PUNCTUATION = ".,;:!?，。；：！？、"


class _Operator(NamedTuple):
    kind: str
    operand: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A query without its operators, and the filters they set.

    `text` is what is embedded and searched; it includes the words of phrases, not those of other
    operators.
    """

    text: str
    phrases: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    titles: tuple[str, ...] = ()
    media_types: tuple[MediaType, ...] = ()

    @property
    def has_filters(self) -> bool:
        """Return whether the query has filters."""
        return bool(self.phrases or self.excluded or self.titles or self.media_types)

    @property
    def is_of_titles(self) -> bool:
        """Return whether the query names only titles, which are then its text."""
        return bool(self.titles) and self.text == " ".join(self.titles)


def parse_query(query: str) -> ParsedQuery:
    """Parse a query.

    Never fails: anything that is not an operator is text. Text without operators is left as it is.
    If a query names only titles, these are its text.
    """
    operators = tuple(_operators(query))
    if not operators:
        return ParsedQuery(query)
    found: dict[str, list[str]] = {"phrase": [], "not": [], "title": [], "type": []}
    for operator in operators:
        found[operator.kind].append(operator.operand)
    text = _without(query, operators)
    if not text.strip(_PUNCTUATION):
        text = " ".join(_deduplicate(found["title"]))
    return ParsedQuery(
        text=text,
        phrases=_deduplicate(found["phrase"]),
        excluded=_deduplicate(found["not"]),
        titles=_deduplicate(found["title"]),
        media_types=tuple(dict.fromkeys(_TYPES[name.lower()] for name in found["type"])),
    )


def respell(
    query: str, in_text: Iterable[tuple[str, str]], in_titles: Iterable[tuple[str, str]] = ()
) -> str:
    """Return the query as written, with corrected words.

    Replaces words of its text, phrases included, and of the titles that it names; other operators
    are left alone.
    """
    by_word, by_title_word = dict(in_text), dict(in_titles)
    parts: list[str] = []
    done = 0
    for operator in _operators(query):
        if operator.kind != "phrase":
            written = query[operator.start : operator.end]
            if operator.kind == "title":
                name, colon, operand = re.split("([:：])", written, maxsplit=1)
                written = f"{name}{colon}{_replace(operand, by_title_word)}"
            parts += (_replace(query[done : operator.start], by_word), written)
            done = operator.end
    return "".join((*parts, _replace(query[done:], by_word)))


def _operators(query: str) -> Iterator[_Operator]:
    for count, match in enumerate(_OPERATORS.finditer(query)):
        if count == MAX_OPERATORS:
            return
        name = match.lastgroup or ""
        kind = name.partition("_")[0]
        operand = match[name].strip()
        if name == kind:
            operand = operand.rstrip(_PUNCTUATION)
        if _SAYS_SOMETHING.search(operand):
            yield _Operator(kind, operand, *match.span())


def _without(query: str, operators: Iterable[_Operator]) -> str:
    parts: list[str] = []
    done = 0
    for operator in operators:
        before = query[done : operator.start]
        parts += (before, operator.operand) if operator.kind == "phrase" else (before.rstrip(),)
        done = operator.end
    return "".join((*parts, query[done:])).strip()


def _deduplicate(operands: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(operands))


def _replace(text: str, by_word: Mapping[str, str]) -> str:
    if not by_word:
        return text
    words = "|".join(re.escape(word) for word in sorted(by_word, key=len, reverse=True))
    # Latin words are replaced whole; Chinese words have no delimiters.
    pattern = f"(?<![A-Za-z0-9])(?:{words})(?![A-Za-z0-9])"
    return re.sub(pattern, lambda match: by_word[match.group()], text)
