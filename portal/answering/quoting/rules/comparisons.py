"""Years that a figure is only compared with, and says nothing about."""

from __future__ import annotations

import re

from portal.text.characters.scripts import HAN

# "Revenue was $4.8 million, up 18 percent on Q3 2025" says nothing about 2025.
_COMPARED = re.compile(
    r"\b(?:up|down|more|less|fewer|higher|lower|increased?|decreased?|r[io]se|fell|fall|grew|growth)"
    r"\b[^.;]{0,40}?\b(?:on|than|from|over|versus|vs|against|compared (?:to|with))"
    r"\b[^.;,]{0,24}?\b20\d\d\b"
    rf"|[较比]\s?20\d\d年?[{HAN}]{{0,4}}季?度?"
)


def without_comparisons(folded: str) -> str:
    """Return a folded text without the years that its figures are compared with."""
    return _COMPARED.sub("", folded)
