"""Connections that do nothing, or send headers byte by byte, and are reopened when closed."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress

_BYTE_EVERY_S = 4.0
_AGAIN_S = 1.0
_HEAD = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nX-Slow: " + b"a" * 1000


class Idle:
    """`count` connections, every second one slow, held by a thread until the end."""

    def __init__(self, host: str, port: int, count: int) -> None:
        self._address, self._count = (host, port), count
        self.open = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Idle:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self) -> None:
        tasks = [self._loop.create_task(self._hold(number)) for number in range(self._count)]
        self._loop.run_forever()
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.close()

    async def _hold(self, number: int) -> None:
        await asyncio.sleep(number / 100)  # A hundred per second.
        while True:
            with suppress(OSError):
                reader, writer = await asyncio.open_connection(*self._address)
                self.open += 1
                try:
                    await (_dribble(reader, writer) if number % 2 else reader.read())
                finally:
                    self.open -= 1
                    writer.close()
            await asyncio.sleep(_AGAIN_S)


async def _dribble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send a byte now and then, until the server closes the connection."""
    closed = asyncio.ensure_future(reader.read())
    try:
        for byte in _HEAD:
            writer.write(bytes([byte]))
            done, _ = await asyncio.wait({closed}, timeout=_BYTE_EVERY_S)
            if done:
                return
    finally:
        closed.cancel()
