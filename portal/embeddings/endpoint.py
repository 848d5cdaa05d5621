"""JSON posted to a server, within a time that holds for all of it."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx


class AnswerTooLarge(Exception):
    """The server sent more than was asked to be read; the rest was left."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered, of whatever status."""

    status: int
    headers: httpx.Headers
    content: bytes

    @property
    def text(self) -> str:
        return self.content.decode(errors="replace")


class Endpoint:
    """A server, asked from any thread. Connections are kept and redirects are not followed, since
    the key would follow them.

    Requests run in an event loop of their own, because only there an attempt can be ended
    wherever it hangs: at looking up the name, at a header or at the next byte. The timeouts of a
    blocking client start anew at each of these, so that a server that trickles holds a search
    for minutes.
    """

    def __init__(self, base_url: str, *, headers: Mapping[str, str]) -> None:
        self.base_url = base_url.rstrip("/") + "/"
        self._headers = dict(headers)
        # Reading the machine's certificates takes a while, and a question would pay for it.
        self._certificates = httpx.create_ssl_context()
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process = 0
        self._finalizer: Any = None

    def post(
        self, path: str, body: Mapping[str, Any], *, timeout_s: float, max_bytes: int
    ) -> Answer:
        """The whole answer. Raises TimeoutError, AnswerTooLarge, httpx.HTTPError,
        httpx.InvalidURL."""
        loop, client = self._running()

        async def attempt() -> Answer:
            async with asyncio.timeout(timeout_s):
                return await _post(client, path, body, max_bytes)

        return asyncio.run_coroutine_threadsafe(attempt(), loop).result()

    def close(self) -> None:
        """End the connections. The next request makes new ones."""
        with self._lock:
            self._loop = None
            if self._finalizer is not None:
                self._finalizer()

    def _running(self) -> tuple[asyncio.AbstractEventLoop, httpx.AsyncClient]:
        with self._lock:
            # A forked child has its parent's loop without the thread that turns it.
            if self._loop is None or self._process != os.getpid():
                # Each request has one time for all of it, see `post`.
                client = httpx.AsyncClient(
                    base_url=self.base_url,
                    headers=self._headers,
                    timeout=httpx.Timeout(None),
                    verify=self._certificates,
                )
                loop = asyncio.new_event_loop()
                threading.Thread(target=_turn, args=(loop,), name="endpoint", daemon=True).start()
                self._loop, self._client, self._process = loop, client, os.getpid()
                self._finalizer = weakref.finalize(self, _stop, loop, client, os.getpid())
            return self._loop, self._client


def _turn(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()


def _stop(loop: asyncio.AbstractEventLoop, client: httpx.AsyncClient, process: int) -> None:
    if process != os.getpid() or loop.is_closed():
        return

    async def stop() -> None:
        await client.aclose()
        loop.stop()

    asyncio.run_coroutine_threadsafe(stop(), loop)


async def _post(
    client: httpx.AsyncClient, path: str, body: Mapping[str, Any], max_bytes: int
) -> Answer:
    async with client.stream("POST", path, json=dict(body)) as response:
        parts = bytearray()
        async for part in response.aiter_bytes():
            parts += part
            if len(parts) > max_bytes:
                raise AnswerTooLarge
        return Answer(response.status_code, response.headers, bytes(parts))
