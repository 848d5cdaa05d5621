"""Numbers in a text in any notation, to check whether another text has them."""

from __future__ import annotations

import re
from functools import lru_cache

from portal.text.characters.folding import fold

_FIGURE = re.compile(r"\d+(?:[.,:/-]\d+)*%?")
_HAN = "[零〇一二三四五六七八九十百千两]"
# 十五万 is 15, as in 15万; 百分之 is not a number.
_HAN_FIGURE = re.compile(
    f"(?<![万亿])(?<!{_HAN})(?:{_HAN}{{1,12}}万)?{_HAN}{{1,12}}(?!分之)"
    "(?=[万亿年月日天周岁个人次位名种条项点时分元倍成%])"
    f"|(?<=百分之){_HAN}{{1,12}}"
)
_HAN_DIGITS = {c: i for i, c in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_HAN_UNITS = {"十": 10, "百": 100, "千": 1000}
_NUMBERS = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
    "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety", "hundred",
]  # fmt: skip
NUMBER_WORDS = dict(zip(_NUMBERS, (*range(20), *range(20, 101, 10)), strict=True))
NUMBER_WORDS["thousand"] = 1000
_LIST_NUMBER = re.compile(r"(?m)^[ \t]*\d{1,3}[.)、][ \t]")


@lru_cache(maxsize=256)
def figures_in(text: str) -> frozenset[str]:
    """Return numbers without thousands separators, including those in Chinese numerals."""
    folded = fold(_LIST_NUMBER.sub(" ", text)).text
    found = {_bare(match.group()) for match in _FIGURE.finditer(folded)}
    # 1998-2003 also includes 1998.
    found |= {part for one in tuple(found) for part in re.split(r"[/:-]", one)}
    return frozenset(found | {counted(match.group()) for match in _HAN_FIGURE.finditer(folded)})


@lru_cache(maxsize=64)
def figures_in_words(chunk: str) -> frozenset[str]:
    """Return the numbers that an English text spells out, to compare with a sentence that has them
    in digits."""
    words = set(re.findall("[a-z]+", chunk.lower()))
    return frozenset(str(value) for word, value in NUMBER_WORDS.items() if word in words)


def _bare(figure: str) -> str:
    return re.sub(r"(?<=\d),(?=\d{3})", "", figure).removesuffix("%")


def counted(numeral: str) -> str:
    """Convert 十二 and 一二 to 12, 三百 to 300, 一万二千 to 12000."""
    if "万" in numeral:
        many, rest = numeral.split("万")
        return str(int(counted(many)) * 10_000 + int(counted(rest)))
    if not any(c in _HAN_UNITS for c in numeral):
        return "".join(str(_HAN_DIGITS[c]) for c in numeral)
    total, digit = 0, 0
    for c in numeral:
        if c in _HAN_UNITS:
            total += (digit or 1) * _HAN_UNITS[c]
            digit = 0
        else:
            digit = _HAN_DIGITS[c]
    return str(total + digit)
