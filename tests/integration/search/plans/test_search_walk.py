"""A search calls straight from its route down to the server (ADR 44)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import Semaphore
from types import FrameType
from typing import Any
from unittest.mock import patch

import psycopg
import pytest
from flask.testing import FlaskClient

from portal.domain.search import SearchMode, SearchRequest
from portal.services.search import engine, finding
from portal.services.search.cache import SearchCache
from portal.settings.search import PlanSettings
from portal.store import session as store_session
from portal.store.connections.pipeline import Pipeline
from portal.store.search.selection.enabled_sets import EnabledSets
from tests.conftest import Portal

MAX_CALLS = 7
QUERY = "days of annual leave"


def walk(frame: FrameType | None) -> list[str]:
    """Return the portal's functions from the route to this frame, outermost first, without the
    route's decorators."""
    names: list[str] = []
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if name.startswith("portal."):
            names.insert(0, f"{name}.{frame.f_code.co_qualname}")
        frame = frame.f_back
    routes = [place for place, name in enumerate(names) if name.endswith(".search")]
    return names[routes[0] :] if routes else []


@contextmanager
def walks_to_the_server() -> Iterator[list[list[str]]]:
    found: list[list[str]] = []
    add, execute = Pipeline.add, psycopg.Cursor.execute

    def note(sends: Any) -> Any:
        def noted(sender: Any, *values: Any, **named: Any) -> Any:
            found.append([*walk(sys._getframe(1)), sends.__qualname__])
            return sends(sender, *values, **named)

        return noted

    with (
        patch.object(Pipeline, "add", note(add)),
        patch.object(psycopg.Cursor, "execute", note(execute)),
    ):
        yield found


@pytest.fixture
def handbook(portal: Portal) -> Portal:
    for number in range(12):
        portal.add(f"Team {number} has {number} days of annual leave.", name=f"{number}.txt")
    engine.search(portal.services, portal.admin, SearchRequest("warm"))
    return portal


def test_search_takes_seven_calls_from_route_to_server(
    handbook: Portal, client: FlaskClient
) -> None:
    body = {"query": QUERY}
    with walks_to_the_server() as found:
        answer = client.post("/api/knowledge/search", json=body, headers=handbook.headers())
    assert answer.status_code == 200
    # The enabled set is reloaded only after a change.
    paths = [path for path in found if not any("find_enabled" in name for name in path)]
    assert any("find_offers" in name for path in paths for name in path)
    assert max(map(len, paths)) <= MAX_CALLS, max(paths, key=len)


def test_parallel_legs_find_the_same_as_sequential_ones(
    handbook: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Search by the index, so that both legs are statements, and without cached results, which
    # would answer the second search.
    settings = handbook.services.settings
    plan = PlanSettings(exact_always_chunks=0, exact_chunks=0, exact_share=0)
    search = settings.search.model_copy(update={"plan": plan})
    services = replace(
        handbook.services,
        settings=settings.model_copy(update={"search": search}),
        search_cache=SearchCache(),
        enabled_sets=EnabledSets(),
    )
    found, find_offers = [], finding.find_offers
    connections: list[bool] = []

    def note(*asked: Any, **named: Any) -> Any:
        connections.append(named["spare"] is not None)
        return find_offers(*asked, **named)

    monkeypatch.setattr(finding, "find_offers", note)
    monkeypatch.setattr(store_session, "_lacks_cores", lambda: False)
    monkeypatch.setattr(services.database._primary, "spare_slots", Semaphore(1))
    for least in (0, 1_000_000):
        monkeypatch.setattr(finding, "_MIN_SIDE_BY_SIDE", least)
        found.append(engine.search(services, handbook.admin, SearchRequest(QUERY)))
    assert connections == [True, False]
    assert found[0].hits == found[1].hits
    assert found[0].hits[0].source is SearchMode.HYBRID
