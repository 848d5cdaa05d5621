"""Switching between two models during continuous searches and uploads."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from sqlalchemy import text

from portal.domain.search import SearchMode, SearchOutcome, SearchRequest
from portal.services.models import builds, catalog, switching
from portal.services.search import engine
from portal.store.embedding_models import registry
from tests.conftest import Portal

OLD, NEW = "hashing-384", "words"
SUBJECTS = ("coral", "tea", "bread", "lamp", "train", "budget", "heron", "violin")
# A rollback builds nothing, but three threads search at the same time.
ROLLBACK_LIMIT_S = 5.0


@pytest.fixture
def filled(portal: Portal) -> Portal:
    for subject in SUBJECTS:
        sentences = (f"The {subject} of section {n} has rule number {n}." for n in range(60))
        portal.add("\n\n".join(sentences), name=f"{subject}.txt")
    return portal


@dataclass
class Load:
    """Threads that search continuously, and their results."""

    outcomes: list[SearchOutcome] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)

    def models(self) -> list[str]:
        return [str((o.explanation or {}).get("embedding_model")) for o in self.outcomes]

    def wait_for(self, more: int) -> None:
        """Wait until `more` further searches are answered."""
        wanted, deadline = len(self.outcomes) + more, time.monotonic() + 60
        while len(self.outcomes) < wanted and not self.errors:
            assert time.monotonic() < deadline, "searches do not come to an end"
            threading.Event().wait(0.01)


@contextmanager
def searching_all_the_time(portal: Portal, *, threads: int = 3) -> Iterator[Load]:
    load, stop = Load(), threading.Event()

    def search(subject: str, mode: SearchMode) -> None:
        while not stop.is_set():
            request = SearchRequest(f"rule of the {subject}", mode=mode, explain=True)
            try:
                load.outcomes.append(engine.search(portal.services, portal.admin, request))
            except Exception as error:  # noqa: BLE001 - any error at all fails the test
                load.errors.append(error)
                return

    modes = (SearchMode.HYBRID, SearchMode.VECTOR)
    workers = [
        threading.Thread(target=search, args=(SUBJECTS[n], modes[n % len(modes)]))
        for n in range(threads)
    ]
    for worker in workers:
        worker.start()
    try:
        yield load
    finally:
        stop.set()
        for worker in workers:
            worker.join()


def cosines(portal: Portal, outcome: SearchOutcome, model_name: str) -> dict[object, float]:
    """Return the cosine of each hit by one model, computed from the stored vectors."""
    with portal.services.database.begin() as session:
        model = registry.find_model(session, model_name)
        assert model
        vector = catalog.loaded(portal.services, model).embedder.embed_query(outcome.query)
        literal = "[" + ",".join(map(str, vector.tolist())) + "]"
        rows = session.execute(
            text(
                f"SELECT chunk_id, 1 - (embedding <=> CAST(:vector AS vector))"
                f" FROM {model.partition} WHERE chunk_id = ANY(:ids)"
            ),
            {"vector": literal, "ids": [hit.chunk_id for hit in outcome.hits]},
        )
        return {row[0]: row[1] for row in rows}


def test_switch_rollback_and_switch_under_load(filled: Portal) -> None:
    catalog.register(filled.services, f"hashing:{NEW}@64")
    with searching_all_the_time(filled) as load:
        load.wait_for(20)
        list(builds.build(filled.services, NEW, batch_size=20))
        load.wait_for(20)
        assert set(load.models()) == {OLD}  # All searches so far used the old model.
        switching.switch(filled.services, NEW)
        load.wait_for(40)
        started = time.monotonic()
        switching.rollback(filled.services)
        assert time.monotonic() - started < ROLLBACK_LIMIT_S
        load.wait_for(40)
        switching.switch(filled.services, NEW)
        load.wait_for(40)
    assert load.errors == []
    assert {OLD, NEW} == set(load.models())
    assert all(outcome.hits and outcome.degraded == () for outcome in load.outcomes)
    # All results of a search come from the same model: their cosines are that model's.
    for model in (OLD, NEW):
        own = [o for o, name in zip(load.outcomes, load.models(), strict=True) if name == model]
        for outcome in own[:: max(1, len(own) // 15)]:
            expected = cosines(filled, outcome, model)
            for hit in outcome.hits:
                assert hit.vector_score == pytest.approx(expected[hit.chunk_id], abs=1e-4)


def test_next_search_after_a_switch_uses_the_new_model_in_every_process(
    filled: Portal, make_services: Callable[..., object]
) -> None:
    other = Portal(make_services(), filled.admin)
    request = SearchRequest("rule of the coral", explain=True)
    list(builds.build(filled.services, catalog.register(filled.services, f"hashing:{NEW}@64").name))

    def used(portal: Portal) -> object:
        outcome = engine.search(portal.services, portal.admin, request)
        assert outcome.explanation
        return outcome.explanation["embedding_model"]

    assert [used(filled), used(other)] == [OLD, OLD]
    switching.switch(filled.services, NEW)
    assert [used(other), used(filled)] == [NEW, NEW]
    switching.rollback(other.services)
    assert [used(filled), used(other)] == [OLD, OLD]


def test_uploads_during_the_build_and_the_switch_are_found(filled: Portal) -> None:
    catalog.register(filled.services, f"hashing:{NEW}@64")
    stop, failures, added = threading.Event(), [], []

    def upload() -> None:
        while not stop.is_set():
            number = len(added)
            try:
                filled.add(f"Item {number} is a zebra{number} of its own.", name=f"{number}.txt")
            except Exception as error:  # noqa: BLE001 - any error at all fails the test
                failures.append(error)
                return
            added.append(number)

    uploader = threading.Thread(target=upload)
    uploader.start()
    try:
        list(builds.build(filled.services, NEW, batch_size=5))
        switching.switch(filled.services, NEW)
        switching.rollback(filled.services)
        switching.switch(filled.services, NEW)
    finally:
        stop.set()
        uploader.join()
    assert failures == []
    assert added
    for summary in switching.list_models(filled.services):
        assert summary.coverage.missing == 0, summary.model.name
    for number in added:
        request = SearchRequest(f"zebra{number}", mode=SearchMode.VECTOR)
        hits = engine.search(filled.services, filled.admin, request).hits
        assert hits[0].title == str(number)


def test_dropping_the_old_model_under_load_breaks_no_search(filled: Portal) -> None:
    catalog.register(filled.services, f"hashing:{NEW}@64")
    list(builds.build(filled.services, NEW))
    with searching_all_the_time(filled) as load:
        load.wait_for(20)
        switching.switch(filled.services, NEW)
        switching.drop(filled.services, OLD)
        load.wait_for(30)
    assert load.errors == []
    assert all(outcome.degraded == () for outcome in load.outcomes)


_BUILD_AND_WAIT = """
import sys
from portal.container import build_services
from portal.services.models import builds
from portal.settings import load_settings

services = build_services(load_settings(embedding={"provider": "hashing"}))
for step in builds.build(services, sys.argv[1], batch_size=5):
    if step.stage == "embedding" and step.done >= 10:
        print("ten are there", flush=True)
        sys.stdin.read()  # Until it is killed.
"""


def test_killed_build_continues_where_it_stopped(
    filled: Portal, database_url: str, tmp_path: object
) -> None:
    catalog.register(filled.services, f"hashing:{NEW}@64")
    builder = subprocess.Popen(
        [sys.executable, "-c", _BUILD_AND_WAIT, NEW],
        env={**os.environ, "DATABASE_URL": database_url, "PORTAL_DATA_DIR": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert builder.stdout
    assert "ten" in builder.stdout.readline()
    builder.send_signal(signal.SIGKILL)
    builder.communicate()
    (half,) = (s for s in switching.list_models(filled.services) if s.model.name == NEW)
    assert half.size.vectors >= 10
    assert half.coverage.missing > 0
    assert half.build.stage == "embedding"  # A worker resumes it without a command.
    builds.requeue_lost(filled.services)
    deadline = time.monotonic() + 10
    while half.model.status == "building":
        # The server notices with a delay that the builder is gone.
        assert time.monotonic() < deadline
        builds.build_slice(filled.services, NEW, should_stop=lambda: False)
        (half,) = (s for s in switching.list_models(filled.services) if s.model.name == NEW)
    assert half.coverage.missing == 0
    assert switching.switch(filled.services, NEW).model.name == NEW
