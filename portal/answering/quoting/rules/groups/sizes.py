"""Sizes that tell things apart: what a 2.2 kW motor weighs does not answer for one of 3 kW."""

from __future__ import annotations

import re

from portal.text.characters.folding import fold

UNITS = (
    "k?w|千?瓦", "k?v|千?伏", "m?l|毫?升", "k?g|公斤|千克|克", "[cm]m|[毫厘]米", "[mgt]b", "[mg]hz",
    "inch(?:es)?|英?寸|″",
)  # fmt: skip
_FACTORS = {
    **dict.fromkeys(
        ("kw", "kv", "l", "kg", "千瓦", "千伏", "升", "公斤", "千克", "gb", "ghz"), 1e3
    ),
    **dict.fromkeys(("cm", "厘米"), 10.0),
    "tb": 1e6,
}
# "Up to 3 kW", "2–3 kW" and "3 kW each" tell nothing apart.
_IS_LIMIT = re.compile(
    r"\b(?:allow\w*|limit\w*|up to|over|under|above|below|between|than|least|most|max\w*|min\w*"
    r"|each|per|every)\b"
    r"|\d\s?(?:-|–|~|至|到)\s?\d|以[上下内]|[上下]限|限[重额]|超过|不[足超到]|至少|最[多少大小高低]|每"
)


def find_sizes(unit: str, text: str) -> frozenset[float]:
    """Return the figures before a unit in a text: 3 for "3.0 kW"; none where it names a limit."""
    folded = fold(text).text
    if _IS_LIMIT.search(folded):
        return frozenset()
    found = re.findall(rf"(?<![\d.,-])(\d{{1,5}}(?:\.\d{{1,3}})?) ?({unit})(?![a-z\d])", folded)
    return frozenset(_FACTORS.get(name, 1.0) * float(figure) for figure, name in found)
