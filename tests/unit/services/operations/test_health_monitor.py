"""A health sample is valid for a while; then one probe runs in the background."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from portal.domain.health import HealthSample
from portal.errors import EmbedderUnavailable
from portal.services.operations.health_monitor import FAILED_TTL_S, HEALTHY_TTL_S, HealthMonitor
from tests.factories.servers.endpoint import wait_until


class Model:
    """Counts probes, which wait for `gate` and raise `error`."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.probes = 0
        self.gate = threading.Event()
        self.gate.set()

    def probe(self) -> None:
        self.probes += 1
        self.gate.wait(20)
        if self.error:
            raise self.error


def wait_for_probe(ask: Callable[[], bool], *, ok: bool) -> None:
    wait_until(lambda: ask() is ok, within_s=20, complaint="the probe changed nothing")


def test_failed_model_is_probed_again_after_its_ttl() -> None:
    now, model = [100.0], Model()
    monitor = HealthMonitor(clock=lambda: now[0])
    failed = HealthSample(ok=False, at=100.0)
    now[0] += FAILED_TTL_S - 1
    assert not monitor.is_healthy("m", failed, model.probe)
    assert model.probes == 0
    now[0] += 1
    assert not monitor.is_healthy("m", failed, model.probe)
    wait_for_probe(lambda: monitor.is_healthy("m", failed, model.probe), ok=True)
    now[0] += HEALTHY_TTL_S - 1
    assert monitor.is_healthy("m", failed, model.probe)
    assert model.probes == 1


def test_healthy_model_is_probed_again_after_its_ttl() -> None:
    now, model = [100.0], Model(EmbedderUnavailable(reason="gone"))
    monitor = HealthMonitor(clock=lambda: now[0])
    healthy = HealthSample(ok=True, at=100.0)
    now[0] += HEALTHY_TTL_S
    assert monitor.is_healthy("m", healthy, model.probe)
    wait_for_probe(lambda: monitor.is_healthy("m", healthy, model.probe), ok=False)
    # A search has succeeded since.
    assert monitor.is_healthy("m", HealthSample(ok=True, at=now[0] + 1), model.probe)


def test_hanging_probe_delays_no_caller_and_stays_the_only_one() -> None:
    monitor, model = HealthMonitor(), Model()
    model.gate.clear()
    started = time.monotonic()
    for number in range(50):
        assert monitor.is_healthy(f"model {number % 3}", None, model.probe, at_first=True)
    assert time.monotonic() - started < 10
    assert model.probes == 1
    model.gate.set()


def test_any_exception_of_a_probe_means_unhealthy() -> None:
    monitor, model = HealthMonitor(), Model(ZeroDivisionError())
    wait_for_probe(lambda: monitor.is_healthy("m", None, model.probe, at_first=True), ok=False)


def test_unknown_model_is_not_probed_by_default() -> None:
    monitor, model = HealthMonitor(), Model()
    assert monitor.is_healthy("m", None, model.probe)
    assert model.probes == 0
