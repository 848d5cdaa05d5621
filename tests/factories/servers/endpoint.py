"""A fake embeddings endpoint over a real socket, with scripted behaviour."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from portal.embeddings.providers.hashing import HashingEmbedder
from tests.factories.servers import running

# Between two bytes of a trickling endpoint, so that no single read takes long.
DRIP_S = 0.05


@dataclass
class Reply:
    """A response sent once instead of vectors."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def content(self) -> bytes:
        if isinstance(self.body, bytes):
            return self.body
        return json.dumps(self.body).encode()


@dataclass
class FakeEndpoint:
    """Gives each of `replies` to one request, and `always` to all others; without either it answers
    with vectors, in which texts that share words are near. `trickle` is ``headers`` or ``body``:
    that part of each response comes byte by byte. `requests` are (path, headers, body)."""

    dimensions: int = 4
    delay_s: float = 0.0
    trickle: str = ""
    replies: list[Reply] = field(default_factory=list)
    always: Reply | None = None
    requests: list[tuple[str, dict[str, str], dict[str, Any]]] = field(default_factory=list)
    url: str = ""
    port: int = 0
    closing: threading.Event = field(default_factory=threading.Event)

    def reply(self, texts: list[str]) -> Reply:
        if self.replies:
            return self.replies.pop(0)
        if self.always is not None:
            return self.always
        vectors = HashingEmbedder(dimensions=self.dimensions).embed_chunks(texts)
        rows = [
            {"object": "embedding", "index": index, "embedding": vector.tolist()}
            for index, vector in enumerate(vectors)
        ]
        # Out of order on purpose: clients must use `index`.
        return Reply(body={"object": "list", "data": rows[::-1], "model": "fake"})


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # Connections are persistent, as with real endpoints.
    endpoint: FakeEndpoint

    def do_POST(self) -> None:
        endpoint = self.endpoint
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        endpoint.requests.append((self.path, dict(self.headers), body))
        endpoint.closing.wait(endpoint.delay_s)
        reply = endpoint.reply(body["input"])
        content = reply.content
        lines = [f"HTTP/1.1 {reply.status} Said", f"Content-Length: {len(content)}"]
        headers = {"Content-Type": "application/json"} | reply.headers
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self._send("\r\n".join([*lines, "", ""]).encode(), drip=endpoint.trickle == "headers")
        self._send(content, drip=endpoint.trickle == "body")

    def _send(self, content: bytes, *, drip: bool) -> None:
        if not drip:
            self.wfile.write(content)
            return
        for place in range(len(content)):
            if self.endpoint.closing.wait(DRIP_S):
                return
            self.wfile.write(content[place : place + 1])

    def log_message(self, *_: Any) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.connections: list[socket.socket] = []

    def process_request(self, request: Any, client_address: Any) -> None:
        self.connections.append(request)
        super().process_request(request, client_address)

    def server_close(self) -> None:
        """Close the persistent connections too, like a process that exits."""
        super().server_close()
        for connection in self.connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, *_: Any) -> None:
        """Ignore clients that gave up, which are expected."""


@contextmanager
def fake_endpoint(*, port: int = 0, **behaviour: Any) -> Iterator[FakeEndpoint]:
    """Serve until the end of the block; then the port is closed and may be reused."""
    endpoint = FakeEndpoint(**behaviour)
    handler = type("Handler", (_Handler,), {"endpoint": endpoint})
    server = _Server(("127.0.0.1", port), handler)
    endpoint.port = server.server_address[1]
    endpoint.url = f"http://127.0.0.1:{endpoint.port}/v1"
    with running(server):
        try:
            yield endpoint
        finally:
            endpoint.closing.set()


def dead_port() -> int:
    """Return a port on which nothing listens."""
    with fake_endpoint() as endpoint:
        return endpoint.port


def wait_until(condition: Any, *, within_s: float, complaint: str, every_s: float = 0.02) -> None:
    """Poll until `condition()` holds."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, complaint
        time.sleep(every_s)


def wait(condition: Any, timeout_s: float, complaint: str) -> None:
    """Poll the progress of another process."""
    wait_until(condition, within_s=timeout_s, complaint=complaint, every_s=0.1)
