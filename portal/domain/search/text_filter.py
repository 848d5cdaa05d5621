"""Conditions on the text of records, as in Chroma's `where_document`.

::

    {"$contains": "vacation"}
    {"$and": [{"$contains": "leave"}, {"$not_contains": "sick"}]}

Text is compared letter by letter: case and script matter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from portal.domain.json_values import check_text
from portal.domain.vector_collections import TextCondition, TextConditions, TextFilter
from portal.errors import InvalidInput

MAX_NESTING = 6
MAX_PARTS = 64
MAX_WORDS_LENGTH = 4000


def parse_text_filter(value: Any) -> TextFilter | None:
    """Return the filter that parsed JSON describes; None for an empty one. Raises InvalidInput,
    which names the mistake."""
    return None if value is None or value == {} else _parse(value, MAX_NESTING)


def _parse(value: Any, nesting: int) -> TextFilter:
    if not nesting:
        raise InvalidInput("a text filter is nested at most %(max)s deep", max=MAX_NESTING)
    if not isinstance(value, Mapping) or len(value) != 1:
        raise InvalidInput("a text filter must be an object with one operator")
    ((operator, operand),) = value.items()
    if operator in {"$contains", "$not_contains"}:
        return TextCondition(_words(operand), is_negated=operator == "$not_contains")
    if operator in {"$and", "$or"}:
        if not isinstance(operand, list) or not 0 < len(operand) <= MAX_PARTS:
            raise InvalidInput(
                "“%(name)s” takes a list of 1 to %(max)s filters", name=operator, max=MAX_PARTS
            )
        parts = tuple(_parse(one, nesting - 1) for one in operand)
        return TextConditions(parts, any_suffices=operator == "$or")
    raise InvalidInput(
        "“%(name)s” is not an operator of a filter of texts", name=str(operator)[:40]
    )


def _words(operand: Any) -> str:
    if not isinstance(operand, str) or not 0 < len(operand) <= MAX_WORDS_LENGTH:
        raise InvalidInput("a text filter looks for 1 to %(max)s characters", max=MAX_WORDS_LENGTH)
    check_text(operand)
    return operand
