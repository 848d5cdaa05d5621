"""Lines that gunicorn logs outside a request carry no request id."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.cluster.programs import free_port
from tests.conftest import Portal

ROOT = Path(__file__).parents[4]


def exchange(port: int, sent: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(sent)
        received = b""
        while block := connection.recv(65536):
            received += block
        return received


@pytest.mark.timeout(200)
def test_malformed_request_is_logged_without_another_requests_id(
    portal: Portal, tmp_path: Path
) -> None:
    settings = portal.services.settings
    port = free_port()
    environment = os.environ | {
        "DATABASE_URL": str(settings.database_url),
        "PORTAL_DATA_DIR": str(tmp_path),
        "PORTAL_EMBEDDING__PROVIDER": "hashing",
        "PORTAL_SECRET_KEY": "a key for tests that is long enough for HS256",
        "PORTAL_LOG_FORMAT": "json",
    }
    command = [sys.executable, "-m", "gunicorn", "wsgi:app", "--bind", f"127.0.0.1:{port}"]
    # With one thread, the next event is handled by the thread of the previous request.
    command += ["--threads", "1", "--no-control-socket", "--log-level", "warning"]
    with (
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen(command, cwd=ROOT, env=environment, stderr=log) as process,
    ):
        try:
            good = b"GET /nowhere HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            good += b"X-Request-ID: request-before-this\r\n\r\n"
            deadline = time.monotonic() + 100
            answer = b""
            while b"request-before-this" not in answer:
                assert time.monotonic() < deadline, "the server did not start"
                try:
                    answer = exchange(port, good)
                except OSError:
                    assert process.poll() is None
                    time.sleep(0.1)
            exchange(port, b"GET / HTTP/1.1\r\nHost: localhost\r\nBad Header: x\r\n\r\n")
        finally:
            process.terminate()
            process.wait(30)
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    (warning,) = [line for line in lines if "Invalid request" in line["event"]]
    assert "request_id" not in warning
    assert "trace_id" not in warning
    told = [line for line in lines if line["event"] == "request"]
    assert {line["request_id"] for line in told} == {"request-before-this"}
