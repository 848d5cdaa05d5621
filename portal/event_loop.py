"""A background event loop for requests that must be abortable wherever they hang.

A blocking client notices that its reader has left only when the next byte comes. A task in a loop
can be cancelled at any moment, and closes its connection when it is.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Callable
from typing import Any

import httpx

from portal.observability import tracing


class EventLoop:
    """An asyncio loop with one HTTP client, in a thread called `name`; started at first use, and
    again in a forked child, which inherits the loop without its thread."""

    def __init__(self, name: str, make_client: Callable[[], httpx.AsyncClient]) -> None:
        self._name = name
        self._make_client = make_client
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process = 0
        self._finalizer: Any = None

    def running(self) -> tuple[asyncio.AbstractEventLoop, httpx.AsyncClient]:
        with self._lock:
            if self._loop is None or self._process != os.getpid():
                client, loop = self._make_client(), asyncio.new_event_loop()
                client.event_hooks = {"request": [_carry_trace]}
                threading.Thread(target=_turn, args=(loop,), name=self._name, daemon=True).start()
                self._loop, self._client, self._process = loop, client, os.getpid()
                self._finalizer = weakref.finalize(self, _stop, loop, client, os.getpid())
            return self._loop, self._client

    def close(self) -> None:
        """Stop the thread and close its connections. The next use starts another."""
        with self._lock:
            self._loop = None
            if self._finalizer is not None:
                self._finalizer()


async def _carry_trace(request: httpx.Request) -> None:
    # A task runs in the context of its caller, which may be another thread.
    request.headers.update(tracing.outgoing())


def _turn(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()


def _stop(loop: asyncio.AbstractEventLoop, client: httpx.AsyncClient, process: int) -> None:
    if process != os.getpid() or loop.is_closed():
        return

    async def stop() -> None:
        current = asyncio.current_task()
        others = [task for task in asyncio.all_tasks() if task is not current]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await client.aclose()
        loop.stop()

    asyncio.run_coroutine_threadsafe(stop(), loop)
