"""A portal in processes of its own, each of which can be killed and is started again at once."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import psutil
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from bench.cluster.programs import free_port
from portal.container import build_services
from portal.database.embedded import EmbeddedPostgres
from portal.errors import PortalError
from portal.services import Services
from portal.services.operations import setup
from portal.services.people import accounts, sessions
from portal.settings import Settings
from tests.conftest import SERVER, make_settings
from tests.factories.servers.endpoint import wait

_PROJECT = Path(__file__).parents[2]
_PORTAL = [sys.executable, "-c", "from portal.processes.cli import main; main()"]
_POLL_S = 0.05
_TOKEN_S = 4 * 3600
_START_TIMEOUT_S = 120.0

# Everything that an ingestion leaves of a document, vectors included.
_LEFT = """
    SELECT d.title, c.chunk_index, c.content, c.char_start, c.char_end, c.page, c.heading, c.terms,
           CAST(e.embedding AS text)
    FROM documents d
    JOIN document_chunks c ON c.document_id = d.id
    LEFT JOIN chunk_embeddings e ON e.chunk_id = c.id
    ORDER BY d.title, c.chunk_index
"""


class World:
    """A database server, a web server and workers."""

    def __init__(
        self, data_dir: Path, *, workers: int, environment: Mapping[str, str] | None = None
    ) -> None:
        """Start all of them, the portal's processes with `environment` added to theirs."""
        self.data_dir = data_dir
        self._added = dict(environment or {})
        # A killed server loses nothing of what the system has, only a machine that fails would;
        # but it must have handed it over before it says that a transaction is committed.
        self.server = EmbeddedPostgres(
            data_dir, extra_settings=SERVER | {"synchronous_commit": "on"}
        )
        self.settings: Settings = make_settings(data_dir, self.server.start())
        self.services: Services = build_services(self.settings)
        list(setup.prepare_database(self.services))
        accounts.ensure_first_administrator(self.services)
        self.admin = accounts.find_user(self.services, "admin")
        self.port = free_port()
        token = sessions.token_for(self.services, self.admin, ttl_s=_TOKEN_S)
        self.client = httpx.Client(
            base_url=f"http://127.0.0.1:{self.port}",
            headers={"Authorization": f"Bearer {token}"},
            timeout=30,
        )
        self.web = self._start_web()
        self.workers = [self._start_worker() for _ in range(workers)]
        wait(self.answers, _START_TIMEOUT_S, "the web server did not start")

    def answers(self) -> bool:
        assert self.web.poll() is None, "the web server ended"
        with contextlib.suppress(httpx.TransportError):
            return self.client.get("/health/live").status_code == httpx.codes.OK
        return False

    def is_ready(self) -> bool:
        with contextlib.suppress(httpx.TransportError):
            return self.client.get("/health").status_code == httpx.codes.OK
        return False

    def restart_with(self, environment: Mapping[str, str]) -> None:
        """End all processes of the portal, and start them with other additions."""
        self._added = dict(environment)
        for process in (self.web, *self.workers):
            _kill(process)
        self.web = self._start_web()
        self.workers = [self._start_worker() for _ in self.workers]

    def _start_web(self) -> subprocess.Popen[bytes]:
        bind = ["--bind", f"127.0.0.1:{self.port}", "--threads", "4"]
        return self._spawn([sys.executable, "-m", "gunicorn", "wsgi:app", *bind])

    def _start_worker(self) -> subprocess.Popen[bytes]:
        return self._spawn([*_PORTAL, "worker"])

    def _spawn(self, command: list[str]) -> subprocess.Popen[bytes]:
        assert self.settings.secret_key is not None
        environment = os.environ | {
            "DATABASE_URL": str(self.settings.database_url),
            "PORTAL_DATA_DIR": str(self.data_dir),
            "PORTAL_SECRET_KEY": self.settings.secret_key.get_secret_value(),
            "PORTAL_EMBEDDING__PROVIDER": "hashing",
            "PORTAL_RATE_LIMITS__ENABLED": "false",
            "PORTAL_LOG_LEVEL": "error",
            "OMP_NUM_THREADS": "1",
            **self._added,
        }
        return subprocess.Popen(
            command,
            cwd=_PROJECT,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    # --- faults -----------------------------------------------------------------------------

    def kill_worker(self, number: int) -> None:
        _kill(self.workers[number])
        self.workers[number] = self._start_worker()

    def kill_web(self) -> None:
        _kill(self.web)
        self.web = self._start_web()

    def kill_database(self) -> None:
        pid_file = self.data_dir / "postgres" / "postmaster.pid"
        psutil.Process(int(pid_file.read_text().splitlines()[0])).kill()
        wait(lambda: not self.server.is_running(), 30, "the database server did not die")
        self.server.start()

    def kill_worker_and_database(self, number: int) -> None:
        _kill(self.workers[number])
        self.kill_database()
        self.workers[number] = self._start_worker()

    def stop(self) -> None:
        for process in (self.web, *self.workers):
            _kill(process)
        self.client.close()
        self.services.database.dispose()
        self.server.stop()

    # --- what is there ----------------------------------------------------------------------

    def upload(self, name: str, content: bytes, *, until: threading.Event) -> str:
        """Upload until acknowledged, repeating lost requests as clients do; return the id."""
        while not until.is_set():
            with contextlib.suppress(httpx.TransportError):
                answer = self.client.post(
                    "/api/knowledge/documents",
                    files={"file": (name, content)},
                    headers={"Idempotency-Key": name},
                )
                if answer.status_code == httpx.codes.ACCEPTED:
                    return str(answer.json()["documents"][0]["id"])
                # The database or the first request is still being dealt with; nothing else.
                assert answer.status_code in {409, 503}, answer.text
            until.wait(0.2)
        raise AssertionError("the test ended before all was uploaded")

    def rows(self, statement: str) -> list[Any]:
        """Return what a statement finds, as soon as a server can be asked."""
        while True:
            try:
                with self.services.database.begin() as session:
                    return list(session.execute(text(statement)))
            except (PortalError, SQLAlchemyError):
                time.sleep(_POLL_S)  # Another process's progress can only be asked for.

    def attempts(self) -> int:
        """Return how many attempts at jobs have begun, which grows while a worker works."""
        return int(self.rows("SELECT coalesce(sum(attempts), 0) FROM jobs")[0][0])

    def unfinished(self) -> int:
        statement = "SELECT count(*) FROM documents WHERE status IN ('queued', 'processing')"
        return int(self.rows(statement)[0][0])

    def left(self) -> list[Any]:
        return self.rows(_LEFT)


def undisturbed(services: Services) -> list[Any]:
    """Return what the same ingestion leaves where nothing dies."""
    with services.database.begin() as session:
        return list(session.execute(text(_LEFT)))


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and those it started with SIGKILL."""
    with contextlib.suppress(psutil.NoSuchProcess):
        ours = psutil.Process(process.pid)
        for one in [ours, *ours.children(recursive=True)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()
    process.wait()
