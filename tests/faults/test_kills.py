"""kill -9 of workers, of the web and of the database while documents come in."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.conftest import Portal
from tests.factories.servers.endpoint import wait
from tests.faults.conftest import Tally
from tests.faults.world import World, undisturbed

# Documents, and workers.
SHORT, LONG = (8, 1), (100, 2)
KINDS = {
    "worker": "worker killed during an import",
    "web": "web process killed during an import",
    "database": "PostgreSQL killed during an import",
    "both": "worker and PostgreSQL killed during an import",
}
# What a worker held when it died is given back after twenty silent seconds.
_READY_WITHIN_S = 120.0
# Those that no worker had begun must be read as well, with all else that the machine has to do.
_S_PER_DOCUMENT = 3.0
_MAX_WAIT_FOR_WORK_S = 15.0


def content_of(number: int, paragraphs: int) -> bytes:
    """Return a text of some thirty passages, both languages, no two the same."""
    words = [
        f"Section {place} of report {number}. "
        + f"The lighthouse of budget {number * place} burns. " * 20
        + f"第{place}节：灯塔{number}号的预算是{number * place}元。" * 12
        for place in range(paragraphs)
    ]
    return "\n\n".join(words).encode()


@pytest.fixture
def world(run_dir: Path, is_long: bool) -> Iterator[World]:
    world = World(run_dir / "killed", workers=(LONG if is_long else SHORT)[-1])
    yield world
    world.stop()


@pytest.mark.slow
def test_killed_at_any_moment_nothing_acknowledged_is_lost_or_differs(
    world: World,
    portal: Portal,
    rng: random.Random,
    is_long: bool,
    counts: dict[str, int],
    tally: Tally,
) -> None:
    documents, _ = LONG if is_long else SHORT
    files = {f"{n:03}.txt": content_of(n, rng.randrange(4, 24)) for n in range(documents)}
    kinds = [kind for kind in KINDS for _ in range(counts[kind])]
    rng.shuffle(kinds)

    acknowledged, ended = _import(world, files, rng, kinds, tally)
    wait(
        lambda: world.unfinished() == 0,
        _READY_WITHIN_S + _S_PER_DOCUMENT * documents,
        "a document is still neither ready nor failed",
    )
    found = world.rows("SELECT CAST(id AS text), status, CAST(error AS text) FROM documents")
    assert {row[0] for row in found} == acknowledged
    assert [row for row in found if row[1] != "ready"] == []
    assert world.rows("SELECT status, count(*) FROM jobs GROUP BY 1") == [("ready", documents)]
    told = "SELECT kind, count(*), count(DISTINCT document_id) FROM notifications GROUP BY 1"
    assert world.rows(told) == [("ready", documents, documents)]
    assert not ended.is_set()

    for name, content in files.items():
        portal.add(content, name=name)
    expected = undisturbed(portal.services)
    assert len(expected) > 2 * documents
    assert world.left() == expected


def _import(
    world: World, files: dict[str, bytes], rng: random.Random, kinds: list[str], tally: Tally
) -> tuple[set[str], threading.Event]:
    """Upload all while the processes die, so that uploads and deaths are over together; the ids
    that were acknowledged, and an event that is set when an upload went wrong."""
    failed, given_up = threading.Event(), threading.Event()
    acknowledged: set[str] = set()
    kills = threading.Semaphore(0)
    ahead = max(3, len(files) // 5)

    def upload_all() -> None:
        try:
            for number, (name, content) in enumerate(files.items()):
                # Some before the first death, and then as many as there are deaths.
                while number >= ahead and not kills.acquire(timeout=1):
                    if given_up.is_set():
                        return
                acknowledged.add(world.upload(name, content, until=given_up))
        except BaseException:
            failed.set()
            raise

    uploading = threading.Thread(target=upload_all)
    uploading.start()
    try:
        due = 0.0
        for kind in kinds:
            _wait_for_work(world, rng, given_up)
            began, begun = time.monotonic(), world.attempts()
            {
                "worker": lambda: world.kill_worker(rng.randrange(len(world.workers))),
                "web": world.kill_web,
                "database": world.kill_database,
                "both": lambda: world.kill_worker_and_database(rng.randrange(len(world.workers))),
            }[kind]()
            wait(partial(_goes_on, world, kind, begun), _READY_WITHIN_S, f"stays dead: {kind}")
            tally.note(KINDS[kind], recovery_s=time.monotonic() - began)
            due += (len(files) - ahead) / len(kinds)
            while due >= 1:
                due -= 1
                kills.release()
        kills.release(len(files))
        uploading.join(_READY_WITHIN_S)
    finally:
        given_up.set()
        uploading.join()
    return acknowledged, failed


def _goes_on(world: World, kind: str, begun: int) -> bool:
    """Return whether the web process answers, and a worker has begun another job if one died."""
    is_at_work = "worker" not in KINDS[kind] or world.attempts() > begun
    return world.is_ready() and (is_at_work or world.unfinished() == 0)


def _wait_for_work(world: World, rng: random.Random, pause: threading.Event) -> None:
    """Wait until a worker is somewhere in the middle of another job."""
    begun = world.attempts()
    ends_at = time.monotonic() + _MAX_WAIT_FOR_WORK_S
    while world.attempts() == begun and time.monotonic() < ends_at:
        pause.wait(0.02)
    pause.wait(rng.uniform(0, 0.5))
