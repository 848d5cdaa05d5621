"""What the portal uses while it serves: memory, processor, connections, transactions."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import psutil
import psycopg

_EVERY_S = 2.0
# Everything but this client and the server's own processes.
_ACTIVITY = """
    SELECT count(*), count(*) FILTER (WHERE state = 'active'),
           coalesce(max(extract(epoch FROM clock_timestamp() - state_change))
                    FILTER (WHERE state LIKE 'idle in transaction%'), 0),
           coalesce(max(extract(epoch FROM clock_timestamp() - xact_start)), 0)
      FROM pg_stat_activity
     WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


@dataclass(frozen=True, slots=True)
class Sample:
    """At a time of the system clock: the memory of each process tree, in MB (PSS), seconds
    of processor time, connections of the database, and its longest idle and open transaction."""

    at: float
    memory_mb: dict[str, float]
    cpu_s: float
    connections: int
    active: int
    idle_in_transaction_s: float
    transaction_s: float
    idle_clients: int


@dataclass
class Watch:
    """Samples of process trees (name → process) and of a database, until the end."""

    url: str
    trees: dict[str, psutil.Process]
    idle_clients: Sequence[object]
    samples: list[Sample] = field(default_factory=list)

    def __enter__(self) -> Watch:
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _watch(self) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            while not self._stopping.wait(_EVERY_S):
                self.samples.append(self._sample(connection))

    def _sample(self, connection: psycopg.Connection) -> Sample:
        memory, cpu = {}, 0.0
        for name, root in self.trees.items():
            memory[name] = 0.0
            with suppress(psutil.NoSuchProcess):
                for process in [root, *root.children(recursive=True)]:
                    with suppress(psutil.NoSuchProcess):
                        # Shared memory counts once, because each process counts its part of it.
                        memory[name] += process.memory_full_info().pss / 2**20
                        times = process.cpu_times()
                        cpu += times.user + times.system
        row = connection.execute(_ACTIVITY).fetchone()
        assert row is not None
        idle = sum(getattr(one, "open", 0) for one in self.idle_clients)
        return Sample(
            time.time(),
            memory,
            cpu,
            row[0],
            row[1],
            float(row[2]),
            float(row[3]),
            idle,
        )
