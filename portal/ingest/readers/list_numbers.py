"""The numbers of lists as letters and Roman numerals."""

from __future__ import annotations

_ROMAN = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"),
    (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip
_MAX_ROMAN = 3999


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
