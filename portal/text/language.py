"""Detection of the language of a text."""

from __future__ import annotations

import re
from typing import Literal

from portal.text.characters.scripts import HAN, HIRAGANA, KATAKANA

Language = Literal["zh", "en", "other"]

_SAMPLE_LENGTH = 20_000
_HAN = re.compile(f"[{HAN}]")
_KANA = re.compile(f"[{HIRAGANA}{KATAKANA}]")
_LATIN = re.compile("[A-Za-zＡ-Ｚａ-ｚ]")
_LETTER = re.compile(r"[^\W\d_]")
_HAN_WEIGHT = 3  # A Chinese character carries about as much as three Latin letters.
_MIN_KANA_SHARE = 0.1  # Chinese texts occasionally quote a Japanese name.
_MAX_ACCENTED_SHARE = 0.02
# A short English text may have an accent (café, José) if it has one of these words too, which other
# languages in Latin letters do not have.
_ENGLISH = re.compile(
    r"\b(?:the|what|when|where|which|who|whose|why|how|does|should|need|have|there|with|from|my|your)\b",
    re.IGNORECASE,
)
_MAX_ACCENTED = 2
# Every English question has one of these words, or one of those above.
_OF_SENTENCES = re.compile(
    r"\b(?:an?|is|are|was|were|do|did|can|to|of|in|on|for|and|or|i|we|you|it|our|that|this)\b",
    re.IGNORECASE,
)


def detect_language(text: str) -> Language:
    """Detect the language by its script; mixed text is Chinese if at least half is Chinese."""
    sample = text[:_SAMPLE_LENGTH]
    han, kana, latin, letters = (len(p.findall(sample)) for p in (_HAN, _KANA, _LATIN, _LETTER))
    rest = letters - han - latin
    if kana > _MIN_KANA_SHARE * (han + kana):
        return "other"
    if han and han * _HAN_WEIGHT >= max(latin, rest):
        return "zh"
    is_english = rest <= _MAX_ACCENTED_SHARE * latin or (
        rest <= _MAX_ACCENTED and _ENGLISH.search(sample)
    )
    return "en" if latin and is_english else "other"


def detect_question_language(question: str) -> Language:
    """Detect the language that a question is asked in: Chinese even if most of it is names in Latin
    letters, as in "Kubernetes deployment怎么做"."""
    language = detect_language(question)
    has_sentence = _ENGLISH.search(question) or _OF_SENTENCES.search(question)
    return "zh" if language == "en" and _HAN.search(question) and not has_sentence else language
