"""Clients that send or read slowly or not at all, over real sockets."""

from __future__ import annotations

import http.client
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

ATTACKER = "127.0.0.1"
OTHER_ADDRESS = "127.0.0.2"
TIMEOUT_S = 30.0
# Nothing at all, an unfinished request head, an unfinished body.
NOTHING = b""
PART_OF_A_HEAD = b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: a"


def head(path: str, *lines: str, method: str = "POST") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: localhost", *lines, "", ""]).encode()


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes
    seconds: float


def connect(address: str, source: str = ATTACKER) -> socket.socket:
    parts = urlsplit(address)
    assert parts.hostname is not None
    assert parts.port is not None
    return socket.create_connection(
        (parts.hostname, parts.port), timeout=TIMEOUT_S, source_address=(source, 0)
    )


@contextmanager
def stalled(
    address: str, count: int, sent: bytes, *, source: str = ATTACKER
) -> Iterator[list[socket.socket]]:
    """Yield `count` connections that have sent this and send nothing more."""
    with ExitStack() as stack:
        connections = []
        for _ in range(count):
            connection = stack.enter_context(connect(address, source))
            connection.sendall(sent)
            connections.append(connection)
        yield connections


def ask(
    address: str,
    path: str,
    *,
    method: str = "GET",
    body: bytes | None = None,
    headers: dict[str, str] | None = None,
    source: str = OTHER_ADDRESS,
) -> Answer:
    """Send a request on a new connection; return the response and the seconds taken."""
    parts = urlsplit(address)
    started = time.perf_counter()
    connection = http.client.HTTPConnection(
        str(parts.hostname), parts.port, timeout=TIMEOUT_S, source_address=(source, 0)
    )
    try:
        connection.request(method, path, body=body, headers=headers or {})
        answer = connection.getresponse()
        content = answer.read()
    finally:
        connection.close()
    return Answer(answer.status, content, time.perf_counter() - started)


def read_status(connection: socket.socket) -> int | None:
    """Return the status of a connection's response; None if it is closed without one."""
    try:
        line = connection.makefile("rb").readline()
    except ConnectionResetError:
        return None
    return int(line.split()[1]) if line else None
