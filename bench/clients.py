"""Concurrent clients, in processes with threads as the portal runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bench.corpus import Corpus, attach

# Eight clients in one process would wait for the GIL rather than for the database.
PROCESSES = 2
# Opened in each client process.
_corpus: Corpus
_barrier: Barrier


@dataclass(frozen=True, slots=True)
class Load:
    """Searches per second of a number of clients, and the time of each search."""

    clients: int
    searches_a_second: float
    p50_ms: float
    p95_ms: float


class Clients:
    """A pool of client processes."""

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        self._pool = pool

    def run(self, profiles: tuple[str, ...], *, clients: int, seconds: float) -> Load:
        """Search continuously for `seconds`; each client takes the profiles in turn."""
        used = min(clients, PROCESSES)
        # Each process is busy with its threads, and takes one call.
        calls = [
            self._pool.submit(_search, profiles, clients // used + (n < clients % used), seconds)
            for n in range(used)
        ]
        taken = np.concatenate([call.result() for call in calls])
        return Load(
            clients=clients,
            searches_a_second=round(len(taken) / seconds, 1),
            p50_ms=round(1000 * float(np.percentile(taken, 50)), 3),
            p95_ms=round(1000 * float(np.percentile(taken, 95)), 3),
        )


@contextmanager
def clients(corpus: Corpus, data_dir: Path, *, threads: int) -> Iterator[Clients]:
    """Start client processes of at most `threads` threads, on a corpus that stays open."""
    # Spawn, because a fork would share the parent's connections.
    context = get_context("spawn")
    given = (corpus.size, data_dir, corpus.services.database.url, threads)
    with ProcessPoolExecutor(
        PROCESSES, context, _open, (context.Barrier(PROCESSES), *given)
    ) as pool:
        for call in [pool.submit(_meet) for _ in range(PROCESSES)]:
            call.result()
        yield Clients(pool)


def _open(barrier: Barrier, size: int, data_dir: Path, url: str, threads: int) -> None:
    """Open the corpus in a client process."""
    global _corpus, _barrier  # noqa: PLW0603 - of one process
    _corpus = attach(size, data_dir, url, database_pool_size=max(2, threads))
    _barrier = barrier


def _meet() -> None:
    """Wait until every process is open."""
    _barrier.wait()


def _search(profiles: tuple[str, ...], threads: int, seconds: float) -> npt.NDArray[np.float64]:
    """Return the seconds that each search of some threads took."""
    end = time.monotonic() + seconds
    with ThreadPoolExecutor(threads) as pool:
        taken = pool.map(lambda thread: _client(profiles, thread, end), range(threads))
        return np.concatenate([np.array(one) for one in taken])


def _client(names: tuple[str, ...], thread: int, end: float) -> list[float]:
    """Return the seconds that each of a client's searches took."""
    profiles = [_corpus.profile(name) for name in names]
    taken: list[float] = []
    for number in count(thread * 37):
        question = _corpus.questions[number % len(_corpus.questions)]
        profile = profiles[number % len(profiles)]
        started = time.monotonic()
        if started >= end:
            break
        _corpus.search(profile, question)
        taken.append(time.monotonic() - started)
    return taken
