"""The numbers of lists as letters, Roman numerals and Chinese numerals."""

from __future__ import annotations

_ROMAN = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"),
    (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip
_MAX_ROMAN = 3999
_HAN_DIGITS = "零一二三四五六七八九"
_HAN_UNITS = ("千", "百", "十", "")
_MAX_HAN = 9_999


def roman(number: int) -> str:
    """Return a number as "iv", as digits where Romans had no numeral for it."""
    if not 0 < number <= _MAX_ROMAN:
        return str(number)
    text = ""
    for value, numeral in _ROMAN:
        count, number = divmod(number, value)
        text += numeral * count
    return text


def letters(number: int) -> str:
    """Return a number as a browser shows it in letters: "z" is followed by "aa" and "ab"."""
    if number < 1:
        return str(number)
    text = ""
    while number:
        number, place = divmod(number - 1, 26)
        text = chr(ord("a") + place) + text
    return text


def han(number: int, digits: str = _HAN_DIGITS, units: tuple[str, ...] = _HAN_UNITS) -> str:
    """Return a number in Chinese numerals: "十二", "一百零三"."""
    if not 0 <= number <= _MAX_HAN:
        return str(number)
    text = ""
    for digit, unit in zip(f"{number:04}", units, strict=True):
        if digit != "0":
            text += digits[int(digit)] + unit
        elif text and not text.endswith(digits[0]):
            text += digits[0]
    text = text.rstrip(digits[0]) or digits[0]
    return text[1:] if text.startswith(digits[1] + units[2]) and units is _HAN_UNITS else text
