"""Metadata filters in PostgreSQL, compared with an oracle over the same JSON in Python."""

from __future__ import annotations

import json
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, example, given, settings
from sqlalchemy import text

from portal.domain.search.metadata_filter import parse_filter
from portal.services import Services
from portal.store.search.filters.metadata import metadata_condition

FIELDS = ["a", "b", "0", "a.b", "名", "'; --", ":x", "%s", "$1", "{}"]
NUMBERS = st.one_of(
    st.integers(-3, 3), st.sampled_from([0.5, -0.0, 1.0, 2.0, 1e22, 10**22, 1e-7, 2**63])
)
WORDS = st.sampled_from(["", "a", "b", "B", "ab", "1", "true", "null", "é", "年假", "'", '"', "😀"])
SCALARS = st.one_of(NUMBERS, WORDS, st.booleans())
VALUES = st.recursive(
    st.one_of(SCALARS, st.none()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(FIELDS), inner, max_size=3)
    ),
    max_leaves=6,
)
DOCUMENTS = st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=4)
PATHS = st.lists(st.sampled_from(FIELDS), min_size=1, max_size=3)
CONDITIONS = st.one_of(
    st.fixed_dictionaries({"field": PATHS, "operator": st.sampled_from(["eq", "ne"]),
                           "value": SCALARS}),
    st.fixed_dictionaries({"field": PATHS, "operator": st.sampled_from(["gt", "gte", "lt", "lte"]),
                           "value": st.one_of(NUMBERS, WORDS)}),
    st.fixed_dictionaries({"field": PATHS, "operator": st.sampled_from(["in", "nin"]),
                           "value": st.lists(SCALARS, max_size=3)}),
    st.fixed_dictionaries({"field": PATHS,
                           "operator": st.sampled_from(["contains", "not_contains"]),
                           "value": VALUES}),
)  # fmt: skip
ORDERS = {
    "gt": lambda a, b: a > b,
    "gte": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "lte": lambda a, b: a <= b,
}


# --- the oracle -----------------------------------------------------------------------------------


def kind(value: Any) -> str:
    """Return the JSON type of a value."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return {str: "string", list: "array", dict: "object", type(None): "null"}[type(value)]


def same(one: Any, other: Any) -> bool:
    return kind(one) == kind(other) and one == other


def contains(whole: Any, part: Any) -> bool:
    """Evaluate `whole @> part` below the top level."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(
            key in whole and contains(whole[key], value) for key, value in part.items()
        )
    if isinstance(part, list):
        return isinstance(whole, list) and all(
            any(contains(one, wanted) for one in whole) for wanted in part
        )
    return same(whole, part)


def fulfils(document: Any, condition: dict[str, Any]) -> bool:
    """Evaluate one condition."""
    operator, wanted = condition["operator"], condition["value"]
    negated = {"ne": "eq", "nin": "in", "not_contains": "contains"}
    if operator in negated:
        return not fulfils(document, condition | {"operator": negated[operator]})
    value: Any = document
    for key in condition["field"]:
        if not isinstance(value, dict) or key not in value:
            return False
        value = value[key]
    if operator == "eq":
        return same(value, wanted)
    if operator == "in":
        return any(same(value, one) for one in wanted)
    if operator == "contains":
        is_scalar = not isinstance(wanted, dict | list)
        return contains(value, wanted) or (is_scalar and contains(value, [wanted]))
    return kind(value) == kind(wanted) and ORDERS[operator](value, wanted)


def found_by_postgresql(services: Services, documents: list[Any], wanted: Any) -> list[bool]:
    binds: dict[str, Any] = {}
    parsed = parse_filter(wanted)
    assert parsed is not None
    condition = metadata_condition(parsed, binds)
    statement = f"""
        SELECT {condition} FROM (
            SELECT CAST(document AS jsonb) AS metadata, place
            FROM unnest(CAST(:documents AS text[])) WITH ORDINALITY AS given (document, place)
        ) c ORDER BY place
    """
    written = [json.dumps(document) for document in documents]
    with services.database.begin() as session:
        return list(session.scalars(text(statement), binds | {"documents": written}))


SETTINGS = settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@SETTINGS
@given(documents=st.lists(DOCUMENTS, min_size=1, max_size=8), condition=CONDITIONS)
@example(documents=[{"a": [{"b": 1}]}, {"a": {"b": 1}}, {"a": {"b": 1.0}}],
         condition={"field": ["a", "b"], "operator": "eq", "value": 1})  # fmt: skip
@example(documents=[{"a": ["x"]}, {"a": "x"}, {"a": [["x"]]}],
         condition={"field": ["a"], "operator": "contains", "value": "x"})  # fmt: skip
@example(documents=[{"a": "10"}, {"a": 10}, {"a": True}, {}],
         condition={"field": ["a"], "operator": "gt", "value": 9})  # fmt: skip
def test_condition_holds_in_postgresql_as_in_the_oracle(
    services: Services, documents: list[Any], condition: dict[str, Any]
) -> None:
    expected = [fulfils(document, condition) for document in documents]
    assert found_by_postgresql(services, documents, [condition]) == expected


@SETTINGS
@given(
    documents=st.lists(DOCUMENTS, min_size=1, max_size=6),
    conditions=st.lists(CONDITIONS, min_size=1, max_size=4),
    joined=st.sampled_from(["$and", "$or"]),
)
def test_joined_conditions_hold_as_in_the_oracle(
    services: Services, documents: list[Any], conditions: list[dict[str, Any]], joined: str
) -> None:
    together = all if joined == "$and" else any
    expected = [
        together(fulfils(document, condition) for condition in conditions) for document in documents
    ]
    written: dict[str, Any] = {joined: []}
    for condition in conditions:
        inner: Any = {f"${condition['operator']}": condition["value"]}
        for key in reversed(condition["field"][1:]):
            inner = {key: inner}
        written[joined].append({condition["field"][0]: inner})
    if any(
        condition["field"][0].startswith("$") or "." in condition["field"][0]
        for condition in conditions
    ):
        return  # Only the list form can express such a first key.
    if any(key.startswith("$") for condition in conditions for key in condition["field"]):
        return
    assert found_by_postgresql(services, documents, written) == expected


@pytest.mark.parametrize("operator", ["$eq", "$in", "$contains"])
def test_index_over_metadata_serves_equality(services: Services, operator: str) -> None:
    binds: dict[str, Any] = {}
    value = ["x.pdf"] if operator == "$in" else "x.pdf"
    parsed = parse_filter({"source_file": {operator: value}})
    assert parsed is not None
    condition = metadata_condition(parsed, binds)
    with services.database.begin() as session:
        session.execute(text("SET LOCAL enable_seqscan = off"))
        plan = session.scalars(
            text(f"EXPLAIN SELECT FROM document_chunks c WHERE {condition}"), binds
        )
        assert "ix_document_chunks_metadata" in "\n".join(plan)
