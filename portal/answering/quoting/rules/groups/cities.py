"""Cities: a statement about the office or fair in one city does not answer for another city."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain

from portal.answering.quoting.statements import Statement
from portal.text.characters.folding import fold
from portal.text.characters.scripts import HAN
from portal.text.terms import lexicon

_HAN = re.compile(rf"[{HAN}]{{2,}}")
_CAPITALISED = re.compile(r"\b[A-Z][\w'’-]+(?: [A-Z][\w'’-]+)*")
# "hotel limit for vienna"
_UNCAPITALISED = re.compile(
    r"\b(?:in|to|for|at|from|and|or) ([a-z]{3,}(?: [a-z]+){0,2}?)"
    r"(?=\W*\Z|[,.;]| (?:an?|and|at|by|can|do|each|for|from|if|in|is|on|or|per|to|when|with)\b)"
)
# 每天 18:00（北京时间）
_NO_PLACE = re.compile(r"北京时间|\b(?:Beijing|London) time\b")
_MAX_HAN, _MAX_WORDS = 5, 3
_OTHERS = re.compile(
    r"(?:all |any )?(?:other|remaining) ?(?:cities|towns|locations|places|destinations|sites)?"
    r"|(?:all )?others|elsewhere|(?:every|any)where else|(?:the )?rest"
    r"|其[他它余](?:所有)?(?:城市|地区|地方|各?地)?"
)
# Chinese rules for travel set limits for 一线城市 or 北上广深, which are four.
_FIRST_TIER = frozenset({"Beijing", "Shanghai", "Guangzhou", "Shenzhen"})
_OF_FIRST_TIER = re.compile(
    r"(?<![新非除])(?:一线城市|北、?上、?广、?深(?!圳))(?!之?外|以外|城市以外)"
)
_OF_OTHER_TIER = re.compile(r"[二三四]线|省会|直辖市")
_ALL_OTHERS = re.compile(r"其[他它余](?:所有)?(?:城市|地区)")
# Other cities of one country: the dictionary does not say which country a city is in.
_OF_COUNTRIES = re.compile(r"国内|境[内外]|国外|海外|省内|domestic|abroad|overseas|international")


def find_cities(text: str) -> frozenset[str]:
    """Return the English names of the cities that a text names, in Chinese or English."""
    return frozenset().union(*_find_named(text).values())


def rows_of_other_cities(
    question: str, rows: Sequence[Statement], contexts: Sequence[str]
) -> dict[int, str]:
    """Return the indexes of the rows for all other cities that apply to the city asked about, with
    its name in the question: Munich, for "elsewhere" below Berlin and Paris."""
    asked = _find_named(question)
    if len(asked) != 1:
        return {}
    ((name, cities),) = asked.items()
    tables: dict[int, list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        if row.cells and row.group is not None:
            tables[row.group].append(place)
    found = {}
    for places in tables.values():
        first_cells = {place: rows[place].cells[0] for place in places}
        rest = [place for place, cell in first_cells.items() if _OTHERS.fullmatch(fold(cell).text)]
        named = [_of_row(cell) for place, cell in first_cells.items() if place not in rest]
        is_of_cities = named and all(named) and cities.isdisjoint(chain(*named))
        if len(rest) == 1 and is_of_cities and not _OF_COUNTRIES.search(contexts[rest[0]].lower()):
            found[rest[0]] = name
    return found


def with_tier(question: str, text: str, context: str = "") -> str:
    """Return a question with the tier of its city in the place of the city, if a text has limits
    for tiers: 一线城市 for 上海, 其他城市 for 成都 unless there are further tiers, or the text or
    its context is about one country only."""
    if not (first := _OF_FIRST_TIER.search(text)):
        return question
    asked = _find_named(question)
    if len(asked) != 1 or any(name.isascii() or name in text for name in asked):
        return question
    ((name, cities),) = asked.items()
    if cities & _FIRST_TIER:
        return question.replace(name, first[0])
    said = f"{context}\n{text}".lower()
    others = _ALL_OTHERS.search(text)
    if not others or _OF_OTHER_TIER.search(text) or _OF_COUNTRIES.search(said):
        return question
    return question.replace(name, others[0])


def _of_row(first_cell: str) -> frozenset[str]:
    return _FIRST_TIER if _OF_FIRST_TIER.fullmatch(first_cell) else find_cities(first_cell)


def _find_named(text: str) -> dict[str, frozenset[str]]:
    """Return the English names of the cities in a text, by their names there."""
    known = lexicon.cities()
    text = _NO_PLACE.sub(" ", text)
    found: dict[str, frozenset[str]] = {}
    for run in _HAN.findall(text):
        found |= _find(known, run, "", _MAX_HAN)
    for run in _CAPITALISED.findall(text):
        found |= _find(known, run.split(" "), " ", _MAX_WORDS)
    if text.islower():
        for run in _UNCAPITALISED.findall(text):
            if (name := run.title()) in known:
                found[name] = known[name]
    return found


def _find(
    known: Mapping[str, frozenset[str]], parts: Sequence[str], separator: str, max_parts: int
) -> dict[str, frozenset[str]]:
    """Return the cities in a sequence of characters or words; of overlapping names the longest."""
    found: dict[str, frozenset[str]] = {}
    first = 0
    while first < len(parts):
        names = {
            length: separator.join(parts[first : first + length])
            for length in range(min(max_parts, len(parts) - first), 0, -1)
        }
        length = next((length for length, name in names.items() if name in known), 0)
        if length:
            found[names[length]] = known[names[length]]
        first += length or 1
    return found
