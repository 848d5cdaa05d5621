"""A fake chat server with OpenAI's protocol and scripted behaviour."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.factories.servers import running


@dataclass(frozen=True)
class Pause:
    """Send nothing for this long, or until the test ends."""

    seconds: float = 3600.0


@dataclass(frozen=True)
class Until:
    """Send nothing until the test sets the event, or ends."""

    event: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True)
class Die:
    """Cut the connection, like a process that was killed."""


@dataclass(frozen=True)
class Hangup:
    """Close the connection properly, but before the answer is complete."""


@dataclass(frozen=True)
class Raw:
    """Send these bytes unchanged."""

    content: bytes


@dataclass(frozen=True)
class Call:
    """Call a tool, sending its arguments in two pieces."""

    query: str
    id: str = "call_a"
    name: str = "search"


@dataclass(frozen=True)
class Status:
    """Respond with an error status instead of a stream."""

    status: int
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Whole:
    """Respond in one piece, like a server that does not stream."""

    text: str


Step = str | Pause | Until | Die | Hangup | Raw | Call | Status | Whole


@dataclass
class FakeChat:
    """Plays one of `scripts` per request and repeats the last one. `requests` are (headers, body).
    `models` is the response to requests for the list of models, whole or in pieces, whose headers
    are in `listings`.
    `active` counts requests being answered, `left` those that the reader left before the end."""

    scripts: list[Sequence[Step]]
    requests: list[tuple[dict[str, str], dict[str, Any]]] = field(default_factory=list)
    models: Status | Sequence[Raw | Pause] = field(
        default_factory=lambda: Status(200, {"data": []})
    )
    listings: list[dict[str, str]] = field(default_factory=list)
    left: int = 0
    active: int = 0
    url: str = ""
    port: int = 0
    closing: threading.Event = field(default_factory=threading.Event)

    def script(self) -> Sequence[Step]:
        return self.scripts[min(len(self.requests), len(self.scripts)) - 1]


def _chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    body = {"object": "chat.completion.chunk", "choices": [choice]}
    return f"data: {json.dumps(body, ensure_ascii=False)}\n\n".encode()


class _Handler(BaseHTTPRequestHandler):
    chat: FakeChat

    def do_POST(self) -> None:
        chat = self.chat
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        chat.requests.append((dict(self.headers), body))
        chat.active += 1
        try:
            self._play(chat.script())
        except OSError:
            chat.left += 1
        finally:
            chat.active -= 1

    def do_GET(self) -> None:
        self.chat.listings.append(dict(self.headers))
        if isinstance(self.chat.models, Status):
            self._answer_whole(self.chat.models)
            return
        self.send_response(200)
        self.end_headers()
        with suppress(OSError):
            for step in self.chat.models:
                if isinstance(step, Raw):
                    self._send(step.content)
                else:
                    self._wait(step.seconds)

    def _play(self, script: Sequence[Step]) -> None:
        if script and isinstance(script[0], Status | Whole):
            self._answer_whole(script[0])
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self._send(_chunk({"role": "assistant", "content": ""}))
        has_called = False
        for step in script:
            if isinstance(step, Die):
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                self.connection.close()
                return
            if isinstance(step, Hangup):
                return
            if isinstance(step, Pause):
                self._wait(step.seconds)
            elif isinstance(step, Until):
                self._wait(Pause().seconds, until=step.event)
            elif isinstance(step, Raw):
                self._send(step.content)
            elif isinstance(step, Call):
                has_called = True
                self._call(step)
            elif isinstance(step, str):
                self._send(_chunk({"content": step}))
        self._send(_chunk({}, "tool_calls" if has_called else "stop") + b"data: [DONE]\n\n")

    def _call(self, call: Call) -> None:
        arguments = json.dumps({"query": call.query}, ensure_ascii=False)
        half = len(arguments) // 2
        head = {"index": 0, "id": call.id, "type": "function"}
        first = head | {"function": {"name": call.name, "arguments": arguments[:half]}}
        self._send(_chunk({"tool_calls": [first]}))
        rest = {"index": 0, "function": {"arguments": arguments[half:]}}
        self._send(_chunk({"tool_calls": [rest]}))

    def _answer_whole(self, step: Status | Whole) -> None:
        if isinstance(step, Whole):
            message = {"role": "assistant", "content": step.text}
            step = Status(200, {"choices": [{"message": message, "finish_reason": "stop"}]})
        content = step.body if isinstance(step.body, bytes) else json.dumps(step.body).encode()
        self.send_response(step.status)
        headers = {"Content-Type": "application/json", "Content-Length": str(len(content))}
        for name, value in (headers | step.headers).items():
            self.send_header(name, value)
        self.end_headers()
        self._send(content)

    def _send(self, content: bytes) -> None:
        self.wfile.write(content)
        self.wfile.flush()

    def _wait(self, seconds: float, until: threading.Event | None = None) -> None:
        """Wait, but notice at once when the reader leaves."""
        deadline = time.monotonic() + seconds
        self.connection.settimeout(0.02)
        ends = (self.chat.closing, until or self.chat.closing)
        while time.monotonic() < deadline and not any(end.is_set() for end in ends):
            try:
                gone = self.connection.recv(1) == b""
            except TimeoutError:
                continue
            if gone:
                raise ConnectionResetError
        self.connection.settimeout(None)

    def log_message(self, *_: Any) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """Ignore readers that left, which are expected."""


@contextmanager
def fake_chat(*scripts: Sequence[Step], port: int = 0) -> Iterator[FakeChat]:
    """Serve until the end of the block; then the port is dead."""
    chat = FakeChat(list(scripts) or [["Hello ", "[1]."]])
    server = _Server(("127.0.0.1", port), type("Handler", (_Handler,), {"chat": chat}))
    chat.port = server.server_address[1]
    chat.url = f"http://127.0.0.1:{chat.port}/v1"
    with running(server):
        try:
            yield chat
        finally:
            chat.closing.set()
