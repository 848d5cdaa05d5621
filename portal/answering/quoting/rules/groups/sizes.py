"""Things that differ in size: the weight of a 2.2 kW motor does not answer for one of 3 kW."""

from __future__ import annotations

import re

from portal.text.characters.folding import fold

# A figure and its unit, one pattern per quantity.
SIZES = tuple(
    re.compile(rf"(?<![\d.,])(\d{{1,5}}(?:\.\d{{1,3}})?) ?({unit})(?![a-z\d])")
    for unit in (
        "k?w|千?瓦", "k?v|千?伏", "m?l|毫?升", "k?g|公斤|千克|克", "[cm]m|[毫厘]米", "[mgt]b",
        "[mg]hz", "inch(?:es)?|英?寸|″",
    )
)  # fmt: skip
_FACTORS = {
    **dict.fromkeys(
        ("kw", "kv", "l", "kg", "千瓦", "千伏", "升", "公斤", "千克", "gb", "ghz"), 1e3
    ),
    **dict.fromkeys(("cm", "厘米"), 10.0),
    "tb": 1e6,
}
# "Up to 3 kW", "2–3 kW" and "3 kW each" do not name the size of one thing.
_BEFORE = re.compile(
    r"(?:\b(?:allow\w*|limit\w*|up to|over|under|above|below|between|than|least|most|max\w*|min\w*"
    r"|each|per|every)\b|\d\s?(?:-|–|~|至|到)|[上下]限|限[重额]|超过|不[足超到]|至少|最[多少大小高低]|每)"
    r"[^;]{0,18}\Z"
)
_AFTER = re.compile(r"\s?(?:-|–|~|至|到|以[上下内]|(?:each|per|or (?:more|less)|to)\b|[/每])")
_NEAR = 32


def find_sizes(size: re.Pattern[str], text: str) -> frozenset[float]:
    """Return the sizes in a text, in the smallest unit: 3000 for "3 kW"; none if one is a limit."""
    folded = fold(text).text
    found = set()
    for match in size.finditer(folded):
        start, end = match.span()
        if _BEFORE.search(folded[max(0, start - _NEAR) : start]) or _AFTER.match(folded, end):
            return frozenset()
        found.add(_FACTORS.get(match[2], 1.0) * float(match[1]))
    return frozenset(found)
