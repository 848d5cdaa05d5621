"""The kind of answer that a question wants, and which texts can contain one.

A statement without an amount of money does not answer "how much does it cost", however many words
of the question it has.
"""

from portal.answering.quoting.rules.kinds.asking import find_wanted
from portal.answering.quoting.rules.kinds.han_names import is_han_name
from portal.answering.quoting.rules.kinds.holding import can_hold, is_word
from portal.answering.quoting.rules.kinds.wanted import (
    ANY_TEXT,
    OF_EVENTS,
    OF_TIMES,
    WITH_SIGNS,
    Wanted,
)

__all__ = [
    "ANY_TEXT", "OF_EVENTS", "OF_TIMES", "WITH_SIGNS", "Wanted", "can_hold", "find_wanted",
    "is_han_name", "is_word",
]  # fmt: skip
