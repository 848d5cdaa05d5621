"""A web site on this machine whose pages a test sets."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event
from typing import Any

from tests.factories.servers import running


@dataclass
class Reply:
    """A response of the site. With `every_s`, one byte at that interval until the test ends."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    every_s: float = 0.0


@dataclass
class Website:
    port: int
    scheme: str = "http"
    replies: dict[str, Reply] = field(default_factory=dict)
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    closing: Event = field(default_factory=Event)

    @property
    def origin(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def url(self, path: str) -> str:
        return self.origin + path

    def page(self, path: str, words: str, **headers: str) -> str:
        """Add a web page at a path; return its address."""
        html = f"<!doctype html><title>About {path}</title><body><p>{words}</p></body>"
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.replies[path] = Reply(html.encode(), headers={"Content-Type": "text/html", **named})
        return self.url(path)

    def asked(self) -> list[str]:
        """Return the paths requested since the last call, without robots.txt."""
        paths = [path for path, _ in self.requests if path != "/robots.txt"]
        self.requests.clear()
        return paths


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, handler: type[BaseHTTPRequestHandler], certificate: ssl.SSLContext | None):
        super().__init__(("127.0.0.1", 0), handler)
        self.scheme = "https" if certificate else "http"
        if certificate:
            # Leave the handshake to the handler: a failed one would end the server's loop.
            self.socket = certificate.wrap_socket(
                self.socket, server_side=True, do_handshake_on_connect=False
            )

    def handle_error(self, *_: Any) -> None:
        """Ignore clients that hang up or refuse the certificate."""


@contextmanager
def serve_website(certificate: ssl.SSLContext | None = None) -> Iterator[Website]:
    """Serve pages over HTTP, or with a `certificate` over HTTPS."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.requests.append((self.path, dict(self.headers)))
            reply = site.replies.get(self.path, Reply(status=404))
            validators = {
                "If-None-Match": reply.headers.get("ETag"),
                "If-Modified-Since": reply.headers.get("Last-Modified"),
            }
            if any(value and self.headers[name] == value for name, value in validators.items()):
                self.send_response(304)
                self.end_headers()
                return
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            if not reply.every_s and "Content-Length" not in reply.headers:
                self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            self._send(reply)

        do_HEAD = do_GET  # noqa: N815 - the name that the base class looks for

        def _send(self, reply: Reply) -> None:
            try:
                if not reply.every_s:
                    self.wfile.write(reply.body)
                while reply.every_s and not site.closing.is_set():
                    self.wfile.write(b"x")
                    self.wfile.flush()
                    time.sleep(reply.every_s)
            except OSError:
                pass  # The client hung up.

        def log_message(self, *_: Any) -> None:
            pass

    server = _Server(Handler, certificate)
    site = Website(server.server_port, server.scheme)
    with running(server):
        try:
            yield site
        finally:
            site.closing.set()
