"""Whether something that searches depend on answers, told at once and looked at aside.

Searches see it when they ask it. Where none does, what was seen grows old: it may have come back,
or gone, without anybody noticing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock, Thread

import structlog

from portal.domain.sightings import Seen
from portal.errors import PortalError

log = structlog.get_logger(__name__)

# What failed is soon looked at again, so that nobody repairs what is in order already; what answers
# may be somebody else's server, which is not to be asked for nothing all the time.
FAILED_FOR_S = 10.0
WELL_FOR_S = 60.0
# Models come and go; their names are few.
_MAX_NAMES = 32


class Watch:
    """Looks at one thing at a time, in a thread, and only when somebody wants to know. Safe between
    threads. `clock` is monotonic seconds."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._own: dict[str, Seen] = {}
        self._look: Thread | None = None

    def is_well(
        self, name: str, seen: Seen | None, look: Callable[[], None], *, at_first: bool = False
    ) -> bool:
        """What was seen last of `name`, by others (`seen`) or by a look of this watch; well where
        nothing was. Where that is old `look` is begun, and whoever asks next gets what came of it;
        where nothing was seen only if `at_first` says so: loading a model for the first time keeps
        the whole process busy.
        """
        with self._lock:
            both = [one for one in (seen, self._own.get(name)) if one is not None]
            newest = max(both, key=lambda one: one.at, default=None)
            is_due = at_first if newest is None else self._is_old(newest)
            if is_due and not (self._look is not None and self._look.is_alive()):
                # A daemon, so that a look that hangs does not keep the process alive.
                self._look = Thread(
                    target=self._run, args=(name, look), name="model-look", daemon=True
                )
                self._look.start()
        return newest is None or newest.is_well

    def _is_old(self, seen: Seen) -> bool:
        return self._clock() - seen.at >= (WELL_FOR_S if seen.is_well else FAILED_FOR_S)

    def _run(self, name: str, look: Callable[[], None]) -> None:
        is_well = False
        try:
            look()
            is_well = True
        except PortalError as error:
            log.info("model_looked_at_in_vain", model=name, code=error.code)
        except Exception as error:  # noqa: BLE001 - whatever it is, the model cannot be used
            log.warning("model_looked_at_in_vain", model=name, error_type=type(error).__name__)
        with self._lock:
            if len(self._own) >= _MAX_NAMES:
                self._own.clear()
            self._own[name] = Seen(is_well, self._clock())
