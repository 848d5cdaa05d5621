"""Changes of the selection in the middle of a search."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text

from portal.domain.search import SearchMode, SearchRequest
from portal.services import Services
from portal.services.documents import library
from portal.services.search import engine, finding
from portal.services.search.cache import SearchCache
from portal.store.documents import rows as document_store
from portal.store.models import DocumentRow
from portal.store.search.selection.enabled import EnabledQuery
from portal.store.search.selection.enabled_sets import EnabledSets
from tests.integration.search.plans.enabled_sets.conftest import (
    CHANGES,
    DEFAULT_OFF,
    DOCUMENTS,
    NEW_DOCUMENT,
    OVERRIDE_OFF,
    Shelf,
)

NEVER = {"exact_always_chunks": 0, "exact_chunks": 0, "exact_share": 0.0}
ALWAYS = {"exact_always_chunks": 1_000_000, "exact_chunks": 1_000_000, "exact_share": 1.0}
AT_ONCE = {
    "default off": DEFAULT_OFF,
    "override off": OVERRIDE_OFF,
    "into the trash": CHANGES[DOCUMENTS],
    "foreign": "UPDATE documents SET visibility = 'private', owner_id = :ben WHERE id = :first",
    "withdrawn": "UPDATE documents SET current_job_id = NULL WHERE id = :first",
}


@contextmanager
def after_once(function: str, act: Callable[[], None]) -> Iterator[None]:
    """Call `act` once, right after this function of the search returns."""
    module = engine if hasattr(engine, function) else EnabledQuery
    original = getattr(module, function)
    with pytest.MonkeyPatch.context() as patch:

        def acting(*values: Any, **named: Any) -> Any:
            result = original(*values, **named)
            patch.setattr(module, function, original)
            act()
            return result

        patch.setattr(module, function, acting)
        yield


@pytest.mark.parametrize("plan", [NEVER, ALWAYS, {}], ids=["index", "exact", "default"])
def test_document_switched_off_during_a_search_is_not_shown(
    shelf: Shelf, make_services: Callable[..., Services], plan: dict[str, Any]
) -> None:
    """This holds for a change before or after the set is computed and with a cached set; the next
    search uses no stale set either."""
    process = make_services(search={"plan": plan})
    for change, mode in product(AT_ONCE, SearchMode):
        for function, is_kept in (
            ("read_context", True),
            ("read_context", False),
            ("count", False),
        ):
            # Start without cached results, which are valid for a search begun before the change.
            fresh = replace(process, enabled_sets=EnabledSets(), search_cache=SearchCache())
            if is_kept:
                assert shelf.find(fresh, mode=mode) == {shelf.first, shelf.second}
            with after_once(function, lambda: shelf.commit(AT_ONCE[change])):  # noqa: B023
                assert shelf.find(fresh, mode=mode) == {shelf.second}, (change, mode, function)
            assert shelf.find(fresh, mode=mode) == {shelf.second}
            undo(shelf)
            assert shelf.find(fresh, mode=mode) == {shelf.first, shelf.second}


def test_text_published_during_a_search_replaces_what_was_there(shelf: Shelf) -> None:
    old = library.list_chunks(shelf.services, shelf.ann, shelf.first)[0][0].id
    with shelf.services.database.begin() as session:
        job, new = session.execute(_NEW_TEXT, {"document": shelf.first}).one()

    def publish() -> None:
        with shelf.services.database.begin() as session:
            document_store.publish(session, session.get_one(DocumentRow, shelf.first), job)

    request = SearchRequest("violin", mode=SearchMode.KEYWORD)
    for is_published in (False, True):
        if not is_published:
            with after_once("read_context", publish):
                hits = engine.search(shelf.services, shelf.ann, request).hits
        else:
            hits = engine.search(shelf.services, shelf.ann, request).hits
        found = {hit.chunk_id for hit in hits}
        assert old not in found
    assert found == {new}


@pytest.mark.parametrize("plan", [NEVER, ALWAYS], ids=["index", "exact"])
def test_search_is_repeated_when_text_is_replaced_or_deleted_not_when_added(
    shelf: Shelf, make_services: Callable[..., Services], plan: dict[str, Any]
) -> None:
    """Otherwise nearly every search during an import would be repeated."""
    process = make_services(search={"plan": plan})
    trash = "UPDATE documents SET deleted_at = now() WHERE id = :second"
    shelf.find(process, mode=SearchMode.KEYWORD)
    assert count_passes(shelf, process, before=lambda: shelf.commit(NEW_DOCUMENT)) == 1
    assert count_passes(shelf, process, before=lambda: publish_new(shelf)) == 1
    assert count_passes(shelf, process, after=lambda: publish_new(shelf)) == 1
    assert count_passes(shelf, process, before=lambda: publish_new(shelf, shelf.first)) == 2
    assert count_passes(shelf, process, after=lambda: shelf.commit(trash)) == 2


def count_passes(
    shelf: Shelf,
    process: Services,
    *,
    before: Callable[[], None] = lambda: None,
    after: Callable[[], None] = lambda: None,
) -> int:
    """Search with a change before or after the first run of the legs; return how often they run."""
    asked, find_offers = [], finding.find_offers

    def note(*values: Any, **named: Any) -> Any:
        asked.append(values)
        if len(asked) > 1:
            return find_offers(*values, **named)
        before()
        offers = find_offers(*values, **named)
        after()
        return offers

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(finding, "find_offers", note)
        shelf.find(replace(process, search_cache=SearchCache()), mode=SearchMode.KEYWORD)
    return len(asked)


def publish_new(shelf: Shelf, document_id: UUID | None = None) -> None:
    """Publish new text of a document, or of a new one."""
    with shelf.services.database.begin() as session:
        if document_id is None:
            new = text(f"{NEW_DOCUMENT} RETURNING id")
            document_id = session.execute(new, {"first": shelf.first}).scalar_one()
        job, _ = session.execute(_NEW_TEXT, {"document": document_id}).one()
        document_store.publish(session, session.get_one(DocumentRow, document_id), job)


_NEW_TEXT = text(
    """
    WITH job AS (
        INSERT INTO jobs (document_id, status) VALUES (:document, 'ready') RETURNING id
    )
    INSERT INTO document_chunks
        (job_id, document_id, collection_id, chunk_index, content, terms, char_start, char_end)
    SELECT job.id, d.id, d.collection_id, 0, 'Another violin.', 'anoth violin', 0, 15
    FROM documents d, job WHERE d.id = :document
    RETURNING job_id, id
    """
)


def undo(shelf: Shelf) -> None:
    shelf.commit(
        "DELETE FROM user_document_defaults",
        "DELETE FROM conversation_document_overrides",
        "UPDATE documents SET deleted_at = NULL, visibility = 'shared', owner_id = :ann,"
        " current_job_id = (SELECT id FROM jobs WHERE document_id = documents.id)",
    )
