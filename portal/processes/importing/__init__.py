"""`portal import`: progress, a line for each failure, and a summary. Safe to stop and repeat."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType

from rich.console import Console

from portal.domain.documents import Visibility
from portal.domain.people import User
from portal.errors import DatabaseUnavailable
from portal.processes.importing.display import Display
from portal.processes.importing.tally import Tally
from portal.processes.worker import has_live_workers, working
from portal.services import Services
from portal.services.documents.intake import importing
from portal.services.documents.intake.finding_files import find_files
from portal.services.documents.intake.importing import ImportedFile, unreadable
from portal.services.people import accounts

_POLL_S = 0.5
_LOOK_FOR_WORKERS_S = 5.0
# How long the database may be unavailable while documents are processed: a supervisor restarts it.
_OUTAGE_TIMEOUT_S = 60.0
_STOPPED_BY_SIGNAL = 128


class Stop(threading.Event):
    """Set to stop the import after the current file; `signal` is the one received."""

    signal: int | None = None


def import_and_wait(
    services: Services,
    paths: Sequence[Path],
    *,
    owner: str,
    domain: str | None,
    visibility: Visibility,
    into: str = "",
    wait: bool,
) -> int:
    """Import files and folders, and print the results.

    Return the exit status: 1 if something failed, 128 plus the signal's number if a signal stopped
    the import.
    """
    user = accounts.find_user(services, owner)
    tally = Tally()
    display = Display(Console(stderr=True), tally, reads=wait)
    with _stop_on_signals() as stop, ExitStack() as stack:
        stack.callback(_conclude, services, display, tally, stop)
        stack.enter_context(display.shown())
        run = _Import(services, user, tally, display, stop)
        if wait:
            stack.enter_context(run.workers)
        run.store(paths, domain=domain, visibility=visibility, into=into, follow=wait)
        if wait:
            run.wait()
    if stop.signal is not None:
        return _STOPPED_BY_SIGNAL + stop.signal
    return 1 if tally.failures else 0


def _conclude(services: Services, display: Display, tally: Tally, stop: Stop) -> None:
    display.summarise()
    if stop.is_set():
        display.say("Stopped. Run the same command again to continue.")
    elif tally.waiting and not has_live_workers(services):
        display.say("No worker is running: start the portal, or repeat this with --wait.")


class _Import:
    def __init__(
        self, services: Services, user: User, tally: Tally, display: Display, stop: Stop
    ) -> None:
        self._services, self._user = services, user
        self._tally, self._display, self._stop = tally, display, stop
        self._is_whole = False
        self._followed_at = time.monotonic()
        self.workers = _Workers(services)

    def store(
        self,
        paths: Sequence[Path],
        *,
        domain: str | None,
        visibility: Visibility,
        into: str,
        follow: bool,
    ) -> None:
        """Store the files that are found, while another thread counts them in advance."""
        threading.Thread(target=self._count, args=(paths,), daemon=True).start()
        gone: list[ImportedFile] = []
        found = find_files(
            paths, cannot_read=lambda path, error: gone.append(unreadable(path, error))
        )
        for file in importing.import_files(
            self._services,
            self._user,
            found,
            domain=domain,
            visibility=visibility,
            roots=paths,
            into=into,
        ):
            self._import_file(file)
            if self._stop.is_set():
                return
            if follow:
                self._poll()
            self._display.renew(is_whole=self._is_whole)
        for file in gone:
            self._import_file(file)
        self._tally.found, self._is_whole = self._tally.taken, True

    def _import_file(self, file: ImportedFile) -> None:
        if line := self._tally.take(file):
            self._display.say(line)

    def _count(self, paths: Sequence[Path]) -> None:
        for count, _ in enumerate(find_files(paths), 1):
            self._tally.found = max(self._tally.found, count)
            if self._stop.is_set():
                return
        self._is_whole = True

    def wait(self) -> None:
        """Wait until each document is ready or failed, or a signal arrives."""
        while not self._stop.is_set():
            self._follow()
            self._display.renew(is_whole=True)
            if not self._tally.waiting:
                return
            self._stop.wait(_POLL_S)

    def _poll(self) -> None:
        if time.monotonic() >= self._followed_at + _POLL_S:
            self._follow()

    def _follow(self) -> None:
        waiting = list(self._tally.waiting)
        try:
            self.workers.ensure_worker()
            found = importing.follow(self._services, self._user, waiting)
        except DatabaseUnavailable:
            if time.monotonic() > self._followed_at + _OUTAGE_TIMEOUT_S:
                raise
            return
        self._followed_at = time.monotonic()
        for line in self._tally.follow(found):
            self._display.say(line)


class _Workers:
    """The workers of a running portal, else one that is started in this process."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._stack = ExitStack()
        self._own: threading.Thread | None = None
        self._look_at = 0.0

    def __enter__(self) -> _Workers:
        self.ensure_worker()
        return self

    def __exit__(self, *_raised: object) -> None:
        self._stack.close()

    def ensure_worker(self) -> None:
        """Start a worker if none is running; a killed one is noticed after a while."""
        if time.monotonic() < self._look_at or (self._own is not None and self._own.is_alive()):
            return
        self._look_at = time.monotonic() + _LOOK_FOR_WORKERS_S
        if not has_live_workers(self._services):
            self._own = self._stack.enter_context(working(self._services))


@contextmanager
def _stop_on_signals() -> Iterator[Stop]:
    """Yield an event that the first SIGINT or SIGTERM sets; a second one ends the process."""
    stop = Stop()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def note(number: int, _frame: FrameType | None) -> None:
        for one, handler in before.items():
            signal.signal(one, handler)
        stop.signal = number
        stop.set()

    for number in before:
        signal.signal(number, note)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
