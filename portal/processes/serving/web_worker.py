"""The gunicorn worker that serves the portal: threads work on complete requests only.

Gunicorn's own `gthread` gives a thread to each connection that sends a byte, and the thread then
waits for the rest: as many slow clients as there are threads block everyone. Here the event loop
reads each request, including a short body, and a thread starts when it is complete. The loop also
sends the rest of a response to a slow client. So an idle, slow or stalled connection costs only a
descriptor and a small buffer. `docs/adr/0035-web-worker-for-slow-clients.md` has the reasons.
"""

from __future__ import annotations

import errno
import re
import resource
import selectors
import socket
import sys
import time
from collections import Counter, defaultdict, deque
from concurrent.futures import Future
from functools import cache
from typing import Any

from gunicorn import util
from gunicorn.workers.gthread import ThreadWorker

from portal.errors import InvalidSetting
from portal.processes.serving.client_connections import (
    BLOCK_BYTES,
    ClientSocket,
    Connection,
    State,
    allowed_seconds,
)
from portal.settings import WebSettings, load_settings

# Longer bodies are read by the thread that handles the request, at the pace of the client.
MAX_BUFFERED_BODY_BYTES = 256 * 1024
MAX_HEAD_BYTES = 64 * 1024

_LINGER_S = 5.0
_SWEEP_INTERVAL_S = 0.5
_ACCEPTED_AT_ONCE = 64
# Files, pipes and connections to the database.
_OTHER_DESCRIPTORS = 256
_HEAD_END = b"\r\n\r\n"
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d{1,18})[ \t]*\r\n", re.IGNORECASE)
_IS_CHUNKED = re.compile(rb"\r\ntransfer-encoding[ \t]*:", re.IGNORECASE)
_EXPECTS = re.compile(rb"\r\nexpect:[ \t]*100-continue[ \t]*(?=\r\n)", re.IGNORECASE)
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nConnection: close\r\n"
    b"Content-Length: 0\r\n\r\n"
)


class WebWorker(ThreadWorker):  # type: ignore[misc]
    """`gthread` with an event loop that reads requests, and limits for each client address."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.settings = WebSettings()
        self.worker_connections: int = self.cfg.worker_connections
        self.connections_per_address = 0
        # Connections that wait for their client, the longest waiting first.
        self.waiting: dict[Connection, None] = {}
        self.by_network: dict[str, dict[Connection, None]] = defaultdict(dict)
        self.busy: Counter[str] = Counter()
        self.queued: dict[str, deque[Connection]] = defaultdict(deque)
        # The maximum number of threads for one address, so that others are served meanwhile.
        self.max_busy = max(1, self.cfg.threads // 2)
        self._sweep_at = 0.0

    @classmethod
    def check_config(cls, cfg: Any, log: Any) -> None:
        if cfg.is_ssl:
            sys.exit("The portal does not end TLS itself. Leave --certfile away, and put a proxy "
                     "in front: docs/operations.md has the configuration of one.")  # fmt: skip
        super().check_config(cfg, log)

    def init_process(self) -> None:
        try:
            settings = load_settings()
        except InvalidSetting:
            pass  # The application reports it when it is loaded.
        else:
            self.settings = ClientSocket.settings = settings.web
            if not settings.trusted_proxies:
                # Behind a proxy, all clients have its address; it limits connections itself.
                self.connections_per_address = settings.web.connections_per_address
            else:
                self.max_busy = self.cfg.threads
        self.worker_connections = _raise_descriptor_limit(self.worker_connections)
        super().init_process()

    # --- connections ----------------------------------------------------------------------------

    def accept(self, listener: socket.socket) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                accepted, address = listener.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}:
                    raise
                if not self._close_least_active(None):
                    time.sleep(0.05)  # Nothing can be accepted until a request ends.
                return
            client = ClientSocket(
                accepted.family, accepted.type, accepted.proto, fileno=accepted.detach()
            )
            client.start_request()
            conn = Connection(self.cfg, client, address, listener.getsockname())
            self._admit(conn)

    def _admit(self, conn: Connection) -> None:
        of_network = self.by_network[conn.network]
        max_connections = self.connections_per_address
        is_full = bool(max_connections and conn.network) and len(of_network) >= max_connections
        # One below the limit at which gunicorn's own loop stops accepting.
        if (is_full and not self._close_least_active(conn.network)) or (
            self.nr_conns >= self.worker_connections - 1 and not self._close_least_active(None)
        ):
            self._drop_empty(conn.network)
            _refuse(conn.sock)
            return
        self.nr_conns += 1
        of_network[conn] = None
        self._await_request(conn)
        # Most requests have already arrived when their connection is accepted.
        if conn in self.waiting:
            self._read(conn)

    def _close_least_active(self, network: str | None) -> bool:
        """Close the least active connection of a network, by default of the network with the most
        waiting connections.

        Return False if requests are running on all of them.
        """
        if network is None:
            waiting = Counter(connection.network for connection in self.waiting).most_common(1)
            network = waiting[0][0] if waiting else ""
        found = [
            connection
            for connection in self.by_network.get(network, ())
            if connection in self.waiting
        ]
        if not found:
            return False
        self._close(min(found, key=lambda one: (one.state, one.deadline)))
        return True

    def _close(self, conn: Connection) -> None:
        self._stop_waiting(conn)
        self.by_network[conn.network].pop(conn, None)
        self._drop_empty(conn.network)
        self.nr_conns -= 1
        conn.close()

    def _drop_empty(self, network: str) -> None:
        if not self.by_network[network]:
            del self.by_network[network]

    def _wait(self, conn: Connection, state: State, seconds: float) -> None:
        """Let the loop watch a connection, for at most this long."""
        wanted = selectors.EVENT_WRITE if state is State.WRITING else selectors.EVENT_READ
        action = self._write if state is State.WRITING else self._read
        conn.sock.settimeout(0)
        self._stop_waiting(conn)
        self.waiting[conn] = None
        conn.state, conn.deadline = state, time.monotonic() + seconds
        self.poller.register(conn.sock, wanted, lambda _socket: action(conn))

    def _stop_waiting(self, conn: Connection) -> None:
        if conn in self.waiting:
            del self.waiting[conn]
            self.poller.unregister(conn.sock)

    def _expect(self, conn: Connection, state: State, seconds: float) -> None:
        """Keep watching a connection, with another state and deadline."""
        conn.state, conn.deadline = state, time.monotonic() + seconds

    # --- reading requests -----------------------------------------------------------------------

    def _await_request(self, conn: Connection) -> None:
        conn.needed_bytes, conn.searched_bytes = None, 0
        idle_s = self.cfg.keepalive if self.alive else 1.0
        is_new = not conn.parser.req_count
        self._wait(conn, State.IDLE, self.settings.header_timeout_s if is_new else idle_s)
        if conn.received:
            self._expect(conn, State.HEAD, self.settings.header_timeout_s)
            self._dispatch_if_complete(conn)

    def _read(self, conn: Connection) -> None:
        try:
            received = socket.socket.recv(conn.sock, BLOCK_BYTES)
        except BlockingIOError:
            return
        except OSError:
            received = b""
        if not received:
            self._close(conn)
            return
        if conn.state is State.CLOSING:
            return
        if conn.state is State.IDLE:
            self._expect(conn, State.HEAD, self.settings.header_timeout_s)
        conn.received += received
        self._dispatch_if_complete(conn)

    def _dispatch_if_complete(self, conn: Connection) -> None:
        if conn.needed_bytes is None:
            end = conn.received.find(_HEAD_END, max(0, conn.searched_bytes - len(_HEAD_END)))
            conn.searched_bytes = len(conn.received)
            if end < 0 and not _is_request_line_too_long(conn, self.cfg.limit_request_line):
                if len(conn.received) > MAX_HEAD_BYTES:
                    self._answer(conn, 431, "Request Header Fields Too Large")
                return
            head = bytes(conn.received[: end + len(_HEAD_END)])
            body_bytes = _buffered_body_bytes(head)
            if body_bytes and _EXPECTS.search(head) and not self._ask_for_body(conn, head):
                return
            conn.needed_bytes = conn.received.find(_HEAD_END) + len(_HEAD_END) + body_bytes
            self._expect(conn, State.BODY, allowed_seconds(self.settings, body_bytes))
        if len(conn.received) >= conn.needed_bytes:
            self._dispatch(conn)

    def _ask_for_body(self, conn: Connection, head: bytes) -> bool:
        """Respond to `Expect: 100-continue`; return False if the client has left."""
        try:
            conn.sock.sendall(_CONTINUE)
        except OSError:
            self._close(conn)
            return False
        # Remove the header, so that gunicorn does not ask for the body a second time.
        conn.received[: len(head)] = _EXPECTS.sub(b"", head)
        return True

    def _answer(self, conn: Connection, status: int, reason: str) -> None:
        try:
            util.write_error(conn.sock, status, reason, "")
        except OSError:
            self._close(conn)
        else:
            self._linger(conn)

    def _dispatch(self, conn: Connection) -> None:
        """Pass a request to a thread, or queue it if its network uses all threads that it may."""
        self._stop_waiting(conn)
        conn.parser.unreader.unread(bytes(conn.received))
        conn.received.clear()
        if conn.network and self.busy[conn.network] >= self.max_busy:
            self.queued[conn.network].append(conn)
        else:
            self._start(conn)

    def _start(self, conn: Connection) -> None:
        self.busy[conn.network] += 1
        conn.sock.start_request()
        self.enqueue_req(conn)

    # --- in a thread ----------------------------------------------------------------------------

    def handle_request(self, req: Any, conn: Connection) -> Any:
        # The head has been read: this thread may now wait for the body or for a slow client.
        conn.sock.may_wait = True
        client_closes = req.should_close
        # Gunicorn asks this when it writes the headers: a client that reads `keep-alive` there
        # sends its next request on this connection.
        req.should_close = cache(lambda: client_closes() or not _skip_body(conn))
        return super().handle_request(req, conn)

    def _keepalive_after(self, conn: Connection, keepalive: bool) -> bool:  # noqa: ARG002
        return keepalive

    # --- after a response -----------------------------------------------------------------------

    def finish_request(self, conn: Connection, fs: Future[Any]) -> None:
        self._start_next(conn.network)
        conn.keeps_open = not fs.cancelled() and fs.exception() is None and bool(fs.result())
        if conn.sock.fileno() < 0:
            self._close(conn)  # Gunicorn has closed the socket, since the response failed.
            return
        if conn.keeps_open:
            conn.received += conn.parser.unreader.take_buffered()
        if conn.sock.unsent:
            seconds = allowed_seconds(self.settings, len(conn.sock.unsent))
            self._wait(conn, State.WRITING, seconds)
        else:
            self._resume(conn)

    def _start_next(self, network: str) -> None:
        self.busy[network] -= 1
        if self.queued.get(network):
            self._start(self.queued[network].popleft())
        elif not self.busy[network]:
            del self.busy[network]
            self.queued.pop(network, None)

    def _write(self, conn: Connection) -> None:
        try:
            conn.sock.flush()
        except OSError:
            self._close(conn)
            return
        if not conn.sock.unsent:
            self._resume(conn)

    def _resume(self, conn: Connection) -> None:
        if conn.keeps_open:
            self._await_request(conn)
        else:
            self._linger(conn)

    def _linger(self, conn: Connection) -> None:
        """Close after the client has read the response.

        Closing with unread bytes resets the connection, and the client might lose the response.
        """
        conn.received.clear()
        try:
            conn.sock.shutdown(socket.SHUT_WR)
        except OSError:
            self._close(conn)
        else:
            self._wait(conn, State.CLOSING, _LINGER_S)

    # --- time -----------------------------------------------------------------------------------

    def murder_keepalived(self, force: bool = False) -> None:
        """Close connections that have waited long enough; gunicorn's loop calls this."""
        now = time.monotonic()
        if now < self._sweep_at and not force:
            return
        self._sweep_at = now + _SWEEP_INTERVAL_S
        for conn in [
            connection for connection in self.waiting if force or connection.deadline < now
        ]:
            if conn.state in {State.HEAD, State.BODY} and not force:
                self._answer(conn, 408, "Request Timeout")
            else:
                self._close(conn)

    def _cap_keepalive(self, deadline: float) -> None:
        for conn in self.waiting:
            if conn.state is State.IDLE:
                conn.deadline = min(conn.deadline, deadline)


def _skip_body(conn: Connection) -> bool:
    """Discard the part of a body that the application did not read. Return False if the client has
    yet to send more: waiting for it is not worth a thread."""
    conn.sock.may_wait = False
    try:
        is_skipped: bool = conn.parser.finish_body(
            deadline=time.monotonic() + _LINGER_S, max_bytes=2 * MAX_BUFFERED_BODY_BYTES
        )
    finally:
        conn.sock.may_wait = True
    return is_skipped


def _is_request_line_too_long(conn: Connection, max_bytes: int) -> bool:
    # The parser refuses it with 414 without reading more.
    return conn.received.find(b"\r\n", 0, max_bytes + 2) < 0 and len(conn.received) > max_bytes + 2


def _buffered_body_bytes(head: bytes) -> int:
    """Return how much of a body to read before a thread starts; 0 if the thread reads it."""
    lengths = _LENGTH.findall(head)
    if len(lengths) != 1 or _IS_CHUNKED.search(head):
        return 0
    length = int(lengths[0])
    return length if length <= MAX_BUFFERED_BODY_BYTES else 0


def _refuse(client: ClientSocket) -> None:
    try:
        client.settimeout(0)
        client.send(_BUSY)
    except OSError:
        pass
    finally:
        client.close()


def _raise_descriptor_limit(wanted: int) -> int:
    """Raise the limit of descriptors as far as the system allows; return how many connections that
    permits."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + _OTHER_DESCRIPTORS
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY:
        return wanted
    return max(16, min(wanted, soft - _OTHER_DESCRIPTORS))
