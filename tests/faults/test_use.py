"""People search, ask, switch, change, delete and upload, while processes are killed."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.factories.servers.endpoint import wait
from tests.faults.conftest import Tally
from tests.faults.people import Person
from tests.faults.world import World

_PEOPLE = 2
_READY_WITHIN_S = 180.0


@pytest.fixture
def world(run_dir: Path) -> Iterator[World]:
    world = World(run_dir / "used", workers=1)
    yield world
    world.stop()


@pytest.mark.slow
def test_acknowledged_writes_survive_kills_and_searches_stay_right(
    world: World, rng: random.Random, counts: dict[str, int], tally: Tally
) -> None:
    kinds = [("worker", "web", "database")[number % 3] for number in range(counts["use"])]
    rng.shuffle(kinds)
    address = str(world.client.base_url)
    people = [
        Person(world.services, address, number, random.Random(rng.random()))
        for number in range(_PEOPLE)
    ]
    for person in people:
        person.start()
    try:
        wait(lambda: all(one.done > 3 for one in people), _READY_WITHIN_S, "nothing is done")
        for kind in kinds:
            time.sleep(rng.uniform(0.2, 1.5))  # Somewhere in the middle of what they do.
            began = time.monotonic()
            {"worker": lambda: world.kill_worker(0), "web": world.kill_web,
             "database": world.kill_database}[kind]()  # fmt: skip
            wait(world.is_ready, _READY_WITHIN_S, f"not ready after a kill of {kind}")
            tally.note(f"{kind} killed while people work", recovery_s=time.monotonic() - began)
            assert [one.failure for one in people if one.failure] == []
        before = [one.done for one in people]
        wait(
            lambda: all(one.done > count + 5 for one, count in zip(people, before, strict=True)),
            _READY_WITHIN_S,
            "people do not go on",
        )
    finally:
        for person in people:
            person.stopping.set()
        for person in people:
            person.join(_READY_WITHIN_S)
    assert [one.failure for one in people if one.failure] == []
    wait(lambda: world.unfinished() == 0, _READY_WITHIN_S, "a document is not finished")
    for person in people:
        person.check()
    print(f"{sum(p.done for p in people)} actions, {sum(len(p.refusals) for p in people)} retries")  # noqa: T201
