"""Misspelt words: candidates for correction, and the edit distance between words."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache
from itertools import pairwise, takewhile
from typing import NamedTuple

import rjieba

from portal.text.characters.folding import fold
from portal.text.characters.normalise import normalise
from portal.text.characters.scripts import HAN, HAN_RUN, HANGUL, HIRAGANA, KATAKANA, UNSPACED
from portal.text.terms.lexemes import one_lexeme, stemmed
from portal.text.terms.stopwords import STOP_WORDS

MAX_WORD_LENGTH = 32
MAX_HAN_WORD_LENGTH = 6
_MIN_LETTERS = 3  # For a stored word; a word to correct needs one more.
# A Chinese word with three unchanged characters is recognised by them; a shorter one by its
# neighbours.
LONG_HAN_WORD = 4
_LONG_WORD = 6  # From this length on two edits count as a misspelling, below it as another word.
_WIDEST_WINDOW = 4
_CONTEXT = 2
# One-character words that occur next to all others, and so are not a sign of a misspelling.
_COMMON = STOP_WORDS | frozenset(
    "一二三四五六七八九十百千万两半每各某该其此本另第年月日时分秒天周次个种位名家条件项座"
    "上下中内外前后里间旁东西南北左右大小多少高低长短新老旧早晚远近好坏真全总主副不没未无非"
    "人事物地处来去到从自由向往对给让使用叫称做作成为说问看听写读想要会能可应得着过起出入"
    "回进开关等并或但且又再还只才很更最太较约近将已曾正所以因则若如像同跟比至该当受被"
)

_RUNS = re.compile(f"(?P<han>[{HAN}]++)|[^\\W_{HAN}{HIRAGANA}{KATAKANA}{HANGUL}{UNSPACED}]++")


class Word(NamedTuple):
    """A folded word, its `surface` as it is written, and the terms that find it, separated by
    spaces."""

    word: str
    surface: str
    term: str


class Suspect(NamedTuple):
    """Characters `start` to `end` of a query that may be misspelt; `word` is the folded text.

    For Chinese, `before` and `after` are the characters around them. With `in_title` the word has
    to match a title.
    """

    word: str
    term: str
    start: int
    end: int
    is_han: bool
    before: str = ""
    after: str = ""
    in_title: bool = False


def words_of(text: str) -> dict[str, Word]:
    """Return the words of a text that a user may search for, by their folded form."""
    plain, folded = normalise(text).text.lower(), fold(text).text
    if len(plain) != len(folded):  # İ is two characters in lower case.
        plain = folded
    found: dict[str, Word] = {}
    for match in _RUNS.finditer(folded):
        run = match.group()
        if match.lastgroup == "han":
            for word in _han_words(run):
                found.setdefault(word.word, word)
        elif _MIN_LETTERS <= len(run) <= MAX_WORD_LENGTH and run.isalpha() and run not in found:
            found[run] = Word(run, plain[match.start() : match.end()], stemmed(run))
    return found


def _han_words(run: str) -> Iterator[Word]:
    """Yield the words of the dictionary and of the segmenter.

    Two single characters side by side are mostly a word that the segmenter does not know (年假).
    """
    tokens = rjieba.tokenize(run, "search")
    for word, start, end in tokens:
        if 1 < end - start <= MAX_HAN_WORD_LENGTH:
            yield Word(word, word, one_lexeme(word))
    for (one, start, middle), (other, _, end) in pairwise(tokens):
        is_pair = middle - start == end - middle == 1
        if is_pair and STOP_WORDS.isdisjoint((one, other)):
            yield Word(one + other, one + other, f"{one_lexeme(one)} {one_lexeme(other)}")


def suspects_of(text: str) -> list[Suspect]:
    """Return the parts of a query that may be misspelt if no document contains them.

    These are words of four or more letters, and in Chinese those missing from the dictionary.
    """
    prepared = fold(text)
    found: list[Suspect] = []
    for match in _RUNS.finditer(prepared.text):
        run = match.group()
        if match.lastgroup == "han":
            found += _han_suspects(run, match.start())
        elif _MIN_LETTERS < len(run) <= MAX_WORD_LENGTH and run.isalpha() and run not in STOP_WORDS:
            found.append(Suspect(run, stemmed(run), match.start(), match.end(), is_han=False))
    spans = (prepared.original_span(suspect.start, suspect.end) for suspect in found)
    return [
        suspect._replace(start=start, end=end)
        for suspect, (start, end) in zip(found, spans, strict=True)
    ]


def _han_suspects(run: str, offset: int) -> Iterator[Suspect]:
    """Yield windows over unknown text and over two neighbouring known words (人工 只能).

    A mistyped character makes the segmenter cut beside it, or join unrelated characters, so windows
    end at word ends, or anywhere in unknown words.
    """
    tokens = rjieba.tokenize(run, "default")
    ends, doubtful = {0}, set[int]()
    for word, start, end in tokens:
        is_known = end - start > 1 and rjieba.has_word(word)
        ends.update([end] if is_known else range(start, end + 1))
        if not is_known and word not in _COMMON:
            doubtful.update(range(start, end))
    windows = {
        (start, start + size)
        for size in range(2, _WIDEST_WINDOW + 1)
        for start in ends
        if start + size in ends and not doubtful.isdisjoint(range(start, start + size))
    }
    windows |= {
        (start, end)
        for (_, start, _), (_, _, end) in pairwise(tokens)
        if end - start == _WIDEST_WINDOW
    }
    for start, end in sorted(windows):
        word = run[start:end]
        if not rjieba.has_word(word) and STOP_WORDS.isdisjoint(word):
            before = _up_to_stop_word(run[max(0, start - _CONTEXT) : start][::-1])[::-1]
            after = _up_to_stop_word(run[end : end + _CONTEXT])
            span = offset + start, offset + end
            yield Suspect(word, one_lexeme(word), *span, True, before, after)


def without_seen(suspects: Sequence[Suspect], forms: Collection[str], texts: str) -> list[Suspect]:
    """Return the suspects that are neither in `texts` nor, as terms, among `forms`.

    The check is quick and lenient: in Chinese each character has to occur beside one of its
    neighbours.
    """
    has_pair = cache(texts.__contains__)  # Suspects overlap.
    return [
        suspect
        for suspect in suspects
        if not (
            _is_han_seen(suspect, has_pair)
            if suspect.is_han
            else suspect.term in forms or _is_whole_word_in(suspect.word, texts)
        )
    ]


def _is_han_seen(suspect: Suspect, has_pair: Callable[[str], bool]) -> bool:
    around = suspect.before + suspect.word + suspect.after
    seen = [has_pair(around[place : place + 2]) for place in range(len(around) - 1)]
    first, last = len(suspect.before), len(suspect.before) + len(suspect.word)
    return all(any(seen[max(0, place - 1) : place + 1]) for place in range(first, last))


def _is_whole_word_in(word: str, texts: str) -> bool:
    place = texts.find(word)
    while place >= 0:
        end = place + len(word)
        if not (texts[place - 1 : place].isalnum() or texts[end : end + 1].isalnum()):
            return True
        place = texts.find(word, end)
    return False


def _up_to_stop_word(neighbours: str) -> str:
    """Return the characters up to the first stop word, which occurs next to any other."""
    return "".join(takewhile(lambda character: character not in STOP_WORDS, neighbours))


def stored_keys(word: str) -> list[str]:
    """Return the keys a word is stored under: itself and its forms after one edit."""
    if HAN_RUN.fullmatch(word):
        missing = _deletions(word) if len(word) > 2 else set()  # noqa: PLR2004 - one is no word
        return sorted({word} | _wildcards(word) | missing)
    return sorted({word} | _deletions(word))


def lookup_keys(word: str) -> list[str]:
    """Return the keys under which words similar to this one are stored.

    In Chinese, one substituted or missing character, or two transposed; otherwise one edit and some
    pairs of edits.
    """
    if HAN_RUN.fullmatch(word):
        return sorted({word} | _wildcards(word) | _exchanges(word))
    return sorted({word} | _deletions(word))


def _deletions(word: str) -> set[str]:
    return {word[:place] + word[place + 1 :] for place in range(len(word))}


def _wildcards(word: str) -> set[str]:
    return {f"{word[:place]}?{word[place + 1 :]}" for place in range(len(word))}


def _exchanges(word: str) -> set[str]:
    places = range(len(word) - 1)
    return {word[:p] + word[p + 1] + word[p] + word[p + 2 :] for p in places}


def max_edits(word: str) -> int:
    """Return the max number of edits in a word of this length."""
    if HAN_RUN.fullmatch(word):
        return 1
    return 2 if len(word) >= _LONG_WORD else 1


def edits(one: str, other: str, max_distance: int) -> int:
    """Return the edit distance of two words, or `max_distance` + 1 if it is greater.

    Counts insertions, deletions, substitutions and transpositions of neighbours (optimal string
    alignment).
    """
    if abs(len(one) - len(other)) > max_distance:
        return max_distance + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, start=1):
        before, last, row = row, before, [i]
        for j, b in enumerate(other, start=1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and b == one[i - 2]:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
        if min(row) > max_distance:
            return max_distance + 1
    return min(row[-1], max_distance + 1)


def likeness(one: str, other: str) -> float:
    """Return the share of letters that agree: 1 for the same word, 0 for nothing in common."""
    max_distance = max(len(one), len(other), 1)
    return 1 - edits(one, other, max_distance) / max_distance


def in_case_of(typed: str, surface: str) -> str:
    """Return a word in the case in which its misspelling was typed."""
    if typed.isupper() and len(typed) > 1:
        return surface.upper()
    return surface[:1].upper() + surface[1:] if typed[:1].isupper() else surface
