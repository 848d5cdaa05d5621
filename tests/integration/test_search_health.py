"""Health says of search what searches say themselves, and of what is mended that it is mended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import text

from portal import create_app
from portal.database import bm25
from portal.database.cluster_files import pg_textsearch_prefix
from portal.domain.search import SearchOutcome, SearchRequest
from portal.services import Services, health, searching, setup
from tests.conftest import Portal

needs_bm25 = pytest.mark.skipif(
    pg_textsearch_prefix() is None, reason="no package carries pg_textsearch for this machine"
)


def look(services: Services) -> dict[str, Any]:
    """What a visitor without a token gets."""
    answer = create_app(services).test_client().get("/health/vector_store")
    assert answer.status_code == 200
    assert answer.json is not None
    return dict(answer.json)


def ask(portal: Portal, query: str) -> SearchOutcome:
    return searching.search(portal.services, portal.admin, SearchRequest(query))


def execute(portal: Portal, statement: str) -> None:
    with portal.services.database.begin() as session:
        session.execute(text(statement))


# --- the keyword index --------------------------------------------------------------------------

LOSSES = {
    "index dropped": f"DROP INDEX {bm25.INDEX}",
    "extension dropped": "DROP EXTENSION pg_textsearch CASCADE",
    "index invalid": "UPDATE pg_index SET indisvalid = false"
    f" WHERE indexrelid = '{bm25.INDEX}'::regclass",
}


@needs_bm25
@pytest.mark.parametrize("loss", LOSSES)
def test_keyword_index_that_is_gone_is_told_at_once_and_its_return_too(
    portal: Portal, loss: str
) -> None:
    portal.add("The office closes at six.")
    execute(portal, LOSSES[loss])
    assert searching.KEYWORD_UNAVAILABLE in ask(portal, "office").degraded
    body = look(portal.services)
    assert (body["status"], body["keyword_backend"]) == ("degraded", "off")
    assert body["keyword_index"]["state"] == "absent"
    setup.heal_keyword_index(portal.services)
    body = look(portal.services)
    assert (body["status"], body["keyword_backend"]) == ("ok", "pg_textsearch")
    assert body["keyword_index"]["state"] == "ready"


@needs_bm25
def test_keyword_index_that_forgot_passages_is_told(portal: Portal) -> None:
    portal.add("The office closes at six.")
    execute(portal, "UPDATE bm25_index_state SET server_started_at = '2000-01-01', state = 'ready'")
    body = look(portal.services)
    assert (body["status"], body["keyword_index"]["state"]) == ("degraded", "stale")


@needs_bm25
def test_rows_of_the_keyword_index_are_those_that_it_holds_now(portal: Portal) -> None:
    assert look(portal.services)["keyword_index"]["row_count"] == 0
    portal.add("The office closes at six.")
    assert look(portal.services)["keyword_index"]["row_count"] == 1


@pytest.mark.parametrize("backend", ["off", "tsvector"])
def test_an_index_that_nobody_wants_is_neither_ready_nor_missed(
    portal: Portal, make_services: Callable[..., Services], backend: str
) -> None:
    body = look(make_services(search={"keyword_backend": backend}))
    assert body["keyword_backend"] == backend
    assert body["keyword_index"] is None
    assert body["status"] == "ok"


@needs_bm25
def test_page_tells_words_from_meaning_when_one_is_lost(portal: Portal) -> None:
    execute(portal, LOSSES["index dropped"])
    state = health.check_vector_store(portal.services)
    assert health.finds_by_meaning(state)
    assert state["keyword_backend"] == "off"
