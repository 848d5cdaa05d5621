"""Detection of the language of a text."""

from __future__ import annotations

import re
from typing import Literal

from portal.text.characters.scripts import HAN, HIRAGANA, KATAKANA

Language = Literal["zh", "en", "other"]

_SAMPLE_LENGTH = 20_000
_HAN = re.compile(f"[{HAN}]")
_KANA = re.compile(f"[{HIRAGANA}{KATAKANA}]")
_LATIN = re.compile("[A-Za-z]")
_LETTER = re.compile(r"[^\W\d_]")
_HAN_WEIGHT = 3  # A Chinese character carries about as much as three Latin letters.
_MIN_KANA_SHARE = 0.1  # Chinese texts occasionally quote a Japanese name.
_MAX_ACCENTED_SHARE = 0.02


def detect_language(text: str) -> Language:
    """Detect the language by its script; mixed text is Chinese if at least half is Chinese."""
    sample = text[:_SAMPLE_LENGTH]
    han, kana, latin, letters = (len(p.findall(sample)) for p in (_HAN, _KANA, _LATIN, _LETTER))
    rest = letters - han - latin
    if kana > _MIN_KANA_SHARE * (han + kana):
        return "other"
    if han and han * _HAN_WEIGHT >= max(latin, rest):
        return "zh"
    return "en" if latin and rest <= _MAX_ACCENTED_SHARE * latin else "other"
