"""Parsing of metadata filters: the accepted forms, and those refused with an explanation."""

from __future__ import annotations

import math
from typing import Any

import pytest

from portal.domain.search.metadata_filter import (
    MAX_CONDITIONS,
    MAX_KEY_LENGTH,
    MAX_MEMBERS,
    MAX_VALUES,
    All,
    AnyOf,
    Comparison,
    Containment,
    Membership,
    Not,
    Operator,
    parse_filter,
)
from portal.domain.search.text_filter import MAX_PARTS, MAX_WORDS_LENGTH, parse_text_filter
from portal.domain.vector_collections import TextCondition, TextConditions
from portal.errors import InvalidInput
from portal.integrations import values
from portal.store.search.filters.metadata import metadata_condition


def test_value_alone_means_equality() -> None:
    assert parse_filter({"source_file": "x.pdf"}) == Membership(("source_file",), ("x.pdf",))


def test_all_of_several_fields_and_operators_must_match() -> None:
    assert parse_filter({"page_number": {"$gte": 3, "$lt": 9}, "draft": False}) == All(
        (
            Comparison(("page_number",), Operator.GTE, 3),
            Comparison(("page_number",), Operator.LT, 9),
            Membership(("draft",), (False,)),
        )
    )


def test_list_of_conditions_means_the_same_as_an_object() -> None:
    listed = [
        {"field": "page_number", "operator": "gte", "value": 3},
        {"field": "tags", "operator": "$not_contains", "value": "draft"},
        {"field": "kind", "value": "note"},
    ]
    objects = {"page_number": {"$gte": 3}, "tags": {"$not_contains": "draft"}, "kind": "note"}
    assert parse_filter(listed) == parse_filter(objects)


def test_negations_are_the_complement_of_what_they_negate() -> None:
    for negated, plain, value in (
        ("$ne", "$eq", 1),
        ("$nin", "$in", [1, "a"]),
        ("$not_contains", "$contains", {"a": [1]}),
    ):
        inner = parse_filter({"x": {plain: value}})
        assert inner is not None
        assert parse_filter({"x": {negated: value}}) == Not(inner)


def test_dots_and_objects_lead_into_objects() -> None:
    within = Membership(("author", "name"), ("Ada",))
    assert parse_filter({"author.name": "Ada"}) == within
    assert parse_filter({"author": {"name": "Ada"}}) == within
    assert parse_filter([{"field": ["author", "name"], "value": "Ada"}]) == within
    assert parse_filter({"a": {"b.c": {"$gt": 1}}}) == Comparison(("a", "b.c"), Operator.GT, 1)
    assert parse_filter([{"field": ["b.c"], "value": 1}]) == Membership(("b.c",), (1,))


def test_and_with_or_nest() -> None:
    assert parse_filter({"$or": [{"a": 1}, {"$and": [{"b": 2}, {"c": {"$contains": 3}}]}]}) == (
        AnyOf(
            (
                Membership(("a",), (1,)),
                All((Membership(("b",), (2,)), Containment(("c",), "3"))),
            )
        )
    )


@pytest.mark.parametrize("empty", [None, {}, []])
def test_empty_filter_excludes_nothing(empty: Any) -> None:
    assert parse_filter(empty) is None


def nested(depth: int) -> dict[str, Any]:
    return {"$and": [nested(depth - 1)]} if depth else {"a": 1}


@pytest.mark.parametrize(
    "wrong",
    [
        "source_file = 'x'",
        7,
        {"a": {"$regex": ".*"}},
        {"$where": "1 = 1"},
        {"$not": {"a": 1}},
        {"a": {"$eq": 1, "b": 2}},
        {"a": {}},
        {"a": None},
        {"a": [1]},
        {"a": {"$in": "abc"}},
        {"a": {"$in": [[1]]}},
        {"a": {"$in": list(range(MAX_MEMBERS + 1))}},
        {f"f{n}": {"$nin": list(range(MAX_MEMBERS))} for n in range(MAX_VALUES // MAX_MEMBERS + 1)},
        {"a": {"$gt": True}},
        {"a": {"$gt": math.nan}},
        {"a": math.inf},
        {"a": 10**400},
        {"a": "\0"},
        {"a": "\ud800"},
        {"a\0": 1},
        {"": 1},
        {"a..b": 1},
        {"k" * (MAX_KEY_LENGTH + 1): 1},
        {".".join("abcdefghi"): 1},
        {"$and": []},
        {"$or": {"a": 1}},
        {"$or": [{}]},
        {"$or": [1]},
        nested(7),
        {f"f{n}": n for n in range(MAX_CONDITIONS + 1)},
        {"$or": [{f"f{n}": n, f"g{n}": n} for n in range(MAX_CONDITIONS)]},
        {"a": {"$contains": [[[[[[[[[1]]]]]]]]]}},
        {"a": {"$contains": "x" * 5000}},
        {"a": {"$contains": math.nan}},
        [{"field": "a", "operator": "like", "value": "%"}],
        [{"field": "a", "operator": "eq"}],
        [{"field": "a", "value": 1, "sql": "; DROP TABLE"}],
        [{"field": [], "value": 1}],
        [{"field": 1, "value": 1}],
        ["a = 1"],
    ],
)
def test_invalid_filter_is_refused_with_an_explanation(wrong: Any) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_filter(wrong)
    assert "metadata" in str(refused.value)


def test_limits_are_those_of_the_caller() -> None:
    def said(wanted: Any, **limits: int) -> str:
        with pytest.raises(InvalidInput) as refused:
            parse_filter(wanted, **limits)
        return str(refused.value)

    members = {"a": {"$nin": list(range(MAX_MEMBERS + 1))}}
    assert "at most 100 values" in said(members)
    assert "at most 100 values" in said(members, max_values=500)
    assert "filter has at most 400 values" in said(
        {"$and": [{"a": {"$in": list(range(90))}}] * 5}, max_members=500
    )
    assert "at most 64 conditions" in said({"$or": [{"a": 1}] * (MAX_CONDITIONS + 1)})
    assert "at most 70 conditions" in said({"$or": [{"a": 1}] * 71}, max_conditions=70)
    assert "takes a list of values" in said({"a": {"$in": {"b": 1}}})
    parse_filter(members, max_members=MAX_MEMBERS + 1)
    parse_filter({"$or": [{"a": 1}] * 70}, max_conditions=70)


def test_programs_may_filter_by_many_more_values() -> None:
    many = list(range(values.MAX_FILTER_VALUES))
    wanted = values.record_filter(where={"a.b": {"$in": many}}).metadata
    assert wanted == Membership(("a.b",), tuple(many))
    binds: dict[str, Any] = {}
    metadata_condition(wanted, binds)
    assert len(binds) == 2
    parts = [{"a": number} for number in range(values.MAX_FILTER_CONDITIONS)]
    values.record_filter(where={"$or": parts})
    for wrong in ({"a": {"$in": [*many, -1]}}, {"$or": [*parts, {"b": 1}]}):
        with pytest.raises(InvalidInput, match="metadata"):
            values.record_filter(where=wrong)


def test_filter_values_are_never_in_the_statement() -> None:
    hostile = "'; DROP TABLE documents; --"
    wanted = parse_filter(
        {
            hostile: {"$gte": hostile, "$ne": hostile, "$in": [hostile, 7654321]},
            "a": {":evil": {"$contains": {hostile: hostile}}},
        }
    )
    assert wanted is not None
    binds: dict[str, Any] = {}
    condition = metadata_condition(wanted, binds)
    assert "DROP" not in condition
    assert "7654321" not in condition
    assert "evil" not in condition
    assert all(f":{name}" in condition for name in binds)


@pytest.mark.parametrize("nothing", [None, {}])
def test_empty_text_filter_has_no_condition(nothing: Any) -> None:
    assert parse_text_filter(nothing) is None


def test_text_conditions_nest() -> None:
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
def test_invalid_text_filter_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidInput):
        parse_text_filter(wrong)
