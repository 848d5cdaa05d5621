"""Turns text into search terms: the same way for documents and for queries.

PostgreSQL only ever sees the terms, joined by spaces, under its `simple` configuration. Each term
is therefore one word to PostgreSQL's parser: letters and digits only (see `_one_lexeme`).

========================  =========================================================
`知识门户`                 知识 门户, by dictionary; traditional characters become simplified
`李小明` (not in it)       李小明 李小 小明
`Running`, `Luther’s`     run, luther
`e-mail`                  email e mail
`PO-4711`, `v0.8`         pozz4711 po 4711, v0zz8 v0 8 0zz8
`1,234.50`, `-5`          1234zz50 1234 50, zzm5 5
`C++`, `🎉`               cplusplus c, zzu1f389
`データ`, `한국어`          データ デー ータ, 한국어 한국 국어
========================  =========================================================
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

import opencc
import rjieba
import snowballstemmer

from portal.text.normalise import NormalisedText, normalise
from portal.text.scripts import HAN, HANGUL, HIRAGANA, KATAKANA, MARKS, SYMBOLS, UNSPACED
from portal.text.stopwords import STOP_WORDS

# Stored terms of another version do not match this version's queries: reindex when it changes.
ANALYSER_VERSION = 1

# Documents get the two-character pieces of long Chinese words, so that 小明 finds 李小明 and a name
# cut differently in the query is still found. nDCG@10 of BM25 on the development sets:
# words alone 98.6 / 97.2 (Simplified / Traditional), these 99.2 / 97.0 for 11% more terms,
# pieces of all text 99.3 / 97.1 for 70% more.
HAN_PIECES = True

LONGEST_TERM = 64  # Characters; what is longer is no word, and PostgreSQL drops it above 2 KB.
_MOST_CODE_RUNS = 3  # "po4711x" has three runs of letters or digits; a hash has dozens.
_HAN_WORD_WITH_PIECES = 3

_WORD = f"[^\\W_{HAN}{HIRAGANA}{KATAKANA}{HANGUL}{UNSPACED}]"
_WORD_RUN = f"{_WORD}(?:{_WORD}|[{MARKS}])*"
_JOINER = r"(?:://|_{1,2}|[-./@:+&'%?=#])"
_TERMS = re.compile(
    f"(?P<han>[{HAN}]+)"
    # A sign counts only where it cannot be a hyphen; separators of thousands are no separators.
    rf"|(?P<signed>(?<![\w)\]])-)?(?P<number>(?<![\w.,])\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?(?![\w,]))"
    rf"|(?P<code>(?P<minus>(?<![\w)\]])-(?=\d))?{_WORD_RUN}(?:{_JOINER}{_WORD_RUN})*(?P<suffix>\+\+|\#)?)"
    f"|(?P<hangul>[{HANGUL}]+)|(?P<katakana>[{KATAKANA}]+)|(?P<hiragana>[{HIRAGANA}]+)"
    f"|(?P<unspaced>[{UNSPACED}]+)|(?P<symbol>[{SYMBOLS}])"
)
_CODE_PART = re.compile(_WORD_RUN)
_LETTERS_OR_DIGITS = re.compile(r"[0-9]+|[^0-9]+")
_CLUSTER = re.compile(f"[^{MARKS}][{MARKS}]*|[{MARKS}]+")
_HAS_HAN = re.compile(f"[{HAN}]")
# PostgreSQL's parser reads 12e45f as the number 12e45 and the word f.
_LOOKS_LIKE_FLOAT = re.compile("[0-9]+e[0-9]")
_SUFFIXES = {"++": "plusplus", "#": "sharp"}

_simplifier = opencc.OpenCC("t2s")

_of_thread = threading.local()


class Token(NamedTuple):
    """A term and the characters of the original text that it came from."""

    term: str
    start: int
    end: int


def analyse(text: str) -> list[Token]:
    """Terms of a document in the order of their start. Tokens of compounds overlap."""
    prepared = _prepare(text)
    tokens = [
        Token(term, *prepared.original_span(start, end))
        for term, start, end in _tokens(prepared.text)
    ]
    tokens.sort(key=itemgetter(1))
    return tokens


def index_terms(text: str) -> str:
    """Terms of a document joined by spaces, for `to_tsvector('simple', …)` and pg_textsearch."""
    return " ".join([term for term, _, _ in _tokens(_prepare(text).text)])


def query_terms(text: str) -> tuple[str, ...]:
    """Terms to look for, each once, in order. Empty only where nothing can be searched for."""
    terms = dict.fromkeys(
        term for term, _, _ in _tokens(_prepare(text).text, dictionary_words_whole=True)
    )
    telling = tuple(term for term in terms if term not in _stop_terms())
    return telling or tuple(terms)


def tsquery_or(terms: Iterable[str]) -> str:
    """Text for `to_tsquery('simple', …)` that matches any of the terms; "" for no terms."""
    quoted = (term.replace("\\", "\\\\").replace("'", "''") for term in terms)
    return " | ".join(f"'{term}'" for term in quoted)


@cache
def _stop_terms() -> frozenset[str]:
    return frozenset(index_terms(" ".join(STOP_WORDS)).split())


def _prepare(text: str) -> NormalisedText:
    """NFKC, lower case, simplified, without accents; offsets lead back to `text`."""
    normalised = normalise(text)
    lowered = normalised.text.lower()
    if not lowered.isascii():
        if len(lowered) != len(normalised.text):  # İ alone becomes two characters.
            lowered = normalised.text.replace("İ", "i").lower()
        folds = {ord(c): folded for c in set(lowered) if (folded := _fold(c)) != c}
        if folds:
            lowered = lowered.translate(folds)
        if _HAS_HAN.search(lowered):
            lowered = _simplify(lowered)
    return normalised.with_text(lowered)


def _simplify(text: str) -> str:
    simplified: str = _simplifier.convert(text)
    if len(simplified) == len(text):
        return simplified
    # No entry of OpenCC 1.4 changes a length; should one ever do, offsets must stay right.
    return "".join(s if len(s := _simplifier.convert(c)) == 1 else c for c in text)


@lru_cache(maxsize=65536)
def _fold(character: str) -> str:
    """One character for one: é → e, ’ → ', – → -, ٣ → 3. Other scripts keep their marks."""
    if character in "’‘ʼ":
        return "'"
    if character in "‐‑‒–−":
        return "-"
    if (digit := unicodedata.decimal(character, None)) is not None:
        return str(digit)
    base = unicodedata.normalize("NFD", character)[0]
    if base.isascii() or "\u0370" <= base <= "\u03ff":
        return "σ" if base == "ς" else base
    return {"ø": "o", "ł": "l", "đ": "d", "ı": "i"}.get(character, character)


def _tokens(text: str, *, dictionary_words_whole: bool = False) -> Iterator[tuple[str, int, int]]:
    for match in _TERMS.finditer(text):
        kind = match.lastgroup
        start = match.start()
        run = match.group()
        if kind == "han":
            yield from _han_terms(run, start, dictionary_words_whole=dictionary_words_whole)
        elif kind == "code" and len(run) <= LONGEST_TERM and run.isascii() and run.isalnum():
            yield from _word_terms(run, start, start + len(run))
        elif kind == "code":
            yield from _code_terms(match)
        elif kind == "number":
            yield from _number_terms(match)
        else:
            yield from _pieces(run, start, whole=kind != "hiragana")


def _han_terms(
    run: str, offset: int, *, dictionary_words_whole: bool
) -> Iterator[tuple[str, int, int]]:
    seen: set[tuple[int, int]] = set()
    words = rjieba.tokenize(run, "search")
    for word, start, end in words:
        seen.add((start, end))
        yield _one_lexeme(word), offset + start, offset + end
    if not HAN_PIECES:
        return
    for word, start, end in words:
        if end - start < _HAN_WORD_WITH_PIECES:
            continue
        if dictionary_words_whole and rjieba.has_word(word):
            continue
        for piece in range(start, end - 1):
            if (piece, piece + 2) not in seen:
                seen.add((piece, piece + 2))
                yield _one_lexeme(run[piece : piece + 2]), offset + piece, offset + piece + 2


def _number_terms(match: re.Match[str]) -> Iterator[tuple[str, int, int]]:
    start, end = match.span("number")
    whole, _, fraction = match["number"].replace(",", "").partition(".")
    if match["signed"]:
        yield f"zzm{whole}" + (f"zz{fraction}" if fraction else ""), start - 1, end
    if fraction:
        yield f"{whole}zz{fraction}", start, end
        yield fraction, end - len(fraction), end
    yield whole, start, end - len(fraction) - bool(fraction)


def _code_terms(match: re.Match[str]) -> Iterator[tuple[str, int, int]]:
    """A word, or several joined by signs: as one term and in parts."""
    text, offset = match.string, match.start() + len(match["minus"] or "")
    end = match.end() - len(match["suffix"] or "")
    parts = [(m.group(), m.start(), m.end()) for m in _CODE_PART.finditer(text, offset, end)]
    whole = _whole_term(text[offset:end], [part for part, _, _ in parts])
    if match["suffix"]:
        yield whole + _SUFFIXES[match["suffix"]], offset, match.end()
    if match["minus"]:
        yield f"zzm{whole}", match.start(), end
    if len(parts) == 1:
        yield from _word_terms(*parts[0])
        return
    if 0 < len(whole) <= LONGEST_TERM:
        yield whole, offset, end
    if parts[0][0][0] == "v" and parts[0][0][1:].isdecimal():  # v0.8 is also found by 0.8.
        yield whole[1:], offset + 1, end
    if whole.isalpha() and len(whole) == len(parts):
        return  # U.S. is us, and nobody looks for its letters.
    if "'" in text[offset:end] and whole.isalpha():
        # Luther's is one word; l'histoire is also found by its second.
        parts = [part for part in parts[1:] if len(parts[0][0]) <= 2 < len(part[0])]  # noqa: PLR2004
    for part in parts:
        yield from _word_terms(*part)


def _whole_term(code: str, parts: list[str]) -> str:
    if len(parts) == 1:
        return _word(parts[0])
    if sum(map(len, parts)) > LONGEST_TERM:
        return ""
    joiners = set(code) - set("".join(parts))
    if joiners == {"'"} or (joiners == {"-"} and code.replace("-", "").isalpha()):
        # Luther's is luther, e-mail is email.
        return _word(code.replace("-", ""))
    if joiners == {"."} and all(len(part) == 1 and part.isalpha() for part in parts):
        return _one_lexeme("".join(parts))
    return "zz".join(_one_lexeme(part) for part in parts)


def _word_terms(word: str, start: int, end: int) -> Iterator[tuple[str, int, int]]:
    if len(word) > LONGEST_TERM:
        for piece in range(0, len(word), LONGEST_TERM):
            part = word[piece : piece + LONGEST_TERM]
            yield _one_lexeme(part), start + piece, start + piece + len(part)
        return
    yield _word(word), start, end
    if word.isalpha() or word.isdecimal():
        return
    runs = list(_LETTERS_OR_DIGITS.finditer(word))
    if 1 < len(runs) <= _MOST_CODE_RUNS:
        for run in runs:
            if len(run.group()) > 1:
                yield _word(run.group()), start + run.start(), start + run.end()


def _pieces(run: str, offset: int, *, whole: bool) -> Iterator[tuple[str, int, int]]:
    """The run and every two neighbouring characters, for scripts that hide where words end."""
    clusters = [(m.start(), m.end()) for m in _CLUSTER.finditer(run)]
    if len(clusters) <= 2 or (whole and len(run) <= LONGEST_TERM // 2):  # noqa: PLR2004 - a pair
        yield _one_lexeme(run), offset, offset + len(run)
    if len(clusters) > 2:  # noqa: PLR2004 - a pair is the run itself
        for (start, _), (_, end) in pairwise(clusters):
            yield _one_lexeme(run[start:end]), offset + start, offset + end


@lru_cache(maxsize=131072)
def _word(word: str) -> str:
    """The stem of an English word; of others the word as one lexeme."""
    if not word.isascii():
        word = _spelt_out(word)
    if not word.isascii() or word[0].isdigit():
        return _one_lexeme(word)
    stemmer = getattr(_of_thread, "stemmer", None)
    if stemmer is None:  # The C stemmer keeps state: one a thread.
        stemmer = _of_thread.stemmer = snowballstemmer.stemmer("english")
    stem: str = stemmer.stemWord(word)
    return stem.replace("'", "") or word.replace("'", "")


@lru_cache(maxsize=131072)
def _one_lexeme(term: str) -> str:
    """The term such that PostgreSQL's parser takes it for one word, whatever the locale.

    ASCII letters and digits and plain letters are left as they are. Marks, symbols and
    characters beyond the basic plane, on which parsers differ, are written in hexadecimal.
    """
    plain = term if term.isascii() else _spelt_out(term)
    plain = plain.replace("'", "")
    if not all(c <= "\uffff" and (c.isalpha() or c in "0123456789") for c in plain):
        return "zzu" + "zz".join(f"{ord(c):x}" for c in plain)
    return f"zzn{plain}" if _LOOKS_LIKE_FLOAT.match(plain) else plain


def _spelt_out(term: str) -> str:
    """Without accents, and with ß and the like in plain letters; never empty."""
    spelt = "".join(c for c in term.translate(_SPELLINGS) if not _is_optional_mark(c))
    return unicodedata.normalize("NFC", spelt or term)


_SPELLINGS = str.maketrans({"ß": "ss", "æ": "ae", "œ": "oe", "þ": "th", "ð": "d"})


def _is_optional_mark(character: str) -> bool:
    """Accents, and the vowel points of Hebrew and Arabic, which writers may leave out."""
    return (
        "\u0300" <= character <= "\u036f"
        or "\u0591" <= character <= "\u05c7"
        or "\u064b" <= character <= "\u0670"
    ) and unicodedata.category(character) == "Mn"
