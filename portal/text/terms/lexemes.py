"""Encoding of terms so that PostgreSQL parses each as one word.

Even under the `simple` configuration the parser splits what looks like a sign, a float or an
address. Terms encoded here come out of `to_tsvector('simple', …)` and pg_textsearch as one lexeme
and unchanged, in the locales C, C.UTF-8 and the built-in one.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from functools import lru_cache

import snowballstemmer

# PostgreSQL's parser reads 12e45f as the number 12e45 and the word f.
_LOOKS_LIKE_FLOAT = re.compile("[0-9]+e[0-9]")
# Letters without accents, marks or other forms, which most Chinese terms consist of.
_COMMON_HAN = re.compile("[\u4e00-\u9fff]+")
_of_thread = threading.local()
# Languages with stemmers, for Latin letters; `simple` does no stemming. The order must not change,
# since chunks are marked with a language's index.
STEMMERS = (
    "english", "simple", "danish", "dutch", "finnish", "french", "german", "hungarian", "italian",
    "norwegian", "portuguese", "romanian", "spanish", "swedish", "turkish",
)  # fmt: skip
_language = "english"


def language() -> str:
    """Return the current language of the stemmer."""
    return _language


def stem_in(wanted: str) -> None:
    """Set the stemmer's language, one of STEMMERS, in the whole process."""
    global _language  # noqa: PLW0603 - the analyser is one for all of a process
    _language = wanted
    stemmed.cache_clear()


@lru_cache(maxsize=131072)
def stemmed(word: str) -> str:
    """Return the stem of a word in Latin letters; any other word as one lexeme."""
    if not word.isascii():
        word = _spelt_out(word)
    if not word.isascii() or word[0].isdigit():
        return one_lexeme(word)
    if _language == "simple":
        return word.replace("'", "")
    stemmer = getattr(_of_thread, _language, None)
    if stemmer is None:  # The C stemmer keeps state, so each thread has its own.
        stemmer = snowballstemmer.stemmer(_language)
        setattr(_of_thread, _language, stemmer)
    stem: str = stemmer.stemWord(word)
    return stem.replace("'", "") or word.replace("'", "")


def one_lexeme(term: str) -> str:
    """Encode a term so that PostgreSQL's parser takes it for one word in any locale.

    ASCII letters and digits and plain letters are left as they are. Marks, symbols and characters
    beyond the basic plane, on which parsers differ, are written in hexadecimal.
    """
    return term if _COMMON_HAN.fullmatch(term) else _encoded(term)


@lru_cache(maxsize=131072)
def _encoded(term: str) -> str:
    plain = term if term.isascii() else _spelt_out(term)
    plain = plain.replace("'", "")
    if not all(c <= "\uffff" and (c.isalpha() or c in "0123456789") for c in plain):
        return "zzu" + "zz".join(f"{ord(c):x}" for c in plain)
    return f"zzn{plain}" if _LOOKS_LIKE_FLOAT.match(plain) else plain


def _spelt_out(term: str) -> str:
    """Remove accents and write letters such as ß plainly; never empty."""
    spelt = "".join(c for c in term.translate(_SPELLINGS) if not _is_optional_mark(c))
    return unicodedata.normalize("NFC", spelt or term)


_SPELLINGS = str.maketrans({"ß": "ss", "æ": "ae", "œ": "oe", "þ": "th", "ð": "d"})


def _is_optional_mark(character: str) -> bool:
    """Return whether a mark is optional: accents, and vowel points of Hebrew and Arabic."""
    return (
        "\u0300" <= character <= "\u036f"
        or "\u0591" <= character <= "\u05c7"
        or "\u064b" <= character <= "\u0670"
    ) and unicodedata.category(character) == "Mn"
