"""Writes terms so that PostgreSQL takes each for one word.

Under the `simple` configuration a parser still cuts what looks like a sign, a float or an address.
What is written here comes out of `to_tsvector('simple', …)` and pg_textsearch as one lexeme and
unchanged, in the locales C, C.UTF-8 and the built-in one.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from functools import lru_cache

import snowballstemmer

# PostgreSQL's parser reads 12e45f as the number 12e45 and the word f.
_LOOKS_LIKE_FLOAT = re.compile("[0-9]+e[0-9]")
_of_thread = threading.local()
# Languages whose words are stemmed, those of Latin letters; `simple` stems none. A language keeps
# its place: chunks are marked with it.
STEMMERS = (
    "english", "simple", "danish", "dutch", "finnish", "french", "german", "hungarian", "italian",
    "norwegian", "portuguese", "romanian", "spanish", "swedish", "turkish",
)  # fmt: skip
_language = "english"


def language() -> str:
    """Return the language that words are stemmed in."""
    return _language


def stem_in(wanted: str) -> None:
    """Stem words in one of STEMMERS from now on, in all of the process."""
    global _language  # noqa: PLW0603 - the analyser is one for all of a process
    _language = wanted
    stemmed.cache_clear()


@lru_cache(maxsize=131072)
def stemmed(word: str) -> str:
    """Return the stem of a word of Latin letters, of others the word as one lexeme."""
    if not word.isascii():
        word = _spelt_out(word)
    if not word.isascii() or word[0].isdigit():
        return one_lexeme(word)
    if _language == "simple":
        return word.replace("'", "")
    stemmer = getattr(_of_thread, _language, None)
    if stemmer is None:  # The C stemmer keeps state: one a thread.
        stemmer = snowballstemmer.stemmer(_language)
        setattr(_of_thread, _language, stemmer)
    stem: str = stemmer.stemWord(word)
    return stem.replace("'", "") or word.replace("'", "")


@lru_cache(maxsize=131072)
def one_lexeme(term: str) -> str:
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
