"""Connections of clients, with a minimum rate for receiving and sending."""

from __future__ import annotations

import errno
import socket
import time
from collections.abc import Callable
from enum import IntEnum
from functools import partial
from typing import Any

from gunicorn import http
from gunicorn.workers.gthread import TConn

from portal.domain.addresses import client_network
from portal.settings import WebSettings

# How much of a response may be left to the event loop; above that, its thread waits for the client.
MAX_UNSENT_BYTES = 256 * 1024
BLOCK_BYTES = 64 * 1024

_MAX_TRANSFER_S = 3600.0  # The longest that a body or a response may take.


class State(IntEnum):
    """What a connection waits for. Those in lower states are closed first to admit new ones."""

    CLOSING = 0
    IDLE = 1
    HEAD = 2
    BODY = 3
    WRITING = 4


class TooSlow(TimeoutError):
    """The client sends or reads below the minimum rate."""

    def __init__(self) -> None:
        # The errno of a reset connection, which gunicorn does not log as an error.
        super().__init__(errno.ECONNRESET, "the client is too slow")


class ClientSocket(socket.socket):
    """A socket that waits for its client only as long as the client keeps a minimum rate.

    Only time spent waiting counts, so that clients are not blamed for a busy server.
    """

    settings = WebSettings()

    def start_request(self) -> None:
        """Reset the counters, and do not wait for the client until `may_wait` is set."""
        self.may_wait = False
        self.unsent = bytearray()
        self._waited_s = {"receive": 0.0, "send": 0.0}
        self._moved_bytes = {"receive": 0, "send": 0}

    def recv(self, size: int, flags: int = 0, /) -> bytes:
        received: bytes = self._pace("receive", lambda: socket.socket.recv(self, size, flags), len)
        return received

    def shutdown(self, how: int, /) -> None:
        # Gunicorn drains the socket before closing it, which must not wait for more data.
        self.may_wait = False
        super().shutdown(how)

    def sendall(self, data: Any, flags: int = 0, /) -> None:
        """Send what can be sent without waiting; wait only until the rest fits the buffer."""
        self.unsent += data
        self.flush(flags)
        while len(self.unsent) > MAX_UNSENT_BYTES:
            block = memoryview(self.unsent)[:BLOCK_BYTES]
            try:
                sent = self._pace("send", partial(socket.socket.send, self, block, flags), int)
            finally:
                block.release()
            del self.unsent[:sent]

    def flush(self, flags: int = 0) -> None:
        """Send what can be sent without waiting. Raises OSError if the client has left."""
        self.settimeout(0)
        while self.unsent:
            block = memoryview(self.unsent)[:BLOCK_BYTES]
            try:
                sent = self.send(block, flags)
            except BlockingIOError:
                return
            finally:
                block.release()
            del self.unsent[:sent]

    def _pace(self, what: str, action: Callable[[], Any], size: Callable[[Any], int]) -> Any:
        left_s = 0.0
        if self.may_wait:
            allowed_s = allowed_seconds(self.settings, self._moved_bytes[what])
            left_s = max(0.0, allowed_s - self._waited_s[what])
        self.settimeout(left_s)
        started = time.monotonic()
        try:
            result = action()
        except (TimeoutError, BlockingIOError):
            raise TooSlow from None
        finally:
            self._waited_s[what] += time.monotonic() - started
        self._moved_bytes[what] += size(result)
        return result


def allowed_seconds(settings: WebSettings, size_bytes: int) -> float:
    """Return the time allowed for moving this many bytes."""
    at_rate = settings.client_patience_s + size_bytes / (settings.min_rate_kb_s * 1024)
    return min(_MAX_TRANSFER_S, at_rate)


class Connection(TConn):  # type: ignore[misc]  # Gunicorn ships no types.
    """A client's connection, and the progress of its next request."""

    def __init__(self, cfg: Any, sock: ClientSocket, client: Any, server: Any) -> None:
        super().__init__(cfg, sock, client, server)
        self.network = client_network(client[0]) if isinstance(client, tuple) else ""
        self.parser = http.get_parser(cfg, sock, client)
        # For gunicorn: the parser exists, and a thread gets a request whose data has arrived.
        self.initialized = self.data_ready = True
        self.received = bytearray()
        self.needed_bytes: int | None = None
        self.searched_bytes = 0
        self.state = State.IDLE
        self.keeps_open = False
        self.deadline = 0.0
