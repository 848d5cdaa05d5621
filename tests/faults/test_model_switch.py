"""kill -9 of workers, the web, PostgreSQL and commands while another embedding model is built and
switched to."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from sqlalchemy.exc import SQLAlchemyError

from portal.errors import Conflict, PortalError
from portal.services.models import switching
from tests.factories.servers.endpoint import wait
from tests.faults.conftest import Tally
from tests.faults.world import World

KINDS = ("worker", "command", "database", "web")
_DOCUMENTS = 6
_SECTIONS = 30
# What a worker held when it died is given back after twenty silent seconds.
_READY_WITHIN_S = 180.0
_MAX_WAIT_FOR_WORK_S = 10.0
_WORD = "beacon{:02}"
# Chunks that a model does not cover, and vectors of chunks that are gone.
_UNCOVERED = """
    SELECT (SELECT count(*) FROM document_chunks c WHERE NOT EXISTS (
               SELECT FROM chunk_embeddings e JOIN embedding_models m ON m.id = e.model_id
               WHERE e.chunk_id = c.id AND m.status = 'active')),
           (SELECT count(*) FROM embedding_models WHERE status = 'active')
"""


class Reader(threading.Thread):
    """Searches by meaning all the time. A search may be refused, but never finds what is wrong."""

    def __init__(self, world: World, documents: dict[int, str], rng: random.Random) -> None:
        super().__init__(daemon=True)
        self._world, self._documents, self._rng = world, documents, rng
        self._client = httpx.Client(
            base_url=world.client.base_url, headers=world.client.headers, timeout=30
        )
        self.stopping = threading.Event()
        self.wrong: list[str] = []
        self.answered = 0

    def run(self) -> None:
        while not self.stopping.wait(0.05):
            number = self._rng.choice(list(self._documents))
            with contextlib.suppress(httpx.TransportError):
                body = {"query": _WORD.format(number), "mode": "vector", "top_n": 1}
                answer = self._client.post("/api/knowledge/search", json=body)
                if answer.status_code == httpx.codes.SERVICE_UNAVAILABLE:
                    continue
                found = [hit["document_id"] for hit in answer.json().get("results", [])]
                if found != [self._documents[number]]:
                    self.wrong.append(answer.text)
                self.answered += 1


@pytest.fixture
def world(run_dir: Path) -> Iterator[World]:
    world = World(run_dir / "switched", workers=1)
    yield world
    world.stop()


def _upload(world: World, number: int) -> str:
    word = _WORD.format(number)
    content = "\n\n".join(f"{word} {word} section {n}. " * 40 for n in range(_SECTIONS))
    return world.upload(f"{word}.txt", content.encode(), until=threading.Event())


@pytest.mark.slow
def test_killed_in_a_switch_of_models_searches_stay_right_and_the_switch_completes(
    world: World, rng: random.Random, counts: dict[str, int], tally: Tally
) -> None:
    kinds = [KINDS[number % len(KINDS)] for number in range(max(counts["switch"], len(KINDS)))]
    rng.shuffle(kinds)
    documents = {number: _upload(world, number) for number in range(_DOCUMENTS)}
    wait(lambda: world.unfinished() == 0, _READY_WITHIN_S, "a document is not ready")
    reader = Reader(world, documents, random.Random(rng.random()))
    reader.start()
    try:
        wait(lambda: reader.answered > 0, _READY_WITHIN_S, "nothing is found")
        for number, kind in enumerate(kinds[: counts["switch"]]):
            before, name = _active(world), f"words{number}"
            began = _switch_and_kill(world, rng, kind, name)
            # Acknowledged while two models have vectors: it gets those of both.
            added = _upload(world, _DOCUMENTS + number)
            wait(lambda name=name: _active(world) == name, _READY_WITHIN_S, f"no switch: {kind}")
            wait(world.is_ready, _READY_WITHIN_S, f"stays dead: {kind}")
            tally.note(f"{kind} killed in a switch of models", recovery_s=time.monotonic() - began)
            wait(lambda: world.unfinished() == 0, _READY_WITHIN_S, "a document is not ready")
            documents |= {_DOCUMENTS + number: added}
            assert world.rows(_UNCOVERED) == [(0, 1)]
            answered = reader.answered
            wait(lambda a=answered: reader.answered > a + 5, _READY_WITHIN_S, "nothing is found")
            assert reader.wrong == []
            _retried(lambda before=before: switching.drop(world.services, before))
    finally:
        reader.stopping.set()
        reader.join(_READY_WITHIN_S)
    assert reader.wrong == []
    assert world.rows("SELECT DISTINCT status FROM documents") == [("ready",)]


def _switch_and_kill(world: World, rng: random.Random, kind: str, name: str) -> float:
    """Build a model and switch to it, with a kill somewhere in the middle; return when that was."""
    spec = f"hashing:{name}@64"
    if kind == "command":
        environment = os.environ | {
            "DATABASE_URL": str(world.settings.database_url),
            "PORTAL_DATA_DIR": str(world.data_dir),
            "PORTAL_SECRET_KEY": world.settings.secret_key.get_secret_value(),
            "PORTAL_EMBEDDING__PROVIDER": "hashing",
        }
        command = [sys.executable, "-c", "from portal.processes.cli import main; main()"]
        command += ["reindex", "--model", spec, "--switch", "--batch-size", "4"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(command, env=environment, **quiet) as process:
            _wait_for_build(world, rng, name)
            process.kill()
        began = time.monotonic()

        def is_completed() -> bool:
            # It may have switched just before it was killed, or hold its lock until the server
            # notices.
            done = subprocess.run(command, env=environment, capture_output=True, check=False)
            assert done.returncode == 0 or b"is being built" in done.stderr, done.stderr.decode()
            return done.returncode == 0

        wait(is_completed, _READY_WITHIN_S, "the killed command cannot be repeated")
        return began
    _retried(lambda: switching.request_build(world.services, spec))
    switching_on = threading.Thread(target=_switch_when_built, args=(world, name), daemon=True)
    switching_on.start()
    _wait_for_build(world, rng, name)
    began = time.monotonic()
    {"worker": lambda: world.kill_worker(0), "web": world.kill_web,
     "database": world.kill_database}[kind]()  # fmt: skip
    switching_on.join(_READY_WITHIN_S)
    return began


def _wait_for_build(world: World, rng: random.Random, name: str) -> None:
    """Wait until the build has begun, or is over, and a little longer."""
    statement = (
        f"SELECT 1 FROM embedding_models WHERE name = '{name}'"
        " AND (stage IS NOT NULL OR status <> 'building')"
    )
    ends_at = time.monotonic() + _MAX_WAIT_FOR_WORK_S
    while not world.rows(statement) and time.monotonic() < ends_at:
        time.sleep(0.02)  # Another process's progress can only be asked for.
    time.sleep(rng.uniform(0, 0.6))


def _switch_when_built(world: World, name: str) -> None:
    while _active(world) != name:
        with contextlib.suppress(Conflict):
            _retried(lambda: switching.switch(world.services, name))
        time.sleep(0.05)  # Another process's progress can only be asked for.


def _retried(action: Callable[[], object]) -> None:
    """Repeat what the end of the database may interrupt."""
    while True:
        try:
            action()
        except Conflict:
            raise
        except (PortalError, SQLAlchemyError):
            time.sleep(0.05)  # Another process's progress can only be asked for.
        else:
            return


def _active(world: World) -> str:
    rows = world.rows("SELECT name FROM embedding_models WHERE status = 'active'")
    return str(rows[0][0]) if rows else ""
