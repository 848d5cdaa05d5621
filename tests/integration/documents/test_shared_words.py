"""A transaction that shares many chunks adds the words of the first ones, and leaves the others to
small transactions after it."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import text

from portal.domain.documents import Visibility
from portal.domain.documents.bulk import BulkAction, BulkTarget
from portal.domain.people import User
from portal.domain.search import SearchMode, SearchRequest
from portal.domain.search.degraded import KEYWORD_INCOMPLETE
from portal.errors import DatabaseUnavailable
from portal.services import Services
from portal.services.documents import bulk, library, shared_words
from portal.services.operations import maintenance
from portal.services.search.engine import search
from portal.store.documents import bulk as bulk_store
from portal.store.documents.texts import shared_words as store_words
from portal.store.session import Session
from tests.conftest import Portal
from tests.factories.uploads import needs_bm25

LIMIT = 500


def share(portal: Portal, *, after: int) -> None:
    """Share all documents in a transaction that has shared that many chunks already."""
    with portal.services.database.begin() as session:
        set_shared(session, after)
        session.execute(text("UPDATE documents SET visibility = 'shared'"))


def set_shared(session: Session, count: int) -> None:
    session.execute(text("SELECT set_config('portal.shared', :count, true)"), {"count": str(count)})


def terms(portal: Portal) -> list[str | None]:
    with portal.services.database.begin() as session:
        return list(session.scalars(text("SELECT terms FROM shared_chunks ORDER BY terms")))


@pytest.fixture
def hidden(portal: Portal) -> Portal:
    for name in ("budget", "harbour"):
        portal.add(f"Words about the {name}.", visibility=Visibility.PRIVATE)
    return portal


def test_words_beyond_the_limit_are_added_later(hidden: Portal) -> None:
    share(hidden, after=LIMIT - 1)
    first, second = terms(hidden)
    assert first is not None
    assert second is None
    assert shared_words.fill(hidden.services, seconds=60) == 1
    assert None not in terms(hidden)
    assert shared_words.fill(hidden.services, seconds=60) == 0


def test_small_change_leaves_no_words_for_later(hidden: Portal) -> None:
    share(hidden, after=0)
    assert len(terms(hidden)) == 2
    assert None not in terms(hidden)


def test_housekeeping_adds_what_an_interrupted_process_left(hidden: Portal) -> None:
    share(hidden, after=LIMIT)
    assert terms(hidden) == [None, None]
    maintenance.run(hidden.services)
    assert len(terms(hidden)) == 2
    assert None not in terms(hidden)


def test_bulk_change_adds_all_words_and_earlier_cached_results_are_not_used(
    hidden: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the change had shared hundreds of chunks before these."""
    reader, services = hidden.user("reader"), hidden.services
    store_change, fill = bulk_store.change, shared_words.fill
    found_between = []

    def change(session: Session, *given: Any) -> Any:
        set_shared(session, LIMIT)
        return store_change(session, *given)

    def fill_after_a_search(*given: Any, **named: Any) -> int:
        found_between.append(words_found(services, reader))
        return fill(*given, **named)

    monkeypatch.setattr(bulk_store, "change", change)
    monkeypatch.setattr(shared_words, "fill", fill_after_a_search)
    owner = hidden.user("owner", is_admin=True)
    bulk.apply(services, owner, BulkTarget(None), BulkAction.VISIBILITY, Visibility.SHARED)
    assert found_between == [0]
    assert words_found(services, reader) == 1


def test_a_change_is_made_even_if_the_words_after_it_fail(
    hidden: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> bool:
        raise DatabaseUnavailable

    owner, document_id = hidden.user("owner", is_admin=True), hidden.add("Words.").id
    monkeypatch.setattr(store_words, "are_left_by", fail)
    library.change_document(
        hidden.services, owner, document_id, visibility=Visibility.PRIVATE, title="Renamed"
    )
    assert library.get_document(hidden.services, owner, document_id).summary.title == "Renamed"


def test_other_changes_do_not_wait_for_the_words(hidden: Portal) -> None:
    owner, document_id = hidden.user("owner", is_admin=True), hidden.add("Words.").id
    share(hidden, after=LIMIT)
    library.change_document(hidden.services, owner, document_id, title="Renamed")
    target = BulkTarget((document_id,))
    tagged = bulk.apply(hidden.services, owner, target, BulkAction.ADD_TAG, "urgent")
    assert tagged.change_id
    assert bulk.undo(hidden.services, owner, tagged.change_id) == 1
    assert terms(hidden).count(None) == 2


@needs_bm25
def test_keyword_searches_report_that_words_are_missing(hidden: Portal) -> None:
    reader, services = hidden.user("reader"), hidden.services

    def degraded(user: User, mode: SearchMode) -> tuple[str, ...]:
        return search(services, user, SearchRequest("harbour", mode=mode)).degraded

    share(hidden, after=LIMIT)
    for mode in (SearchMode.KEYWORD, SearchMode.HYBRID):
        assert degraded(reader, mode) == (KEYWORD_INCOMPLETE,)
        assert degraded(hidden.admin, mode) == ()  # Administrators search another index.
    assert degraded(reader, SearchMode.VECTOR) == ()
    shared_words.fill(services, seconds=60)
    assert degraded(reader, SearchMode.KEYWORD) == degraded(reader, SearchMode.HYBRID) == ()


def words_found(services: Services, user: User) -> int:
    request = SearchRequest("harbour", mode=SearchMode.KEYWORD)
    return len(search(services, user, request).hits)
