"""Health of what searches depend on: the last known state at once, a fresh one in the background.

Searches note how each of their calls ended. Without searches that state grows stale, so it is
refreshed by a probe.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock, Thread

import structlog

from portal.domain.health import HealthSample
from portal.errors import PortalError

log = structlog.get_logger(__name__)

# Failures are probed again soon, since they may be over; healthy endpoints may be paid for by the
# request and are probed rarely.
FAILED_TTL_S = 10.0
HEALTHY_TTL_S = 60.0
_MAX_NAMES = 32


class HealthMonitor:
    """Runs one probe at a time, in a thread, and only on request. Thread-safe. `clock` is monotonic
    seconds."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._probed: dict[str, HealthSample] = {}
        self._probe: Thread | None = None

    def is_healthy(
        self,
        name: str,
        used: HealthSample | None,
        probe: Callable[[], None],
        *,
        at_first: bool = False,
    ) -> bool:
        """Return the last known health of `name`, by use (`used`) or a probe; healthy if unknown.
        Starts `probe` when that state is stale, for the next caller. An unknown state is probed
        only with `at_first`, since loading a model keeps the process busy."""
        with self._lock:
            both = [sample for sample in (used, self._probed.get(name)) if sample is not None]
            newest = max(both, key=lambda one: one.at, default=None)
            is_due = at_first
            if newest is not None:
                ttl_s = HEALTHY_TTL_S if newest.ok else FAILED_TTL_S
                is_due = self._clock() - newest.at >= ttl_s
            if is_due and not (self._probe is not None and self._probe.is_alive()):
                # A daemon, so that a probe that hangs does not keep the process alive.
                self._probe = Thread(
                    target=self._run, args=(name, probe), name="model-probe", daemon=True
                )
                self._probe.start()
        return newest is None or newest.ok

    def _run(self, name: str, probe: Callable[[], None]) -> None:
        ok = False
        try:
            probe()
            ok = True
        except PortalError as error:
            log.info("model_probe_failed", model=name, code=error.code)
        except Exception as error:  # noqa: BLE001 - any failure makes the model unusable
            log.warning("model_probe_failed", model=name, error_type=type(error).__name__)
        with self._lock:
            if len(self._probed) >= _MAX_NAMES:
                self._probed.clear()
            self._probed[name] = HealthSample(ok, self._clock())
