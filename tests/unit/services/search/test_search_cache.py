"""The keys of cached searches, and which results are cached."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from types import SimpleNamespace
from uuid import UUID, uuid4

import pytest

from portal.domain.people import User
from portal.domain.search import (
    KeywordBackend,
    SearchHit,
    SearchMode,
    SearchOutcome,
    SearchRequest,
    Span,
    Weights,
)
from portal.services.search.cache import SearchCache, key_of
from portal.settings import SearchSettings
from portal.store.embedding_models.registry import RegisteredModel
from portal.store.search.context import SearchContext
from portal.store.search.keywords.index import KeywordState
from portal.store.search.selection.scope import Versions

REQUEST = SearchRequest("a question", weights=Weights(0.5, 0.5))
PERSON = User(id=uuid4(), name="ann", is_admin=False)
MODEL = RegisteredModel(
    1, "hashing-384", 384, calibration={"scale": [1, 2.5]}, activated_at=datetime.now(UTC)
)
CONTEXT = SearchContext(
    config={"top_n": 5, "fusion": "rrf"},
    keywords=KeywordState(KeywordBackend.OFF, 7, KeywordBackend.OFF),
    model=MODEL,
    has_conversation=False,
    versions=Versions(uuid4(), 1, 2, 3),
    corpus_version=4,
    words_version="5",
)


@dataclass(frozen=True)
class Changed:
    """A value that differs from any value of a field."""


@pytest.mark.parametrize(
    ("place", "name"),
    [
        (place, field.name)
        for place, part in enumerate((REQUEST, PERSON, CONTEXT))
        for field in fields(part)
    ],
)
def test_every_field_that_affects_a_result_is_in_its_key(place: int, name: str) -> None:
    parts: list[object] = [REQUEST, PERSON, CONTEXT]
    plain = key_of(*parts)
    parts[place] = replace(parts[place], **{name: Changed()})  # type: ignore[type-var]
    assert key_of(*parts) != plain


@pytest.mark.parametrize(
    "other",
    [
        replace(CONTEXT, versions=replace(CONTEXT.versions, overrides=4)),
        replace(CONTEXT, config=CONTEXT.config | {"rrf_k": 60}),
        replace(CONTEXT, model=replace(MODEL, calibration={"scale": [1, 2.6]})),
        replace(CONTEXT, keywords=KeywordState(KeywordBackend.TSVECTOR, 7, KeywordBackend.OFF)),
    ],
)
def test_nested_fields_are_in_the_key(other: SearchContext) -> None:
    assert key_of(REQUEST, PERSON, other) != key_of(REQUEST, PERSON, CONTEXT)


def test_equal_values_have_one_key_and_types_are_distinguished() -> None:
    again = replace(CONTEXT, config=dict(reversed(CONTEXT.config.items())))
    assert key_of(REQUEST, PERSON, again) == key_of(REQUEST, PERSON, CONTEXT)
    number = UUID(int=7)
    values = [
        None,
        True,
        1,
        1.5,
        "1",
        "None",
        (1,),
        ((1,),),
        number,
        str(number),
        SearchMode.VECTOR,
    ]
    assert len({key_of(value) for value in [*values, "vector", [1, 1], {"1": 1}]}) == 14


def test_unknown_type_has_no_key() -> None:
    with pytest.raises(TypeError, match="SimpleNamespace"):
        key_of(replace(REQUEST, domain=SimpleNamespace(a=1)))  # type: ignore[arg-type]


def outcome(**changes: object) -> SearchOutcome:
    hit = SearchHit(
        document_id=uuid4(),
        chunk_id=uuid4(),
        title="标题",
        excerpt="words \U0001f600",
        highlights=(Span(0, 5),),
        page=None,
        heading="h",
        score=0.1 + 0.2,
        vector_score=1 / 3,
        text_score=0.0,
        confidence=0.123456789012345,
        low_confidence=True,
        source=SearchMode.HYBRID,
        media_type="text/plain",
        char_start=0,
        char_end=5,
    )
    found = SearchOutcome("q", (hit, hit), 2, SearchMode.HYBRID)
    return replace(found, **changes)  # type: ignore[arg-type]


def cache(**settings: object) -> SearchCache:
    return SearchCache(None, SearchSettings(**settings))  # type: ignore[arg-type]


def test_cached_outcome_is_returned_unchanged() -> None:
    kept, found = cache(), outcome()
    kept.put("k", found)
    assert kept.get("k") == found
    assert kept.get("other") is None


def test_degraded_outcome_is_not_cached() -> None:
    kept = cache()
    kept.put("k", outcome(degraded=("embedder_unavailable",)))
    assert kept.get("k") is None


def test_long_outcomes_are_not_cached_and_memory_is_bounded() -> None:
    kept = cache(cache_mb=1)
    kept.put("long", outcome(query="x" * 300_000))
    assert kept.get("long") is None
    for number in range(20):
        kept.put(f"k{number}", outcome(query="x" * 100_000))
    found = [number for number in range(20) if kept.get(f"k{number}") is not None]
    assert len(found) in range(5, 11)
    assert found[-1] == 19


def test_cache_can_be_switched_off() -> None:
    assert not cache(cache_ttl_s=0).is_on
    assert not SearchCache().is_on


class Shared:
    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.lives: list[int] = []

    def get(self, key: str) -> bytes | None:
        return self.values.get(key)

    def put(self, key: str, value: bytes, *, ttl_s: int) -> None:
        self.values[key] = value
        self.lives.append(ttl_s)


def test_processes_share_the_cache() -> None:
    shared, found = Shared(), outcome()
    SearchCache(shared, SearchSettings()).put("k", found)
    assert SearchCache(shared, SearchSettings()).get("k") == found
    assert shared.lives == [300]


@pytest.mark.parametrize("value", [b"", b"\x80\x04pickle", b'{"query": 1}', b"null"])
def test_foreign_bytes_in_the_shared_cache_are_ignored(value: bytes) -> None:
    shared = Shared()
    shared.values["k"] = value
    assert SearchCache(shared, SearchSettings()).get("k") is None
