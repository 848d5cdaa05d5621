"""`portal serve`: one process that starts everything the portal needs, and stops it again.

It starts PostgreSQL (embedded, unless DATABASE_URL is set), the web process, which is gunicorn with
threads, and the workers.

The supervisor holds the listening socket, so that a port in use is noticed before anything starts,
and no request is refused while a web process restarts.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import structlog

from portal.database.embedded import EmbeddedPostgres
from portal.database.lock import DataDirLock
from portal.errors import ServerSetup
from portal.observability import metric_files
from portal.processes.serving import web_server
from portal.processes.serving.children import FIRST_BACKOFF_S, MAX_BACKOFF_S, Child
from portal.settings import Settings

_READY_TIMEOUT_S = 90.0
_WATCH_INTERVAL_S = 0.5

log = structlog.get_logger(__name__)


def say(message: str) -> None:
    print(message, flush=True)


@dataclass
class SupervisedDatabase:
    """The embedded server, which is restarted if it dies.

    `on_restart` runs right after each restart, before a timer would notice it.
    """

    server: EmbeddedPostgres
    on_restart: Callable[[], None]
    backoff_s: float = field(default=FIRST_BACKOFF_S, init=False)
    restart_at: float = field(default=0.0, init=False)

    def keep_alive(self) -> None:
        if time.monotonic() < self.restart_at or self.server.is_running():
            return
        log.error("the database server died; starting it again")
        self.restart_at = time.monotonic() + self.backoff_s
        self.backoff_s = min(self.backoff_s * 2, MAX_BACKOFF_S)
        try:
            self.server.start()
            self.on_restart()
            self.backoff_s = FIRST_BACKOFF_S
        except Exception as error:  # noqa: BLE001 - the next round retries after any error
            log.error("the database server does not start", reason=str(error))


def serve(settings: Settings, *, host: str, port: int, workers: int) -> int:
    """Serve until SIGINT or SIGTERM; return 0. Raises ServerSetup if the portal cannot start."""
    # Skip the garbage collection at exit, as the children do.
    atexit.register(gc.freeze)
    data_dir = settings.data_dir.expanduser().resolve()
    stopping = threading.Event()
    starting = True

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        stopping.set()
        if starting:
            raise KeyboardInterrupt

    with ExitStack() as stack:
        for number in (signal.SIGINT, signal.SIGTERM):
            previous = signal.signal(number, on_signal)
            stack.callback(signal.signal, number, previous)
        try:
            lock = _take_lock(data_dir, stack)
            # The supervisor outlives the processes that it starts, so it keeps their counts.
            stack.enter_context(metric_files.joined(data_dir))
            listener = stack.enter_context(web_server.listen(host, port))
            kept: list[SupervisedDatabase | Child] = []
            url = settings.database_url
            if url is None:
                server = EmbeddedPostgres(data_dir, report=lambda message: say(f"  {message} …"))
                # Registered before the start, which may be interrupted when the server runs.
                stack.callback(server.stop)
                url = server.start()
                kept.append(SupervisedDatabase(server, lambda: _rebuild_keyword_index(settings)))
            settings = settings.model_copy(update={"database_url": url, "data_dir": data_dir})
            administrator = _prepare(settings)
            children = _children(settings, listener, workers)
            stack.callback(_stop, children)
            kept += children
            address = web_server.address_of(listener)
            _start(children, listener, stopping)
        except KeyboardInterrupt:
            say("Stopping before the start was complete.")
            return 0
        lock.announce(address)
        starting = False
        _print_address(address, administrator, settings)
        while not stopping.wait(_WATCH_INTERVAL_S):
            for process in kept:
                process.keep_alive()
        say("Stopping: requests in hand are finished first.")
    say("Stopped.")
    return 0


def _take_lock(data_dir: Path, stack: ExitStack) -> DataDirLock:
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        return stack.enter_context(DataDirLock(data_dir))
    except OSError as error:
        raise ServerSetup(
            f"The data directory {data_dir} cannot be written ({error.strerror}). Give it "
            "to the user who starts the portal, or choose another with --data-dir."
        ) from error


def _prepare(settings: Settings) -> tuple[str, str] | None:
    """Migrate the database; return the name and password of a new first administrator."""
    from portal.container import opened_services
    from portal.services.operations import setup
    from portal.services.people import accounts

    say("  bringing the database up to date …")
    with opened_services(settings) as services:
        for line in setup.prepare_database(services):
            say(f"  {line}")
        return accounts.ensure_first_administrator(services)


def _rebuild_keyword_index(settings: Settings) -> None:
    """Rebuild a small keyword index, since early versions of pg_textsearch lose it at a restart; a
    large one is left to a worker."""
    from portal.container import opened_services
    from portal.services.operations import setup

    with opened_services(settings) as services:
        setup.prepare_keyword_index(services)


def _children(settings: Settings, listener: socket.socket, workers: int) -> list[Child]:
    environment = os.environ | web_server.child_environment(settings, settings.database_url or "")
    cores = os.cpu_count() or 1

    def with_threads(threads: int) -> dict[str, str]:
        # Otherwise each process with a model uses every core for one vector, and they compete.
        return {"OMP_NUM_THREADS": str(max(1, threads))} | environment

    descriptor = listener.fileno()
    arguments = web_server.gunicorn_arguments(f"fd://{descriptor}", settings)
    web = ["gunicorn.app.wsgiapp:run", *arguments]
    worker = ["portal.processes.cli:main", "worker"]
    return [
        Child("web", web, with_threads(min(cores, 2)), pass_fds=(descriptor,)),
        *(
            Child(f"worker {number}", worker, with_threads(cores // max(1, workers)))
            for number in range(1, workers + 1)
        ),
    ]


def _start(children: list[Child], listener: socket.socket, stopping: threading.Event) -> None:
    """Start the children and wait for the web server. Raises ServerSetup if it does not respond."""
    say("  starting the web server and the workers …")
    for child in children:
        child.start()
    web = children[0]
    deadline = time.monotonic() + _READY_TIMEOUT_S
    while not web_server.answers(listener):
        if not web.is_running:
            raise ServerSetup("The web server ended while it started; it says why above.")
        if time.monotonic() > deadline:
            raise ServerSetup(
                f"The web server did not answer within {_READY_TIMEOUT_S:.0f} seconds. "
                "Run portal doctor to see what is missing."
            )
        stopping.wait(0.2)


def _print_address(address: str, administrator: tuple[str, str] | None, settings: Settings) -> None:
    say(f"\nThe portal is ready: {address}")
    if administrator is not None:
        name, password = administrator
        say(f"Sign in as:  {name}")
        if settings.admin_password:  # Not empty.
            say("Password:    the one in PORTAL_ADMIN_PASSWORD")
        else:
            say(f"Password:    {password}   (shown this once; change it on the account page)")
    say("Stop with Ctrl-C.\n")


def _stop(children: list[Child]) -> None:
    """Wait for running requests and jobs, then kill what is left."""
    for child in children:
        child.signal(signal.SIGTERM)
    deadline = time.monotonic() + web_server.DRAIN_TIMEOUT_S
    for child in children:
        if child.process is not None:
            try:
                child.process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                log.warning("process did not end in time", process=child.name)
                child.kill_group()
