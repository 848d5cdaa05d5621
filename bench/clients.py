"""Concurrent clients, in processes with threads as the portal runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from bench.corpus import Corpus, attach
from portal.services.search.engine import search

# Eight clients in one process would wait for the GIL rather than for the database.
PROCESSES = 2
RESULTS = 10
_READY = "ready"


@dataclass(frozen=True, slots=True)
class Load:
    """Searches per second of a number of clients, and the time of each search."""

    clients: int
    searches_a_second: float
    p50_ms: float
    p95_ms: float


@dataclass(frozen=True, slots=True)
class _Order:
    profiles: tuple[str, ...]
    threads: int
    begin_at: float
    seconds: float


class Clients:
    """A pool of client processes."""

    def __init__(self, connections: list[Connection[Any, Any]]) -> None:
        self._connections = connections

    def run(self, profiles: tuple[str, ...], *, clients: int, seconds: float) -> Load:
        """Search continuously for `seconds`; each client takes the profiles in turn."""
        used = self._connections[: min(clients, len(self._connections))]
        # On Linux all processes share this clock.
        begin_at = time.monotonic() + 0.2
        for place, connection in enumerate(used):
            threads = clients // len(used) + (place < clients % len(used))
            connection.send(_Order(profiles, threads, begin_at, seconds))
        try:
            taken = np.concatenate([connection.recv() for connection in used])
        except EOFError as error:
            raise RuntimeError("a client's process ended; its own error is above") from error
        return Load(
            clients=clients,
            searches_a_second=round(len(taken) / seconds, 1),
            p50_ms=round(1000 * float(np.percentile(taken, 50)), 3),
            p95_ms=round(1000 * float(np.percentile(taken, 95)), 3),
        )


@contextmanager
def clients(corpus: Corpus, data_dir: Path, *, threads: int) -> Iterator[Clients]:
    """Start processes of at most `threads` threads, on a corpus that stays open meanwhile."""
    # Spawn, because a fork would share the parent's connections.
    context = get_context("spawn")
    connections, processes = [], []
    try:
        for _ in range(PROCESSES):
            ours, theirs = context.Pipe()
            url = corpus.services.database.url
            process = context.Process(
                target=_serve, args=(theirs, corpus.size, data_dir, url, threads), daemon=True
            )
            process.start()
            theirs.close()
            connections.append(ours)
            processes.append(process)
        for connection in connections:
            connection.recv()
        yield Clients(connections)
    finally:
        for connection in connections:
            connection.close()
        for process in processes:
            process.join(10)


def _serve(
    connection: Connection[Any, Any], size: int, data_dir: Path, url: str, threads: int
) -> None:
    corpus = attach(size, data_dir, url, database_pool_size=max(2, threads))
    connection.send(_READY)
    with ThreadPoolExecutor(threads) as pool:
        while True:
            try:
                order = connection.recv()
            except EOFError:
                break
            taken = pool.map(
                lambda thread, o=order: _client(corpus, o, thread), range(order.threads)
            )
            connection.send(np.concatenate([np.array(one) for one in taken]))
    corpus.services.database.dispose()


def _client(corpus: Corpus, order: _Order, thread: int) -> list[float]:
    """Return the seconds that each of a client's searches took."""
    profiles = [corpus.profile(name) for name in order.profiles]
    taken: list[float] = []
    time.sleep(max(0.0, order.begin_at - time.monotonic()))
    end = order.begin_at + order.seconds
    for number in count(thread * 37):
        question = corpus.questions[number % len(corpus.questions)]
        profile = profiles[number % len(profiles)]
        started = time.monotonic()
        if started >= end:
            break
        search(corpus.services, profile.user, profile.request(question.text, top_n=RESULTS))
        taken.append(time.monotonic() - started)
    return taken
