"""`gunicorn wsgi:app` in its own processes, as in a deployment on several machines."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx

from bench.cluster.programs import free_port
from portal.settings import Settings

_PROJECT = Path(__file__).parents[3]
_START_TIMEOUT_S = 120.0


@contextmanager
def web_process(settings: Settings, data_dir: Path, **environment: str) -> Iterator[str]:
    """Run the web server with the database, model and key of `settings`; yield its address."""
    port = free_port()
    assert settings.secret_key is not None
    process = subprocess.Popen(
        [sys.executable, "-m", "gunicorn", "wsgi:app", "--bind", f"127.0.0.1:{port}"],
        cwd=_PROJECT,
        env=os.environ
        | {
            "DATABASE_URL": str(settings.database_url),
            "PORTAL_DATA_DIR": str(data_dir),
            "PORTAL_SECRET_KEY": settings.secret_key.get_secret_value(),
            "PORTAL_EMBEDDING__PROVIDER": settings.embedding.provider,
            "PORTAL_LOG_LEVEL": "error",
        }
        | environment,
    )
    address = f"http://127.0.0.1:{port}"
    try:
        _wait_until_ready(process, address)
        yield address
    finally:
        process.terminate()
        process.wait(timeout=60)


def _wait_until_ready(process: subprocess.Popen[bytes], address: str) -> None:
    deadline = time.monotonic() + _START_TIMEOUT_S
    with httpx.Client(base_url=address, timeout=5) as client:
        while True:
            assert process.poll() is None, "the web server ended"
            assert time.monotonic() < deadline, "the web server did not start"
            with suppress(httpx.TransportError):
                if client.get("/health").status_code == httpx.codes.OK:
                    return
            time.sleep(0.05)  # Whether a port is open can only be polled.
