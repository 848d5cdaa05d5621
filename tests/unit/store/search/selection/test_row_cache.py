"""The row cache of a selection reads no more rows at once and keeps no more bytes than allowed."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast
from unittest.mock import patch
from uuid import UUID

import pytest
from sqlalchemy import text

from portal.store.search.selection import row_cache
from portal.store.search.selection.row_cache import RowCache, RowSource
from portal.store.statements import Reader

NAMES = [str(UUID(int=number)) for number in range(1, 5)]
READER = cast(Reader, None)


@dataclass(slots=True, weakref_slot=True)
class Words:
    """Content of ten bytes for each row."""

    rows: Sequence[Any]

    @property
    def size_bytes(self) -> int:
        return 10 * len(self.rows)


def source_of(built: list[weakref.ref[Words]]) -> RowSource[Words]:
    def build(rows: Sequence[Sequence[Any]]) -> Words:
        words = Words(rows)
        built.append(weakref.ref(words))
        return words

    def join(some: Sequence[Words]) -> Words:
        return Words([row for one in some for row in one.rows])

    return RowSource(text("load"), text("states"), build, join)


@pytest.fixture
def read() -> Iterator[list[int]]:
    """Yield the number of names that each statement read; each name has one row."""
    counts: list[int] = []

    def fetch(_reader: Reader, statement: Any, names: Sequence[str]) -> list[Any]:
        counts.append(len(names))
        state = [(name, 1, 7) for name in names]
        return state if str(statement) == "states" else [(*one, one[0]) for one in state]

    with patch.multiple(row_cache, fetch=fetch, _ids=list):
        yield counts


def array(names: Sequence[str]) -> str:
    return "{" + ",".join(names) + "}"


def test_content_is_returned_once_all_rows_are_read(read: list[int]) -> None:
    cache, source = RowCache[Words](1000), source_of([])
    found = [cache.get_if_cached(READER, source, array(NAMES), "v1", max_read=3) for _ in range(3)]
    assert found[0] is None
    assert found[1] is found[2] is not None
    assert [row[0] for row in found[1].rows] == NAMES
    assert read == [3, 1]


def test_unchanged_rows_are_joined_once(read: list[int]) -> None:
    cache, source = RowCache[Words](1000), source_of([])
    first = cache.get(READER, source, array(NAMES), "v1")
    assert cache.get(READER, source, array(NAMES), "v2") is first
    assert read == [4, 4]


def test_evicted_rows_are_released_even_if_they_were_joined(read: list[int]) -> None:
    built: list[weakref.ref[Words]] = []
    cache, source = RowCache[Words](20), source_of(built)
    cache.get(READER, source, array(NAMES[:2]), "v1")
    assert cache.get_if_cached(READER, source, array(NAMES[1:]), "v1", max_read=1) is None
    gc.collect()
    assert [one() is not None for one in built] == [False, True, True]
    assert read == [2, 1]
