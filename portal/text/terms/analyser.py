"""Conversion of text into search terms, the same for documents and for queries.

PostgreSQL only ever sees the terms, joined by spaces, under its `simple` configuration. Each term
is therefore one word to PostgreSQL's parser: letters and digits only (see `lexemes`).

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
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

import rjieba

from portal.text.characters.folding import fold
from portal.text.characters.scripts import HAN, HANGUL, HIRAGANA, KATAKANA, MARKS, SYMBOLS, UNSPACED
from portal.text.terms import lexemes
from portal.text.terms.lexemes import one_lexeme, stemmed
from portal.text.terms.stopwords import STOP_WORDS

# `services/documents/reanalysis` analyses the chunks of older versions again. The last two digits
# are the language of the stemmer.
ANALYSER_VERSION = 300

MAX_TERM_LENGTH = 64  # Characters; PostgreSQL drops words above 2 KB.
# PostgreSQL limits a tsvector to a megabyte, positions included, and rejects longer ones.
MAX_TERM_CHARACTERS = 300_000
_MAX_CODE_RUNS = 3  # "po4711x" has three runs of letters or digits; a hash has dozens.
# Chinese words from this length on also give their two-character pieces, so that 小明 finds 李小明
# and a name cut differently in the query is still found. nDCG@10 of BM25 on the development sets:
# words alone 98.5 / 97.1 (Simplified / Traditional), these 99.1 / 97.1 for 11% more terms,
# pieces of all text 99.3 / 97.1 for 70% more.
_HAN_WORD_WITH_PIECES = 3

_WORD = f"[^\\W_{HAN}{HIRAGANA}{KATAKANA}{HANGUL}{UNSPACED}]"
_WORD_RUN = f"{_WORD}(?:{_WORD}|[{MARKS}])*"
_JOINER = r"(?:://|_{1,2}|[-./@:+&'%?=#])"
_TERMS = re.compile(
    f"(?P<han>[{HAN}]+)"
    # A sign counts only where it cannot be a hyphen; thousands separators are dropped.
    rf"|(?P<signed>(?<![\w)\]])-)?(?P<number>(?<![\w.,])\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?(?![\w,]))"
    rf"|(?P<code>(?P<minus>(?<![\w)\]])-(?=\d))?{_WORD_RUN}(?:{_JOINER}{_WORD_RUN})*(?P<suffix>\+\+|\#)?)"
    f"|(?P<hangul>[{HANGUL}]+)|(?P<katakana>[{KATAKANA}]+)|(?P<hiragana>[{HIRAGANA}]+)"
    f"|(?P<unspaced>[{UNSPACED}]+)|(?P<symbol>[{SYMBOLS}])"
)
# White space always separates words, and so does a change between Chinese and other scripts.
_RUNS = re.compile(f"(?P<han>[{HAN}]+)|[^\\s{HAN}]+")
_CODE_PART = re.compile(_WORD_RUN)
_LETTERS_OR_DIGITS = re.compile(r"[0-9]+|[^0-9]+")
_CLUSTER = re.compile(f"[^{MARKS}][{MARKS}]*|[{MARKS}]+")
_SUFFIXES = {"++": "plusplus", "#": "sharp"}


class Token(NamedTuple):
    """A term and the range of the original text that it comes from."""

    term: str
    start: int
    end: int


def analyser_version() -> int:
    """Return the version that the terms of this process are marked with."""
    return ANALYSER_VERSION + lexemes.STEMMERS.index(lexemes.language())


def analyse_in(language: str) -> None:
    """Set the stemmer's language for words in Latin letters, in the whole process."""
    if language != lexemes.language():
        lexemes.stem_in(language)


def analyse(text: str) -> list[Token]:
    """Return the terms of a document in the order of their start. Tokens of compounds overlap."""
    prepared = fold(text)
    tokens = [
        Token(term, *prepared.original_span(start, end))
        for term, start, end in folded_terms(prepared.text)
    ]
    tokens.sort(key=itemgetter(1))
    return tokens


def index_terms(text: str) -> str:
    """Return the terms of a document joined by spaces.

    For `to_tsvector('simple', …)` and pg_textsearch. Of a text with very many terms, only the
    first.
    """
    terms = " ".join([term for term, _, _ in folded_terms(fold(text).text)])
    if len(terms) <= MAX_TERM_CHARACTERS:
        return terms
    return terms[:MAX_TERM_CHARACTERS].rpartition(" ")[0]


def query_terms(text: str) -> tuple[str, ...]:
    """Return the distinct terms to search for, in order.

    Empty only if there is nothing to search for.
    """
    terms = dict.fromkeys(
        term for term, _, _ in folded_terms(fold(text).text, dictionary_words_whole=True)
    )
    telling = tuple(term for term in terms if term not in stop_terms())
    return telling or tuple(terms)


def tsquery_or(terms: Iterable[str]) -> str:
    """Return text for `to_tsquery('simple', …)` that matches any of the terms; "" for no terms."""
    quoted = (term.replace("\\", "\\\\").replace("'", "''") for term in terms)
    return " | ".join(f"'{term}'" for term in quoted)


def tsquery_and(terms: Iterable[str]) -> str:
    """Return text for `to_tsquery('simple', …)` that matches all of the terms; "" for no terms."""
    return " & ".join(f"'{term}'" for term in terms)


def tsquery_any_in_each(text: str) -> str:
    """Return a loose `to_tsquery('simple', …)` that any text with `text` in it matches.

    Returns "" if there are only stop words. Every word of languages with spaces must match. For a
    run of Chinese, any word that the dictionary knows is enough: next to other characters it may be
    segmented differently.
    """
    sure: list[str] = []
    unsure: list[str] = []
    for run in _RUNS.finditer(fold(text).text):
        if terms := [term for term in query_terms(run.group()) if term not in stop_terms()]:
            is_sure = not run["han"] or any(map(_is_dictionary_word, terms))
            (sure if is_sure else unsure).append(f"({tsquery_or(terms)})")
    return " & ".join(sure or unsure)


def _is_dictionary_word(word: str) -> bool:
    return len(word) > 1 and bool(rjieba.has_word(word))


def stop_terms() -> frozenset[str]:
    """Return the terms of stop words, in the current language of the stemmer."""
    return _stop_terms(lexemes.language())


@cache
def _stop_terms(_language: str) -> frozenset[str]:
    return frozenset(index_terms(" ".join(STOP_WORDS)).split())


def folded_terms(
    text: str, *, dictionary_words_whole: bool = False
) -> Iterator[tuple[str, int, int]]:
    """Yield the terms of text that `fold` has prepared, with their ranges in it. With
    `dictionary_words_whole`, words of the dictionary have no two-character pieces."""
    for match in _TERMS.finditer(text):
        kind = match.lastgroup
        start = match.start()
        run = match.group()
        if kind == "han":
            yield from _han_terms(run, start, dictionary_words_whole=dictionary_words_whole)
        elif kind == "code" and len(run) <= MAX_TERM_LENGTH and run.isascii() and run.isalnum():
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
        yield one_lexeme(word), offset + start, offset + end
    for word, start, end in words:
        if end - start < _HAN_WORD_WITH_PIECES:
            continue
        if dictionary_words_whole and rjieba.has_word(word):
            continue
        for piece in range(start, end - 1):
            if (piece, piece + 2) not in seen:
                seen.add((piece, piece + 2))
                yield one_lexeme(run[piece : piece + 2]), offset + piece, offset + piece + 2


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
    """Yield a word, or several joined by signs, as one term and in parts."""
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
    if 0 < len(whole) <= MAX_TERM_LENGTH:
        yield whole, offset, end
    if parts[0][0][0] == "v" and parts[0][0][1:].isdecimal():  # v0.8 is also found by 0.8.
        yield whole[1:], offset + 1, end
    if whole.isalpha() and len(whole) == len(parts):
        return  # U.S. is indexed as us; its single letters are not searched for.
    if "'" in text[offset:end] and whole.isalpha():
        # Luther's is one word; l'histoire is also found by its second part.
        parts = [part for part in parts[1:] if len(parts[0][0]) <= 2 < len(part[0])]  # noqa: PLR2004
    for part in parts:
        yield from _word_terms(*part)


def _whole_term(code: str, parts: list[str]) -> str:
    if len(parts) == 1:
        return stemmed(parts[0])
    if sum(map(len, parts)) > MAX_TERM_LENGTH:
        return ""
    joiners = set(code) - set("".join(parts))
    if joiners == {"'"} or (joiners == {"-"} and code.replace("-", "").isalpha()):
        # Luther's is luther, e-mail is email.
        return stemmed(code.replace("-", ""))
    if joiners == {"."} and all(len(part) == 1 and part.isalpha() for part in parts):
        return one_lexeme("".join(parts))
    return "zz".join(one_lexeme(part) for part in parts)


def _word_terms(word: str, start: int, end: int) -> Iterator[tuple[str, int, int]]:
    if len(word) > MAX_TERM_LENGTH:
        for piece in range(0, len(word), MAX_TERM_LENGTH):
            part = word[piece : piece + MAX_TERM_LENGTH]
            yield one_lexeme(part), start + piece, start + piece + len(part)
        return
    yield stemmed(word), start, end
    if word.isalpha() or word.isdecimal():
        return
    runs = list(_LETTERS_OR_DIGITS.finditer(word))
    if 1 < len(runs) <= _MAX_CODE_RUNS:
        for run in runs:
            if len(run.group()) > 1:
                yield stemmed(run.group()), start + run.start(), start + run.end()


def _pieces(run: str, offset: int, *, whole: bool) -> Iterator[tuple[str, int, int]]:
    """Yield the run and every two neighbouring characters, for scripts without word boundaries."""
    clusters = [(m.start(), m.end()) for m in _CLUSTER.finditer(run)]
    if len(clusters) <= 2 or (whole and len(run) <= MAX_TERM_LENGTH // 2):  # noqa: PLR2004 - a pair
        yield one_lexeme(run), offset, offset + len(run)
    if len(clusters) > 2:  # noqa: PLR2004 - a pair is the run itself
        for (start, _), (_, end) in pairwise(clusters):
            yield one_lexeme(run[start:end]), offset + start, offset + end
