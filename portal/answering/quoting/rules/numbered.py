"""Things that a number tells apart: what is said of unit 1 does not answer for unit 2."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping

from portal.answering.figures import counted
from portal.answering.quoting.rules.alternatives import RULES_OUT

_THINGS = (
    "unit|phase|stage|lot|batch|building|platform|line|machine|server|printer|gate|zone|milestone"
    "|work package|appendix|annex|warehouse|pump|boiler|hall|round|release|sprint|lane|dock"
)
# Not "units 1 and 2", "phase 1, 2 or 3" and 1、2号楼, which are about each of them.
_NUMBERED = re.compile(
    rf"\b({_THINGS}) (?:no\.? ?)?(\d{{1,3}})(?![\d:]|\.\d|\s?(?:-|–|,|&|/|to\b|and\b|or\b)\s?\d)"
    r"|(?<![\d.])(?<!\d[、,，和与及或至到~～–-])(\d{1,3})号(楼|机|线|库|厂房|车间|会议室|门|炉|泵|仓|船|井|桥)"
    r"|第(\d{1,3}|[一二三四五六七八九十]{1,3})(期|阶段|批|轮|车间|工厂|标段)"
)

Numbered = Mapping[str, frozenset[int]]


def find_numbered(folded: str) -> Numbered:
    """Return the numbers of the things of each kind that a folded text names: 2 for "unit 2"."""
    found: dict[str, frozenset[int]] = defaultdict(frozenset)
    for thing, number, han_number, han_thing, ordinal, of_ordinal in _NUMBERED.findall(folded):
        said = number or han_number or ordinal
        figure = said if said.isdigit() else counted(said)
        found[thing or han_thing or of_ordinal] |= {int(figure)}
    return found


def names_other_numbers(asked: Numbered, context: str, text: str) -> bool:
    """Return whether a folded text names another of the things in question, and neither it nor its
    headings the one in question."""
    if not asked or RULES_OUT.search(text):
        return False
    said, above = find_numbered(text), find_numbered(context)
    return any(
        said.get(thing) and not (said[thing] | above.get(thing, frozenset())) & numbers
        for thing, numbers in asked.items()
    )
