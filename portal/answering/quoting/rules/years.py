"""Years that a question names relative to the current one: 去年, "this year's"."""

from __future__ import annotations

import re
from collections.abc import Callable

from portal.text.characters.folding import fold

_DISTANCES = {"前年": -2, "去年": -1, "上": -1, "今年": 0, "本": 0, "明年": 1, "下": 1,
              "last": -1, "previous": -1, "this": 0, "current": 0, "next": 1}  # fmt: skip
_RELATIVE = re.compile(
    r"(?P<han>前年|去年|今年|明年|(?P<of>[上本下])一?年度)"
    r"|(?P<before>\b(?:in|of|for|from|since|until|by|to) )?"
    r"(?<!\bthe )\b(?P<which>last|previous|this|current|next) year(?P<owner>['’]s)?\b",
    re.IGNORECASE,
)

# "By when must I use up the days carried over from last year?" does not ask for last year's policy.
_CARRIED = re.compile(
    r"\b(?:carr(?:y|ied)|roll(?:ed)?|left) over\b|\b(?:leftover|unused|remaining)\b"
    r"|结转|[剩余挪]|顺延|[没未][休用]",
    re.IGNORECASE,
)


def with_years(question: str, this_year: int, is_known: Callable[[str], bool]) -> str:
    """Return a question with the year in figures in the place of 去年 or "last year", if `is_known`
    says that documents have that year."""

    def figures(match: re.Match[str]) -> str:
        which = match["of"] or match["han"] or fold(match["which"]).text
        year = str(this_year + _DISTANCES[which])
        if not is_known(year):
            return match[0]
        if match["han"]:
            return f"{year}年"
        return f"{match['before'] or ('' if match['owner'] else 'in ')}{year}"

    # "How many of this year's days may I take next year?" is about two years.
    if len(_RELATIVE.findall(question)) != 1 or _CARRIED.search(question):
        return question
    return _RELATIVE.sub(figures, question)
