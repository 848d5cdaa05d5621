"""Synonyms of the workplace: a question is also read in the words of a statement.

The model that reads is small and knows few synonyms: 可以在家办公吗 and 每周可远程办公两天 have log
odds of -3; with 远程办公 in both, +1.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from itertools import accumulate, chain, combinations
from pathlib import Path

import rjieba

from portal.answering.quoting.rules.groups.cities import with_tier
from portal.text.characters.scripts import HAN

# One meaning per line, with words that can replace each other.
SYNONYMS = Path(__file__).with_name("synonyms.txt")
_HAN = re.compile(f"[{HAN}]")
_HAN_RUN = re.compile(f"[{HAN}]{{2,}}")
_WORD = re.compile(r"[a-z0-9][a-z0-9'’-]*", re.IGNORECASE)
_SHORT, _MAX_CHARACTERS, _MAX_WORDS = 2, 8, 5


@cache
def _thesaurus() -> Mapping[str, tuple[str, ...]]:
    """Return words with those that can replace them, longest first: 无线网络 is not 无线网 with
    another word."""
    found: dict[str, set[str]] = defaultdict(set)
    for line in SYNONYMS.read_text("utf-8").splitlines():
        words = line.split(", ")
        for word in words:
            found[word].update(words)
    return {
        word: tuple(sorted(others - {word}, key=lambda one: (-len(one), one)))
        for word, others in found.items()
    }


@lru_cache(maxsize=4096)
def _pattern(word: str) -> re.Pattern[str]:
    text = re.escape(word)
    return re.compile(text if _HAN.search(word) else rf"(?<![a-z-]){text}(?![a-z-])", re.IGNORECASE)


@lru_cache(maxsize=256)
def _replaceable(question: str) -> tuple[str, ...]:
    """Return the words of a question that have synonyms, longest first. Cached, because a question
    is compared with many texts."""
    known = _thesaurus()
    found = {one for one in chain(_parts(question), _phrases(question.lower())) if one in known}
    return tuple(sorted(found, key=lambda one: (-len(one), question.lower().find(one))))


def _parts(question: str) -> Iterator[str]:
    """Yield the parts of each run of Chinese characters; those of two characters only if they are
    words there, because 会议 is no part of 会议室."""
    for run in _HAN_RUN.findall(question):
        borders = {0, *accumulate(map(len, rjieba.cut(run)))}
        for start, end in combinations(range(len(run) + 1), 2):
            length = end - start
            if (length == _SHORT and {start, end} <= borders) or _SHORT < length <= _MAX_CHARACTERS:
                yield run[start:end]


def _phrases(question: str) -> Iterator[str]:
    """Yield one to five adjacent words, as they are written."""
    words = list(_WORD.finditer(question))
    for place, first in enumerate(words):
        for last in words[place : place + _MAX_WORDS]:
            yield question[first.start() : last.end()]


def reworded(question: str, text: str, context: str = "") -> str:
    """Return a question in which words that the text does not have are replaced by synonyms that it
    has, and a city by its tier; `context` is what the text is below."""
    question = with_tier(question, text, context)
    for asked in _replaceable(question):
        if _pattern(asked).search(text):
            continue
        said = next((one for one in _thesaurus()[asked] if _pattern(one).search(text)), None)
        if said:
            question = _pattern(asked).sub(said, question, count=1)
    return question
