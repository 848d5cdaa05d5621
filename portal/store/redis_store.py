"""The Redis through which processes share limits and caches, and which may become unreachable.

The call that finds Redis unreachable gives up after `TIMEOUT_S`. From then on all calls continue
without it at once, while a background thread checks for its return, so that requests do not wait
for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar, cast

import redis
import structlog
from redis.backoff import NoBackoff
from redis.retry import Retry

from portal.errors import InvalidSetting
from portal.observability import metrics

TIMEOUT_S = 0.1
RETRY_AFTER_S = 1.0
_PROBE_LIFE_S = 10

log = structlog.get_logger(__name__)

Result = TypeVar("Result")


class RedisStore:
    """A Redis behind a circuit breaker. Thread-safe, but not usable across a fork.

    All keys begin with `prefix`. It includes `portal`, which separates several portals on the same
    Redis: they share neither limits nor caches.

    Raises InvalidSetting for an invalid address; an unreachable server is a warning.
    """

    def __init__(self, url: str, *, portal: str = "", retry_after_s: float = RETRY_AFTER_S) -> None:
        self.prefix = f"portal:{portal}"
        try:
            self.client = redis.Redis.from_url(
                url,
                socket_timeout=TIMEOUT_S,
                socket_connect_timeout=TIMEOUT_S,
                # The library's default is three attempts, seconds apart.
                retry=Retry(NoBackoff(), 0),
            )
        except ValueError:
            raise InvalidSetting(
                name="REDIS_URL",
                got="a value that is not shown",
                takes="an address such as redis://host:6379/0, rediss://… or unix:///path",
            ) from None
        self._retry_after_s = retry_after_s
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self.is_up = True  # Whether Redis answered the last time.
        self.attempt(self._probe, lambda: None)

    def attempt(self, action: Callable[[], Result], otherwise: Callable[[], Result]) -> Result:
        """Return the result of `action`, which may use `client`, or of `otherwise` without
        Redis."""
        if not self.is_up:
            return otherwise()
        try:
            return action()
        except (redis.RedisError, OSError) as error:
            self._lose(error)
            return otherwise()

    def get(self, key: str) -> bytes | None:
        """Return the value of a key; None if it has none or Redis is unreachable."""
        return self.attempt(
            lambda: cast("bytes | None", self.client.get(f"{self.prefix}:{key}")), lambda: None
        )

    def put(self, key: str, value: bytes, *, ttl_s: int) -> None:
        """Store bytes for a number of seconds, if Redis is reachable."""
        self.attempt(lambda: self.client.set(f"{self.prefix}:{key}", value, ex=ttl_s), lambda: None)

    def close(self) -> None:
        """Stop checking Redis, and close its connections."""
        self._closed.set()
        self.client.close()

    def _probe(self) -> None:
        # Write, because a Redis that is full or has become a replica is of no use.
        self.client.set(f"{self.prefix}:probe", b"1", ex=_PROBE_LIFE_S)

    def _lose(self, error: Exception) -> None:
        metrics.dependency_failed("redis")
        with self._lock:
            if not self.is_up:
                return
            self.is_up = False
        log.warning(
            "Redis is gone: limits and caches go on in memory, each process by itself",
            error_type=type(error).__name__,
        )
        threading.Thread(target=self._watch, name="redis", daemon=True).start()

    def _watch(self) -> None:
        while not self._closed.wait(self._retry_after_s):
            try:
                self._probe()
            except (redis.RedisError, OSError):
                continue
            self.is_up = True
            log.info("Redis is back: limits and caches are shared again")
            return
