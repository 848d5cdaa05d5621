"""Servers that follow the primary, and which of them a request may read from.

Each process watches all servers five times a second. A request that only reads goes to a replica
that has replayed everything that the primary had written when the request began, so it sees no less
than on the primary: what anyone removed, revoked or switched off before counts (ADR 61).
"""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol, TypeVar

import psycopg
import structlog

from portal.errors import PortalError
from portal.store.connections import forks

WATCH_EVERY_S = 0.2
# Requests do not ask a server that has not answered for this long.
_REPLICA_SILENT_S = 1.0
_PRIMARY_SILENT_S = 2.0
# Without the primary a replica must have what the primary had this long before it was lost.
_OUTAGE_SLACK_S = 1.0
_FIRST_PAUSE_S = 0.001
_MAX_PAUSE_S = 0.016
_CONNECTING: dict[str, Any] = {"connect_timeout": 2, "tcp_user_timeout": 3000}

# Before 1.4.0 pg_textsearch does not write its index to the log.
HAS_EARLY_TEXTSEARCH = """EXISTS (
    SELECT FROM pg_extension
    WHERE extname = 'pg_textsearch' AND extversion ~ '^(0|1[.][0-3])([.]|$)'
)"""

# A position is a byte of the write-ahead log, and comparable within a timeline, which a promotion
# ends. On a replica the timeline is that of what it receives, and null while it receives nothing,
# or to a role that may not see it.
POSITION = f"""
    SELECT pg_is_in_recovery(),
           CAST((CASE WHEN pg_is_in_recovery() THEN coalesce(pg_last_wal_replay_lsn(), '0/0')
                      ELSE pg_current_wal_flush_lsn() END) - '0/0'::pg_lsn AS bigint),
           CASE WHEN pg_is_in_recovery() THEN (SELECT received_tli FROM pg_stat_wal_receiver)
                ELSE CAST(CAST('x' || substr(pg_walfile_name(pg_current_wal_flush_lsn()), 1, 8)
                               AS bit(32)) AS int) END,
           NOT {HAS_EARLY_TEXTSEARCH}
"""

State = Literal["ok", "behind", "not_following", "unavailable"]

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Sample:
    """The state of a server, `at` a time of the monotonic clock. `replicates_bm25` is false if its
    keyword index exists on the primary alone."""

    at: float
    is_replica: bool
    position: int
    timeline: int | None
    replicates_bm25: bool


class Source(Protocol):
    """Connections to one server."""

    @property
    def conninfo(self) -> str: ...

    def sample(self) -> Sample:
        """Ask the server on a pooled connection. Raises DatabaseUnavailable."""
        ...

    def discard_connections(self) -> None: ...


S = TypeVar("S", bound=Source)


def read_sample(execute: Callable[[str], Any]) -> Sample:
    """Ask a server through `execute`, which runs a statement and returns its row."""
    is_replica, position, timeline, replicates_bm25 = execute(POSITION)
    return Sample(time.monotonic(), is_replica, position, timeline, replicates_bm25)


class WatchedServer(Generic[S]):
    """A server with its latest sample, kept up to date by a thread."""

    def __init__(self, source: S, *, silent_after_s: float) -> None:
        self.source = source
        self.latest: Sample | None = None
        self.history: deque[Sample] = deque(maxlen=int(4 * _OUTAGE_SLACK_S / WATCH_EVERY_S))
        self.followed_timeline: int | None = None
        # A request gave up waiting for this position.
        self.missed = 0
        self._silent_after_s = silent_after_s
        self._asked_at: float | None = None
        self._has_failed = False
        self._connection: psycopg.Connection[Any] | None = None
        self._stopping = threading.Event()

    @property
    def is_lost(self) -> bool:
        """Return whether the server failed, or has not answered a pending probe for too long. A
        server that was not asked lately is not lost: this process may have been busy."""
        asked_at = self._asked_at
        is_silent = asked_at is not None and time.monotonic() - asked_at > self._silent_after_s
        return self._has_failed or is_silent

    def note(self, sample: Sample) -> None:
        self.latest = sample
        self.history.append(sample)
        if sample.is_replica and sample.timeline is not None:
            self.followed_timeline = sample.timeline
        self._has_failed = False

    def mark_lost(self) -> None:
        """Treat the server as lost until it answers the watch again."""
        if not self._has_failed:
            self._has_failed = True
            # Pooled connections lead to a server that is gone, or no longer the primary.
            self.source.discard_connections()

    def start(self) -> None:
        threading.Thread(target=self._watch, name="database watch", daemon=True).start()

    def stop(self) -> None:
        self._stopping.set()

    def after_fork_in_child(self) -> None:
        self._connection = self._asked_at = None
        self._has_failed = False
        self._stopping = threading.Event()

    def _watch(self) -> None:
        while not self._stopping.is_set():
            self._asked_at = time.monotonic()
            try:
                self.note(self._ask())
            except psycopg.Error:
                self.mark_lost()
            self._asked_at = None
            self._stopping.wait(WATCH_EVERY_S)
        self._close()

    def _ask(self) -> Sample:
        if self._connection is not None:
            try:
                return read_sample(_execute_on(self._connection))
            except psycopg.Error:
                # A pooler that restarts closes the connection and takes another.
                self._close()
        self._connection = psycopg.connect(
            self.source.conninfo, autocommit=True, prepare_threshold=None, **_CONNECTING
        )
        return read_sample(_execute_on(self._connection))

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(psycopg.Error):
                connection.close()


class Replicas(Generic[S]):
    """The primary and its replicas. Thread-safe; the watch begins with the first request, and again
    in a forked child."""

    def __init__(
        self, primary: S, replicas: Sequence[S], *, wait_s: float, outage_s: float
    ) -> None:
        """A request waits up to `wait_s` for a replica, and without the primary replicas are read
        for `outage_s`."""
        self._primary = WatchedServer(primary, silent_after_s=_PRIMARY_SILENT_S)
        self._replicas = [
            WatchedServer(replica, silent_after_s=_REPLICA_SILENT_S) for replica in replicas
        ]
        self._wait_s = wait_s
        self._outage_s = outage_s
        self._lock = threading.Lock()
        self._is_watching = False
        self._lost_at: float | None = None
        forks.watch(self)

    def after_fork_in_child(self) -> None:
        self._lock = threading.Lock()
        self._is_watching = False
        for server in (self._primary, *self._replicas):
            server.after_fork_in_child()

    def watch(self) -> None:
        """Start watching, once."""
        with self._lock:
            if self._is_watching:
                return
            self._is_watching = True
        for server in (self._primary, *self._replicas):
            server.start()

    def stop(self) -> None:
        for server in (self._primary, *self._replicas):
            server.stop()

    @property
    def is_primary_lost(self) -> bool:
        self.watch()
        latest = self._primary.latest
        is_lost = self._primary.is_lost or (latest is not None and latest.is_replica)
        with self._lock:
            if is_lost and self._lost_at is None:
                log.warning("primary_lost", reading=self._outage_s > 0)
                self._lost_at = time.monotonic()
            elif not is_lost and self._lost_at is not None:
                log.warning("primary_back", timeline=latest.timeline if latest else None)
                self._lost_at = None
        return is_lost

    @property
    def replicates_bm25(self) -> bool:
        latest = self._primary.latest
        return latest is not None and latest.replicates_bm25

    def mark_lost(self, source: S) -> None:
        """Note that a connection to this server broke."""
        for server in (self._primary, *self._replicas):
            if server.source is source:
                server.mark_lost()

    def choose(self) -> S | None:
        """Return a replica that has everything that the primary has written by now; None to use
        the primary. Raises DatabaseUnavailable when the primary does not answer."""
        now = self._primary.source.sample()
        if now.is_replica:
            self._primary.mark_lost()
            return None
        self._primary.note(now)
        following = [replica for replica in self._replicas if _follows(replica, now)]
        random.shuffle(following)
        for one in following:
            if one.latest is not None and one.latest.position >= now.position:
                return one.source
        for one in following[:1]:
            if self._catches_up(one, now):
                return one.source
        return None

    def _catches_up(self, one: WatchedServer[S], wanted: Sample) -> bool:
        """Wait until a replica has replayed up to `wanted`, for a limited time."""
        if one.latest is None or one.latest.position < one.missed:
            return False
        ends_at, pause_s = time.monotonic() + self._wait_s, _FIRST_PAUSE_S
        while True:
            try:
                found = one.source.sample()
            except PortalError:
                one.mark_lost()
                return False
            if not found.is_replica:
                return False
            one.note(found)
            if found.position >= wanted.position and found.timeline == wanted.timeline:
                return True
            if time.monotonic() + pause_s > ends_at:
                one.missed = wanted.position
                return False
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _MAX_PAUSE_S)

    def find_fallback(self) -> S | None:
        """Return the most advanced replica, to read from while the primary is lost. It must have
        followed the primary and be at most a second behind its last known position. None if no
        replica qualifies, or when the primary has been lost for too long."""
        lost_at, known = self._lost_at, list(self._primary.history)
        is_over = lost_at is None or time.monotonic() - lost_at > self._outage_s
        if is_over or not known or known[-1].timeline is None:
            return None
        last = known[-1]
        before = [sample for sample in known if sample.at <= last.at - _OUTAGE_SLACK_S] or known[:1]
        able = [
            replica
            for replica in self._replicas
            if not replica.is_lost
            and replica.latest is not None
            and replica.latest.is_replica
            and replica.followed_timeline == last.timeline
            and replica.latest.position >= before[-1].position
        ]
        best = max(able, key=lambda one: one.latest.position if one.latest else 0, default=None)
        return best.source if best is not None else None

    def states(self) -> list[tuple[State, int | None]]:
        """Return for each server, in the order of the settings, its state and how many bytes it
        is behind. The primary among them is `ok`."""
        self.watch()
        primary = self._primary.latest
        return [_state(replica, primary) for replica in self._replicas]


def _follows(one: WatchedServer[S], primary: Sample) -> bool:
    latest = one.latest
    return (
        latest is not None
        and latest.is_replica
        and not one.is_lost
        and latest.timeline == primary.timeline
    )


def _state(one: WatchedServer[S], primary: Sample | None) -> tuple[State, int | None]:
    if one.latest is None or one.is_lost:
        return "unavailable", None
    if primary is None or (not one.latest.is_replica and one.latest.timeline == primary.timeline):
        return "ok", 0
    behind = max(0, primary.position - one.latest.position)
    if not _follows(one, primary):
        return "not_following", behind
    return ("behind" if one.latest.position < one.missed else "ok"), behind


def _execute_on(connection: psycopg.Connection[Any]) -> Callable[[str], Any]:
    return lambda statement: connection.execute(statement).fetchone()
