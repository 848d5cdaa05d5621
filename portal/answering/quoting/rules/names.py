"""Names with a number, such as "Otter 3" and "Slatelet 8"."""

from __future__ import annotations

import re
from collections import defaultdict

from portal.answering.quoting.questions import MONTH_NAME
from portal.answering.quoting.rules.kinds import is_word

# A number with a sign behind it is an amount, a date or a time.
_NAME = re.compile(
    rf"(?<![A-Za-z\d])(?!(?i:{MONTH_NAME})\b)"
    r"[A-Z][A-Za-z-]{1,24} \d{1,3}(?![\d.:,%/°-]*\d|[%:°])",
)
# "Otter 3 or later", "Otter 1 to 3"
_GOES_ON = re.compile(
    r"\+|\s?(?:-|–|,|&|/|to\b|and\b|or\b)\s?(?:\d|above|later|newer|higher|below|older|over|up\b)"
)


def find_numbered(text: str) -> dict[str, frozenset[int]]:
    """Return the numbers of each name in a text: 3 for "Otter 3". Words of the dictionary are no
    names, and "Otter 3 or later" and "Otter 1 to 3" are about other numbers too."""
    found: dict[str, frozenset[int]] = defaultdict(frozenset)
    for match in _NAME.finditer(text):
        bare, number = match[0].rsplit(" ", 1)
        if not _GOES_ON.match(text, match.end()) and not is_word(bare.lower()):
            found[bare] |= {int(number)}
    return found


def find_numbers_of(name: str, text: str) -> frozenset[int]:
    """Return the numbers of one name in a text."""
    return find_numbered(text).get(name, frozenset())


def without_numbers_of_names(question: str, text: str) -> str:
    """Return a question without the numbers of names that a text has as well.

    The model takes such a number for a condition that the text does not meet.
    """
    for name in {found[0] for found in _NAME.finditer(text)}:
        bare, number = name.rsplit(" ", 1)
        question = re.sub(
            rf"(?<![a-z\d])({re.escape(bare)}) ?{number}(?!\d|[.,:]\d)",
            r"\1",
            question,
            flags=re.IGNORECASE,
        )
    return question
