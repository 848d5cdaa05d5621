"""Characters of writing systems, as parts of regular expressions."""

from __future__ import annotations

import re
from itertools import groupby
from unicodedata import category


def _combining_marks() -> str:
    marks = (code for code in range(0x300, 0x1E94B) if category(chr(code))[0] == "M")
    ranges = []
    for _, run in groupby(enumerate(marks), key=lambda pair: pair[1] - pair[0]):
        codes = [code for _, code in run]
        ranges.append(f"\\U{codes[0]:08x}-\\U{codes[-1]:08x}")
    return "".join(ranges)


# 々 and 〇 occur inside Chinese words; the last range is every supplementary ideograph.
HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
HAN_RUN = re.compile(f"[{HAN}]+")
HIRAGANA = "\u3041-\u3096\u309d\u309e"
KATAKANA = "\u30a1-\u30fa\u30fc-\u30fe\u31f0-\u31ff"
# Characters as wide as Chinese ones, with their punctuation and full-width letters.
WIDE = f"{HAN}{HIRAGANA}{KATAKANA}\u3000-\u303f\uff00-\uffef"
HANGUL = "\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7a3"
# Thai, Lao, Tibetan, Myanmar and Khmer write no spaces between words.
UNSPACED = "\u0e01-\u0e4e\u0e81-\u0edf\u0f40-\u0fbc\u1000-\u103f\u1050-\u109f\u1780-\u17d3"
MARKS = _combining_marks()
# Currency signs, emoji and similar signs, without decorative boxes and bullets.
SYMBOLS = "\u00a3\u00a5\u20a0-\u20cf\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"

# Joiners (ZWJ, ZWNJ) have the same category but are meaningful: in Persian, in emoji.
_WRITTEN = {"\u200c", "\u200d"}


def is_invisible(character: str) -> bool:
    """Return whether a character shows nothing: controls, direction marks, zero-width spaces."""
    return category(character) in {"Cc", "Cf", "Cs"} and character not in _WRITTEN


def has_visible_text(text: str) -> bool:
    """Return whether anything in `text` is visible."""
    return any(not (c.isspace() or c in _WRITTEN or is_invisible(c)) for c in text)
