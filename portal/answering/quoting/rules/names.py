"""Names with a number, such as "Otter 3" and "Slatelet 8"."""

from __future__ import annotations

import re
from collections import defaultdict

from portal.answering.quoting.questions import MONTH_NAME

# A number with a sign behind it is an amount, a date or a time.
_NAME = re.compile(
    rf"(?<![A-Za-z\d])(?!(?i:{MONTH_NAME})\b)"
    r"[A-Z][A-Za-z-]{1,24} \d{1,3}(?![\d.:,%/°-]*\d|[%:°])",
)


def find_numbered(text: str) -> dict[str, frozenset[int]]:
    """Return the numbers of each name in a text: 3 for "Otter 3"."""
    found: dict[str, frozenset[int]] = defaultdict(frozenset)
    for name in _NAME.findall(text):
        bare, number = name.rsplit(" ", 1)
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
