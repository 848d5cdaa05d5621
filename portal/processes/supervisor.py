"""`portal serve`: one process that starts everything the portal needs, and stops it again.

::

supervisor ── PostgreSQL (embedded, unless DATABASE_URL is set) ├─ web: gunicorn, one process with
threads, on a socket that the supervisor holds └─ workers

The supervisor holds the listening socket, so that a taken port shows before anything starts and no
request is refused while a web process restarts.
"""

from __future__ import annotations

import ctypes
import http.client
import importlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import structlog

from portal.database.embedded import EmbeddedPostgres
from portal.database.lock import DataDirLock
from portal.errors import ServerSetup
from portal.observability import logs, metric_files
from portal.settings import Settings

PROJECT_DIR = Path(__file__).resolve().parents[2]

_READY_TIMEOUT_S = 90.0
_DRAIN_TIMEOUT_S = 10.0
_WATCH_INTERVAL_S = 0.5
_BACKOFF_FIRST_S = 1.0
_MAX_BACKOFF_S = 30.0
# A process that lived this long did not die of its start.
_SETTLED_AFTER_S = 60.0
_PR_SET_PDEATHSIG = 1  # linux/prctl.h

log = structlog.get_logger(__name__)


def say(message: str) -> None:
    print(message, flush=True)


@dataclass
class Child:
    """A child process that runs as long as the supervisor."""

    name: str
    command: Sequence[str]
    environment: dict[str, str]
    pass_fds: tuple[int, ...] = ()
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    started_at: float = field(default=0.0, init=False)
    backoff_s: float = field(default=_BACKOFF_FIRST_S, init=False)
    restart_at: float | None = field(default=None, init=False)

    def start(self) -> None:
        self.started_at, self.restart_at = time.monotonic(), None
        self.process = subprocess.Popen(
            [sys.executable, "-m", "portal.processes.supervisor", str(os.getpid()), *self.command],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            pass_fds=self.pass_fds,
            # Ctrl-C in a terminal goes to a whole group; the supervisor says who stops when.
            start_new_session=True,
        )

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def keep_alive(self) -> None:
        """Restart the process if it died, after a longer delay each time it dies young."""
        if self.is_running:
            return
        now = time.monotonic()
        if self.restart_at is None:
            if now - self.started_at > _SETTLED_AFTER_S:
                self.backoff_s = _BACKOFF_FIRST_S
            status = self.process.returncode if self.process else None
            log.error("process died", process=self.name, status=status, again_in_s=self.backoff_s)
            self.restart_at = now + self.backoff_s
            self.backoff_s = min(self.backoff_s * 2, _MAX_BACKOFF_S)
        elif now >= self.restart_at:
            self.start()

    def signal(self, number: int) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)

    def kill_group(self) -> None:
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


@dataclass
class SupervisedDatabase:
    """The embedded server, restarted when it was killed.

    `on_restart` runs after each restart, before a timer would notice.
    """

    server: EmbeddedPostgres
    on_restart: Callable[[], None]
    backoff_s: float = field(default=_BACKOFF_FIRST_S, init=False)
    restart_at: float = field(default=0.0, init=False)

    def keep_alive(self) -> None:
        if time.monotonic() < self.restart_at or self.server.is_running():
            return
        log.error("the database server died; starting it again")
        self.restart_at = time.monotonic() + self.backoff_s
        self.backoff_s = min(self.backoff_s * 2, _MAX_BACKOFF_S)
        try:
            self.server.start()
            self.on_restart()
            self.backoff_s = _BACKOFF_FIRST_S
        except Exception as error:  # noqa: BLE001 - the next round retries after any error
            log.error("the database server does not start", reason=str(error))


def serve(
    settings: Settings,
    *,
    host: str,
    port: int,
    workers: int,
) -> int:
    """Serve until SIGINT or SIGTERM; return 0. Raises ServerSetup when it cannot start."""
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
            # The supervisor outlives each process that it starts, and so keeps their counts.
            stack.enter_context(metric_files.joined(data_dir))
            listener = stack.enter_context(listen(host, port))
            kept: list[SupervisedDatabase | Child] = []
            url = settings.database_url
            if url is None:
                server = EmbeddedPostgres(data_dir, report=lambda message: say(f"  {message} …"))
                # Registered first: an interrupted start may have got as far as a running server.
                stack.callback(server.stop)
                url = server.start()
                kept.append(SupervisedDatabase(server, lambda: _rebuild_keyword_index(settings)))
            settings = settings.model_copy(update={"database_url": url, "data_dir": data_dir})
            administrator = _prepare(settings)
            children = _children(settings, listener, workers)
            stack.callback(_stop, children)
            kept += children
            address = address_of(listener)
            _start(children, listener, stopping)
        except KeyboardInterrupt:
            say("Stopping before the start was complete.")
            return 0
        lock.announce(address)
        starting = False
        _print_address(address, administrator, settings)
        while not stopping.wait(_WATCH_INTERVAL_S):
            for one in kept:
                one.keep_alive()
        say("Stopping: requests in hand are finished first.")
    say("Stopped.")
    return 0


def run_web(settings: Settings, *, host: str, port: int) -> int:
    """Run the web in this process until a signal, for `portal web`."""
    url = settings.database_url or EmbeddedPostgres(settings.data_dir).url()
    os.environ |= _child_environment(settings, url)
    sys.argv = ["gunicorn", *_gunicorn_arguments(f"{host}:{port}", settings)]
    from gunicorn.app.wsgiapp import run

    run()
    return 0


def _take_lock(data_dir: Path, stack: ExitStack) -> DataDirLock:
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        return stack.enter_context(DataDirLock(data_dir))
    except OSError as error:
        raise ServerSetup(
            reason=f"The data directory {data_dir} cannot be written ({error.strerror}). Give it "
            "to the user who starts the portal, or choose another with --data-dir."
        ) from error


def listen(host: str, port: int) -> socket.socket:
    """Return a bound, inheritable socket. Raises ServerSetup when the address is not available."""
    try:
        family, *_, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.create_server(address[:2], family=family, backlog=2048)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ServerSetup(
            reason=f"The portal cannot listen on {host}:{port} ({reason}). Stop what uses it, "
            "or choose another with --host and --port."
        ) from error
    listener.set_inheritable(True)
    # Headers and body are sent one after the other: on a connection that stays open the second
    # would wait some forty milliseconds for the client to acknowledge the first.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def address_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _prepare(settings: Settings) -> tuple[str, str] | None:
    """Migrate the database; return name and password of a new first administrator."""
    from portal.container import build_services
    from portal.services.operations import setup
    from portal.services.people import accounts

    say("  bringing the database up to date …")
    services = build_services(settings)
    try:
        for line in setup.prepare_database(services):
            say(f"  {line}")
        return accounts.ensure_first_administrator(services)
    finally:
        services.database.dispose()


def _rebuild_keyword_index(settings: Settings) -> None:
    """Rebuild the BM25 index: early versions of pg_textsearch lose its statistics at a restart."""
    from portal.container import build_services
    from portal.services.operations import setup

    services = build_services(settings)
    try:
        setup.repair_keyword_index(services)
    finally:
        services.database.dispose()


def _child_environment(settings: Settings, url: str) -> dict[str, str]:
    return {
        "DATABASE_URL": url,
        "PORTAL_DATA_DIR": str(settings.data_dir),
        "PORTAL_WEB__REQUESTS_AT_ONCE": str(settings.web.requests_at_once),
        "PYTHONPATH": os.pathsep.join(
            filter(None, [str(PROJECT_DIR), os.environ.get("PYTHONPATH")])
        ),
    }


def _gunicorn_arguments(bind: str, settings: Settings) -> list[str]:
    drain_s = int(_DRAIN_TIMEOUT_S) - 2  # Gunicorn's own end comes before ours.
    return [
        *("wsgi:app", "--bind", bind, "--pythonpath", str(PROJECT_DIR)),
        *("--config", str(PROJECT_DIR / "gunicorn.conf.py")),
        # The longest that gunicorn offers: a Chinese question takes nine bytes a character.
        *("--limit-request-line", "8190"),
        *("--workers", "1"),
        *("--threads", str(settings.web_process_threads)),
        *("--graceful-timeout", str(drain_s), "--timeout", "120", "--keep-alive", "15"),
        *("--log-level", "warning", "--no-control-socket"),
    ]


def _children(settings: Settings, listener: socket.socket, workers: int) -> list[Child]:
    environment = os.environ | _child_environment(settings, settings.database_url or "")
    cores = os.cpu_count() or 1

    def with_threads(threads: int) -> dict[str, str]:
        # Each process with a model would take every core for one vector, and they would fight.
        return {"OMP_NUM_THREADS": str(max(1, threads))} | environment

    descriptor = listener.fileno()
    web = ["gunicorn.app.wsgiapp:run", *_gunicorn_arguments(f"fd://{descriptor}", settings)]
    worker = ["portal.processes.cli:main", "worker"]
    return [
        Child("web", web, with_threads(min(cores, 2)), pass_fds=(descriptor,)),
        *(
            Child(f"worker {number}", worker, with_threads(cores // max(1, workers)))
            for number in range(1, workers + 1)
        ),
    ]


def _start(children: list[Child], listener: socket.socket, stopping: threading.Event) -> None:
    """Start the children and wait until the web answers. Raises ServerSetup if it does not."""
    say("  starting the web server and the workers …")
    for child in children:
        child.start()
    web = children[0]
    deadline = time.monotonic() + _READY_TIMEOUT_S
    while not _answers(listener):
        if not web.is_running:
            raise ServerSetup(reason="The web server ended while it started; it says why above.")
        if time.monotonic() > deadline:
            raise ServerSetup(
                reason=f"The web server did not answer within {_READY_TIMEOUT_S:.0f} seconds. "
                "Run portal doctor to see what is missing."
            )
        stopping.wait(0.2)


def _answers(listener: socket.socket) -> bool:
    """Return whether /health reports that the portal is ready."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared only
    connection = http.client.HTTPConnection(host, port, timeout=5)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _print_address(address: str, administrator: tuple[str, str] | None, settings: Settings) -> None:
    say(f"\nThe portal is ready: {address}")
    if administrator is not None:
        name, password = administrator
        say(f"Sign in as:  {name}")
        if settings.admin_password is not None:
            say("Password:    the one in PORTAL_ADMIN_PASSWORD")
        else:
            say(f"Password:    {password}   (shown this once; change it on the account page)")
    say("Stop with Ctrl-C.\n")


def _stop(children: list[Child]) -> None:
    """Wait for running requests and jobs, then kill what is left."""
    for child in children:
        child.signal(signal.SIGTERM)
    deadline = time.monotonic() + _DRAIN_TIMEOUT_S
    for child in children:
        if child.process is not None:
            try:
                child.process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                log.warning("process did not end in time", process=child.name)
                child.kill_group()


# --- in the child ------------------------------------------------------------------------------


def run_child(supervisor_pid: int, entry: str, arguments: list[str]) -> None:
    """Run `module:function` as a command that ends with the supervisor."""
    _end_with(supervisor_pid)
    logs.log_uncaught()
    module, function = entry.split(":")
    sys.argv = [module, *arguments]
    sys.exit(getattr(importlib.import_module(module), function)())


def _end_with(supervisor_pid: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    else:
        threading.Thread(target=_watch_parent, args=(supervisor_pid,), daemon=True).start()
    if os.getppid() != supervisor_pid:  # It died before the line above.
        raise SystemExit(1)


def _watch_parent(supervisor_pid: int) -> None:
    while os.getppid() == supervisor_pid:
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    run_child(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
