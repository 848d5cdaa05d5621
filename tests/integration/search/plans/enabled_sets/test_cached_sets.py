"""Cached sets of enabled documents: what they follow, share and evict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import cast
from uuid import uuid4

import pytest

from portal.domain.deadlines import Deadline
from portal.store.search.context import read_context
from portal.store.search.filters.narrowing import narrowing
from portal.store.search.selection import enabled_sets
from portal.store.search.selection.enabled import EnabledQuery, EnabledSet, drifted
from portal.store.search.selection.enabled_sets import EnabledSets
from portal.store.search.selection.scope import Scope, Versions
from portal.text.terms.query_syntax import parse_query
from tests.integration.search.plans.enabled_sets.conftest import (
    DEFAULT_OFF,
    OF_DOCUMENTS,
    OVERRIDE_OFF,
    Shelf,
)

OFF_AND_ON = (
    DEFAULT_OFF,
    "UPDATE user_document_defaults SET enabled = TRUE WHERE user_id = :ann",
    "DELETE FROM user_document_defaults WHERE user_id = :ann",
)
FOLDER = "INSERT INTO folders (id, name) VALUES (:conversation, 'box')"
INTO_FOLDER = "UPDATE documents SET folder_id = :conversation WHERE id = :first"
FOLDER_OFF = (
    "INSERT INTO folder_switches (user_id, folder_id, enabled) VALUES (:ann, :conversation, FALSE)"
)
# Transactions, and whether the set follows their changes instead of being computed again.
FOLLOWED: dict[str, tuple[tuple[tuple[str, ...], bool], ...]] = {
    "switches": tuple(((one,), True) for one in (*OFF_AND_ON, OVERRIDE_OFF)),
    "all at once": ((OFF_AND_ON, True), ((OVERRIDE_OFF, DEFAULT_OFF), True)),
    "documents": tuple(
        ((OF_DOCUMENTS[name],), True)
        for name in ("into the trash", "out of the trash", "withdrawn", "a new document")
    ),
    "hidden and given away": (
        ((OF_DOCUMENTS["hidden"],), True),
        ((OF_DOCUMENTS["given away"], DEFAULT_OFF), True),
    ),
    "a folder": (
        ((FOLDER,), True),
        ((INTO_FOLDER,), True),
        ((FOLDER_OFF,), False),
        ((DEFAULT_OFF,), True),
    ),
    "a folder after a document": (
        ((FOLDER, INTO_FOLDER), True),
        ((OVERRIDE_OFF, FOLDER_OFF), False),
    ),
    "a document after a folder": (
        ((FOLDER, INTO_FOLDER), True),
        ((FOLDER_OFF, DEFAULT_OFF, OVERRIDE_OFF), False),
    ),
    "a scope": (
        ((OVERRIDE_OFF,), True),
        (('UPDATE conversations SET scope = \'{"tags": ["x"]}\' WHERE id = :conversation',), False),
    ),
    "a version that nothing noted": (
        (("UPDATE users SET selection_version = 1 WHERE id = :ann",), False),
        ((DEFAULT_OFF,), True),
    ),
}


@pytest.mark.parametrize("name", FOLLOWED)
def test_cached_set_follows_changes(
    shelf: Shelf, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    collected: list[object] = []
    count = EnabledQuery.count

    def collect(query: EnabledQuery) -> EnabledSet:
        collected.append(query)
        return count(query)

    monkeypatch.setattr(EnabledQuery, "count", collect)
    kept = EnabledSets()
    scope = Scope(shelf.ann, shelf.conversation)

    def find() -> EnabledSet:
        with shelf.services.database.driver() as reader:
            read = read_context(reader, shelf.ann.id, shelf.conversation, keyword_backend="auto")
            query = EnabledQuery(reader, scope, read.versions, 100, Deadline.within(5))
            found, fresh = kept.find(query), count(query)
        assert found.is_same(fresh)
        assert (found.document_count, found.chunk_count) == (
            fresh.document_count,
            fresh.chunk_count,
        )
        return found

    find()
    for statements, is_followed in FOLLOWED[name]:
        collected.clear()
        shelf.commit(*statements)
        find()
        assert (not collected) is is_followed, statements


def test_counts_of_a_broad_set_are_recomputed_before_they_drift_far() -> None:
    broad = EnabledSet(1_000, 10_000, None)
    for drift, is_known in ((100, True), (200, True), (201, False)):
        found = drifted(broad, drift, max_chunks=5_000)
        assert (found is not None) is is_known
    assert drifted(broad, 10, max_chunks=9_995) is None


COLLECTION = uuid4()


def counted(scope: Scope, number: int, count: Callable[[], EnabledSet]) -> EnabledQuery:
    """Return a query that needs no database: its count is given, and there are no changes."""
    versions = Versions(COLLECTION, number, 0, 0)
    return cast(
        "EnabledQuery",
        SimpleNamespace(scope=scope, versions=versions, count=count, follow=lambda *_: None),
    )


def test_set_is_computed_once_for_its_versions(shelf: Shelf) -> None:
    kept, scope, computed = EnabledSets(), Scope(shelf.ann), []

    def compute() -> EnabledSet:
        computed.append(1)
        return EnabledSet(len(computed), 1, "{}")

    for number, expected in ((1, 1), (1, 1), (2, 2), (2, 2), (1, 3)):
        assert kept.get(counted(scope, number, compute)).document_count == expected


def test_sets_of_different_scopes_are_kept_apart(shelf: Shelf) -> None:
    kept = EnabledSets()
    scopes = [
        Scope(shelf.ann),
        Scope(shelf.ben),
        Scope(replace(shelf.ann, is_admin=True)),
        Scope(shelf.ann, shelf.conversation),
        *(Scope(shelf.ann, None, narrowing(parse_query(q))) for q in ("title:a", "title:b")),
        *(Scope(shelf.ann, None, narrowing(parse_query("a"), domain=d)) for d in ("x", "y")),
    ]
    for number, scope in enumerate(scopes):
        found = EnabledSet(number, number, None)
        assert kept.get(counted(scope, 1, lambda: found)) is found  # noqa: B023


def test_memory_is_bounded(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enabled_sets, "_CACHE_BYTES", 2_000)
    kept = EnabledSets()
    huge = EnabledSet(1, 1, "x" * 3_000)
    assert kept.get(counted(Scope(shelf.ann), 1, lambda: huge)) is huge
    for number in range(100):
        scope = Scope(shelf.ann, uuid4())
        kept.get(counted(scope, number, lambda: EnabledSet(1, 1, None)))
    assert kept._cache.currsize <= 2_000
