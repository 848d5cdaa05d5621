"""Reading conditions on texts: what programs write, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from portal.domain.search.text_filter import MAX_PARTS, MAX_WORDS_LENGTH, parse_text_filter
from portal.domain.vector_collections import TextCondition, TextConditions
from portal.errors import InvalidInput


@pytest.mark.parametrize("nothing", [None, {}])
def test_empty_filter_has_no_condition(nothing: Any) -> None:
    assert parse_text_filter(nothing) is None


def test_conditions_nest() -> None:
    written = {
        "$and": [
            {"$contains": "leave"},
            {"$or": [{"$not_contains": "sick"}, {"$contains": "假"}]},
        ]
    }
    assert parse_text_filter(written) == TextConditions(
        (
            TextCondition("leave"),
            TextConditions(
                (TextCondition("sick", is_negated=True), TextCondition("假")), any_suffices=True
            ),
        )
    )


def _nested(depth: int) -> dict[str, Any]:
    return {"$contains": "x"} if not depth else {"$and": [_nested(depth - 1)]}


@pytest.mark.parametrize(
    "wrong",
    [
        {"$contains": ""},
        {"$contains": 7},
        {"$contains": "nul\0"},
        {"$contains": "\ud800"},
        {"$contains": "x" * (MAX_WORDS_LENGTH + 1)},
        {"$and": []},
        {"$and": {"$contains": "x"}},
        {"$or": [{"$contains": "x"}] * (MAX_PARTS + 1)},
        {"$contains": "x", "$not_contains": "y"},
        {"$regex": ".*"},
        {"content": "x"},
        ["x"],
        "x",
        _nested(7),
    ],
)
def test_meaningless_filter_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidInput):
        parse_text_filter(wrong)
