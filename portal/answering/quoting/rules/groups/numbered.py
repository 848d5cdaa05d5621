"""Things with a number: a statement about unit 1 does not answer for unit 2."""

from __future__ import annotations

import re
from collections import defaultdict

from portal.answering.figures import counted
from portal.text.characters.folding import fold

_NOUNS = (
    "unit|phase|stage|lot|batch|building|platform|line|machine|server|printer|gate|zone|milestone"
    "|work package|appendix|annex|warehouse|pump|boiler|hall|round|release|sprint|lane|dock"
)
_WITH_NUMBER = "楼|机|线|库|厂房|车间|会议室|门|炉|泵|仓|船|井|桥"
_WITH_ORDINAL = "期|阶段|批|轮|车间|工厂|标段"
# Not "units 1 and 2", "phase 1, 2 or 3" and 1、2号楼, which are about each of them.
_NUMBERED = re.compile(
    rf"\b({_NOUNS}) (?:no\.? ?)?(\d{{1,3}})(?![\d:]|\.\d|\s?(?:-|–|,|&|/|to\b|and\b|or\b)\s?\d)"
    rf"|(?<![\d.])(?<!\d[、,，和与及或至到~～–-])(\d{{1,3}})号({_WITH_NUMBER})"
    rf"|第(\d{{1,3}}|[一二三四五六七八九十]{{1,3}})({_WITH_ORDINAL})"
)


def find_things(text: str) -> dict[str, frozenset[int]]:
    """Return the numbers of the things of each kind that a text names: 2 for "unit 2"."""
    found: dict[str, frozenset[int]] = defaultdict(frozenset)
    for noun, number, han_number, han_noun, ordinal, of_ordinal in _NUMBERED.findall(
        fold(text).text
    ):
        said = number or han_number or ordinal
        figure = int(said if said.isdigit() else counted(said))
        found[noun or han_noun or of_ordinal] |= {figure}
    return found


def find_numbers(thing: str, text: str) -> frozenset[int]:
    """Return the numbers of the things of one kind that a text names."""
    return find_things(text).get(thing, frozenset())
