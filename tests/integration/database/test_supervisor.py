"""`portal serve` from the command line: start, supervision, stop and kill."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from portal.database.embedded import EmbeddedPostgres
from portal.database.server.postmaster import running_postmaster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

STOP_TIMEOUT_S = 20


def command(data_dir: Path, *arguments: str) -> list[str]:
    code = "import sys; from portal.processes.cli import main; sys.exit(main())"
    return [sys.executable, "-c", code, "serve", "--data-dir", str(data_dir), *arguments]


@contextmanager
def portal(data_dir: Path) -> Iterator[tuple[subprocess.Popen[str], str, list[str]]]:
    """Start a portal; yield its process, its address and the lines printed until it was ready."""
    environment = os.environ | {"PORTAL_EMBEDDING__PROVIDER": "hashing"}
    environment.pop("DATABASE_URL", None)
    with subprocess.Popen(
        command(data_dir, "--port", "0"), stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            assert process.stdout is not None
            printed: list[str] = []
            for line in process.stdout:
                printed.append(line.strip())
                if line.startswith("Stop with"):
                    break
            ready = next(line for line in printed if line.startswith("The portal is ready:"))
            yield process, ready.split()[-1], printed
        finally:
            process.kill()
            process.stdout.close()


def get(address: str) -> int:
    try:
        with urllib.request.urlopen(f"{address}/health", timeout=60) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code


def eventually(holds: Callable[[], bool], timeout_s: float = 90.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline
        threading.Event().wait(0.2)


def test_supervisor_restarts_dead_children_leaves_none_behind_and_stops_cleanly(
    tmp_path: Path,
) -> None:
    with portal(tmp_path) as (process, address, printed):
        assert get(address) == 200
        password = next(line for line in printed if line.startswith("Password:"))

        second = subprocess.run(
            command(tmp_path, "--port", "0"), check=False, capture_output=True, text=True
        )
        assert second.returncode == 1
        assert f"process {process.pid}" in second.stderr
        assert address in second.stderr
        assert "Traceback" not in second.stderr

        web = next(
            p for p in psutil.Process(process.pid).children() if "gunicorn" in str(p.cmdline())
        )
        web.kill()
        # The supervisor holds the socket, so this request waits for the new process.
        assert get(address) == 200

        server = EmbeddedPostgres(tmp_path)
        found = running_postmaster(server.cluster)
        assert found is not None
        os.kill(found.pid, signal.SIGKILL)
        eventually(lambda: found not in (None, running_postmaster(server.cluster)))
        eventually(lambda: server.is_running() and get(address) == 200)

        children = psutil.Process(process.pid).children(recursive=True)
        assert children
        process.kill()
        _, alive = psutil.wait_procs(children, timeout=STOP_TIMEOUT_S)
        assert alive == []
    assert server.is_running(), "the database outlives a killed supervisor, and is joined"
    with portal(tmp_path) as (process, address, printed):
        assert get(address) == 200
        assert password not in printed, "the password is printed once only"
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOP_TIMEOUT_S) == 0
    assert not server.is_running()


def test_taken_port_is_reported_in_one_clear_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = subprocess.run(
            command(tmp_path, "--port", port), check=False, capture_output=True, text=True
        )
    assert done.returncode == 1
    assert len(done.stderr.strip().splitlines()) == 1
    assert f"127.0.0.1:{port}" in done.stderr
    assert "--port" in done.stderr
