"""Search deadlines: one for all attempts of a search, and for all queries of a batch."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
import pytest
from sqlalchemy import TextClause, text

from portal import create_app
from portal.domain.deadlines import Deadline
from portal.domain.search import SearchRequest
from portal.domain.search.degraded import KEYWORD_UNAVAILABLE, VECTOR_UNAVAILABLE
from portal.errors import Unavailable
from portal.services import Services
from portal.services.search import engine
from portal.store.search.legs import finding as store_search
from portal.store.search.legs.statements import Shape, keyword_statement, vector_statement
from portal.store.search.selection.row_cache import RowCache
from portal.store.statements import fetch_under
from portal.text.terms import lexicon
from tests.conftest import Portal

TIMEOUT_S = 1.0
# Tolerance for a busy machine.
SLACK_S = 1.0
LATE = text("SELECT pg_sleep(60)")
IsLate = Callable[[Shape], bool]


@pytest.fixture
def hurried(portal: Portal, make_services: Callable[..., Services]) -> Portal:
    portal.add("Every employee has fifteen days of leave.", name="leave.txt")
    services = make_services(search={"statement_timeout_s": TIMEOUT_S, "cache_ttl_s": 0})
    hurried = Portal(services, portal.admin)
    services.enabled_sets.vectors = RowCache(0)  # The server compares vectors, and may be late.
    engine.search(services, portal.admin, SearchRequest("warm"))
    return hurried


@contextmanager
def late(monkeypatch: pytest.MonkeyPatch, is_late: IsLate) -> Iterator[None]:
    # `is_late` is asked once a search: for the vector leg if there is one.
    def by_vector(shape: Shape) -> TextClause:
        return LATE if is_late(shape) else vector_statement(shape)

    def by_words(shape: Shape) -> TextClause:
        return LATE if shape.vector is None and is_late(shape) else keyword_statement(shape)

    with monkeypatch.context() as patched:
        patched.setattr(store_search, "vector_statement", by_vector)
        patched.setattr(store_search, "keyword_statement", by_words)
        started = time.monotonic()
        yield
        assert time.monotonic() - started < TIMEOUT_S + SLACK_S


def test_all_attempts_share_one_deadline_and_a_leg_in_time_answers(
    hurried: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = SearchRequest("days of leave")
    legs: dict[str, IsLate] = {
        KEYWORD_UNAVAILABLE: lambda shape: shape.keyword is not None,
        VECTOR_UNAVAILABLE: lambda shape: shape.vector is not None,
    }
    for degraded, is_late in legs.items():
        with late(monkeypatch, is_late):
            found = engine.search(hurried.services, hurried.admin, request)
        assert [hit.title for hit in found.hits] == ["leave"]
        assert found.degraded == (degraded,)
    with late(monkeypatch, lambda _shape: True), pytest.raises(Unavailable):
        engine.search(hurried.services, hurried.admin, request)


def test_a_batch_has_the_time_of_one_search_and_says_which_queries_had_none(
    hurried: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, asked = create_app(hurried.services).test_client(), 0
    body = {"queries": [{"query_text": f"days of leave {n}"} for n in range(4)]}

    def after_the_first(_shape: Shape) -> bool:
        nonlocal asked
        asked += 1
        return asked > 1

    def ask(status: int) -> dict[str, object]:
        answer = client.post("/api/v1/search/batch", json=body, headers=hurried.headers())
        assert answer.status_code == status
        found: dict[str, object] = answer.get_json()
        return found

    with late(monkeypatch, after_the_first):
        data = ask(200)["data"]
    assert isinstance(data, dict)
    assert [result["total"] for result in data["results"]] == [1, 0, 0, 0]
    assert [(error["index"], error["code"]) for error in data["errors"]] == [
        (index, "batch_timed_out") for index in (1, 2, 3)
    ]
    assert asked <= 2, "none was begun after the time was over"
    with late(monkeypatch, lambda _shape: True):
        assert ask(503)["success"] is False


def test_loading_the_dictionary_takes_no_time_from_the_legs(
    hurried: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first search of a process waits for it. Duplicates make this one run its legs again."""
    for number in range(6):
        chinese = f"第{number}章 预算与灯塔。" * 20
        hurried.add(f"Section {number}. The budget.\n\n{chinese}\n\n" * 12, name=f"{number}.txt")
    read = lexicon._read

    def read_slowly() -> object:
        time.sleep(TIMEOUT_S)
        return read()

    monkeypatch.setattr(lexicon, "_lexicons", {})
    monkeypatch.setattr(lexicon, "_read", read_slowly)
    found = engine.search(hurried.services, hurried.admin, SearchRequest("budget of section 5"))
    assert lexicon._lexicons, "translations count in this search"
    assert found.hits
    assert found.degraded == ()


def test_a_search_in_one_language_does_not_wait_for_the_dictionary(
    hurried: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lexicon, "_lexicons", {})
    monkeypatch.setattr(lexicon, "_read", lambda: pytest.fail("it was read"))
    found = engine.search(hurried.services, hurried.admin, SearchRequest("days of leave"))
    assert [hit.title for hit in found.hits] == ["leave"]


def test_statement_gets_the_time_left_when_it_is_sent(hurried: Portal) -> None:
    deadline = Deadline.within(0.2)
    settings = {"statement_timeout": deadline.milliseconds}
    started = time.monotonic()
    for _ in range(3):
        with hurried.services.database.read() as session, pytest.raises(psycopg.Error):
            fetch_under(session, settings, LATE, {})
    assert deadline.is_over
    assert time.monotonic() - started < 0.2 + SLACK_S
