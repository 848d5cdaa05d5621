"""JSON requests to a server, with one time limit for the whole exchange."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import CancelledError
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpx

from portal.event_loop import EventLoop


class AnswerTooLarge(Exception):
    """The answer exceeds the size limit; the rest was not read."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A server's answer, of any status."""

    status: int
    headers: httpx.Headers
    content: bytes

    @property
    def text(self) -> str:
        return self.content.decode(errors="replace")


class Endpoint:
    """A server, called from any thread.

    Connections are kept open. Redirects are not followed, because the key would be sent along.

    Requests run in their own event loop, because only there can an attempt be cancelled at
    any point: during name lookup, at a header or at the next byte. The timeouts of a blocking
    client restart at each of these, so that a slow server could hold a search for minutes.
    """

    def __init__(self, base_url: str, *, headers: Mapping[str, str]) -> None:
        self.base_url = base_url.rstrip("/") + "/"
        make_client = partial(
            httpx.AsyncClient,
            base_url=self.base_url,
            headers=dict(headers),
            timeout=httpx.Timeout(None),  # `post` limits the total time of each request.
            # Loads the machine's certificates now, because it would delay a query.
            verify=httpx.create_ssl_context(),
        )
        self._loop = EventLoop("endpoint", make_client)

    def post(
        self, path: str, body: Mapping[str, Any], *, timeout_s: float, max_bytes: int
    ) -> Answer:
        """Send a request and return the whole answer.

        Raises TimeoutError, AnswerTooLarge, httpx.HTTPError, httpx.InvalidURL.
        """
        loop, client = self._loop.running()

        async def attempt() -> Answer:
            async with asyncio.timeout(timeout_s):
                return await _post(client, path, body, max_bytes)

        try:
            return asyncio.run_coroutine_threadsafe(attempt(), loop).result()
        except CancelledError as error:
            raise httpx.ReadError("the connections were closed") from error

    def close(self) -> None:
        """Close the connections. The next request opens new ones."""
        self._loop.close()


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
