"""What was seen holds for a while; then one look is taken, aside, and nobody waits for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from portal.domain.sightings import Seen
from portal.errors import EmbedderUnavailable
from portal.services.operations.watch import FAILED_TTL_S, HEALTHY_TTL_S, Watch
from tests.factories.endpoint import wait_until


class Thing:
    """Counts looks, which wait for `gate` and raise `error`."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.looks = 0
        self.gate = threading.Event()
        self.gate.set()

    def look(self) -> None:
        self.looks += 1
        self.gate.wait(20)
        if self.error:
            raise self.error


def settled(ask: Callable[[], bool], *, is_well: bool) -> None:
    wait_until(lambda: ask() is is_well, within_s=5, complaint="the look told nothing")


def test_what_failed_is_looked_at_again_after_a_while_and_not_before() -> None:
    now, thing = [100.0], Thing()
    watch = Watch(clock=lambda: now[0])
    failed = Seen(is_well=False, at=100.0)
    now[0] += FAILED_TTL_S - 1
    assert not watch.is_well("m", failed, thing.look)
    assert thing.looks == 0
    now[0] += 1
    assert not watch.is_well("m", failed, thing.look)
    settled(lambda: watch.is_well("m", failed, thing.look), is_well=True)
    now[0] += HEALTHY_TTL_S - 1
    assert watch.is_well("m", failed, thing.look)
    assert thing.looks == 1


def test_what_answered_long_ago_is_looked_at_and_may_have_gone() -> None:
    now, thing = [100.0], Thing(EmbedderUnavailable(reason="gone"))
    watch = Watch(clock=lambda: now[0])
    well = Seen(is_well=True, at=100.0)
    now[0] += HEALTHY_TTL_S
    assert watch.is_well("m", well, thing.look)
    settled(lambda: watch.is_well("m", well, thing.look), is_well=False)
    # A search has had an answer since.
    assert watch.is_well("m", Seen(is_well=True, at=now[0] + 1), thing.look)


def test_a_look_that_hangs_holds_up_nobody_and_stays_the_only_one() -> None:
    watch, thing = Watch(), Thing()
    thing.gate.clear()
    started = time.monotonic()
    for number in range(50):
        assert watch.is_well(f"model {number % 3}", None, thing.look, at_first=True)
    assert time.monotonic() - started < 1
    assert thing.looks == 1
    thing.gate.set()


def test_whatever_a_look_raises_means_that_it_cannot_be_used() -> None:
    watch, thing = Watch(), Thing(ZeroDivisionError())
    settled(lambda: watch.is_well("m", None, thing.look, at_first=True), is_well=False)


def test_nothing_is_loaded_for_the_first_time_unless_that_is_cheap() -> None:
    watch, thing = Watch(), Thing()
    assert watch.is_well("m", None, thing.look)
    assert thing.looks == 0
