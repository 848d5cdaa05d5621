"""Very large filters find the same as plain Python."""

from __future__ import annotations

from typing import Any

import pytest

from portal.integrations.langchain import PostgresVectorStore

MANY = 5_000
METADATAS: list[dict[str, Any]] = [
    {"a": 7},
    {"a": 7.0},
    {"a": "7"},
    {"a": MANY - 1},
    {"a": MANY},
    {"a": 0.5},
    {"a": True},
    {"a": None},
    {"a": [7]},
    {"a": {"b.c": 7}},
    {"a": {"b": {"c": 7}}},
    {"a": ["7", {"b.c": 7}]},
    {"a.b": 7},
    {"a.b": "7"},
    {"名": "年假 7"},
    {"名": "年假 x"},
    {},
]
NUMBERS = list(range(MANY))
TEXTS = [str(number) for number in NUMBERS]
MIXED = [*NUMBERS[: MANY // 2], *TEXTS[MANY // 2 :], True, 0.5]
LEAVES = [f"年假 {number}" for number in NUMBERS]
CASES = [
    (path, members)
    for path in (["a"], ["a.b"], ["a", "b.c"], ["a", "b", "c"], ["名"], ["nowhere"])
    for members in (NUMBERS, TEXTS, MIXED, LEAVES)
]


def _holds(metadata: Any, path: list[str], members: list[Any]) -> bool:
    for key in path:
        if not isinstance(metadata, dict) or key not in metadata:
            return False
        metadata = metadata[key]
    return any(
        metadata == member
        and isinstance(metadata, bool) == isinstance(member, bool)
        and isinstance(metadata, str) == isinstance(member, str)
        for member in members
    )


def _where(path: list[str], operator: str, members: list[Any]) -> dict[str, Any]:
    wanted: dict[str, Any] = {operator: members}
    for key in reversed(path):
        wanted = {key: wanted}
    return wanted


@pytest.fixture
def filled(store: PostgresVectorStore) -> PostgresVectorStore:
    ids = [str(place) for place in range(len(METADATAS))]
    store.add_texts([f"text {one}" for one in ids], METADATAS, ids)
    return store


def test_five_thousand_values_find_what_python_finds(filled: PostgresVectorStore) -> None:
    for path, members in CASES:
        inside = {str(place) for place, one in enumerate(METADATAS) if _holds(one, path, members)}
        outside = {str(place) for place in range(len(METADATAS))} - inside
        for operator, expected in (("$in", inside), ("$nin", outside)):
            where = _where(path, operator, members)
            assert set(filled.get(where=where)["ids"]) == expected, (path, members[-1], operator)
    found = filled.similarity_search("text 1", k=20, filter={"a": {"$in": MIXED}})
    assert {document.id for document in found} == {"0", "1", "5", "6"}


def test_five_thousand_values_delete_what_python_finds(filled: PostgresVectorStore) -> None:
    filled.delete(where={"$and": [{"a": {"$in": NUMBERS}}, {"a": {"$nin": LEAVES[:100]}}]})
    left = {str(place) for place, one in enumerate(METADATAS) if not _holds(one, ["a"], NUMBERS)}
    assert set(filled.get()["ids"]) == left
    assert len(left) == len(METADATAS) - 3


def test_hundreds_of_conditions_are_accepted(filled: PostgresVectorStore) -> None:
    either = {"$or": [{"a": number} for number in range(500)]}
    neither = {"$and": [{"a": {"$ne": number}} for number in range(500)]}
    assert filled.get(where=either)["ids"] == ["0", "1"]
    assert set(filled.get(where=neither)["ids"]) == set(filled.get()["ids"]) - {"0", "1"}
    with pytest.raises(ValueError, match="at most 1000 conditions"):
        filled.get(where={"$or": [{"a": number} for number in range(1001)]})
    with pytest.raises(ValueError, match="at most 10000 values"):
        filled.get(where={"a": {"$in": list(range(10_001))}})
