"""Redis, through which processes share limits and caches, and which may vanish at any moment.

Nobody waits for a Redis that is gone. The call that finds it gone gives up after `TIMEOUT_S`; from
then on everybody does without it at once, while a thread of our own looks after it and says when it
is back. No request ever pays for finding that out.
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
AGAIN_AFTER_S = 1.0
_PROBE_LIFE_S = 10

log = structlog.get_logger(__name__)

Result = TypeVar("Result")


class RedisStore:
    """One Redis behind a breaker. Safe between threads; not across a fork.

    `prefix` begins all keys. It has `portal`, which tells one portal from another where several
    use the same Redis: they share neither limits nor caches.

    Raises InvalidSetting for an address that is none; that nobody answers there is a warning.
    """

    def __init__(
        self,
        url: str,
        *,
        portal: str = "",
        timeout_s: float = TIMEOUT_S,
        again_after_s: float = AGAIN_AFTER_S,
    ) -> None:
        self.prefix = f"portal:{portal}"
        try:
            self.client = redis.Redis.from_url(
                url,
                socket_timeout=timeout_s,
                socket_connect_timeout=timeout_s,
                # The library's own patience is three attempts, seconds apart.
                retry=Retry(NoBackoff(), 0),
            )
        except ValueError:
            raise InvalidSetting(
                name="REDIS_URL",
                got="a value that is not shown",
                takes="an address such as redis://host:6379/0, rediss://… or unix:///path",
            ) from None
        self._again_after_s = again_after_s
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._is_up = True
        self.attempt(self._probe, lambda: None)

    @property
    def is_up(self) -> bool:
        """Whether Redis answered when it was last asked."""
        return self._is_up

    def attempt(self, action: Callable[[], Result], otherwise: Callable[[], Result]) -> Result:
        """What `action` gives, which may use `client`; what `otherwise` gives without Redis."""
        if not self._is_up:
            return otherwise()
        try:
            return action()
        except (redis.RedisError, OSError) as error:
            self._lose(error)
            return otherwise()

    def get(self, key: str) -> bytes | None:
        """What is kept under a key, None where nothing is or Redis is gone."""
        return self.attempt(
            lambda: cast("bytes | None", self.client.get(f"{self.prefix}:{key}")), lambda: None
        )

    def put(self, key: str, value: bytes, *, ttl_s: int) -> None:
        """Keep bytes for so many seconds, if Redis is there."""
        self.attempt(lambda: self.client.set(f"{self.prefix}:{key}", value, ex=ttl_s), lambda: None)

    def close(self) -> None:
        """Look after it no more, and end its connections."""
        self._closed.set()
        self.client.close()

    def _probe(self) -> None:
        # Something written: a Redis that is full, or only a replica by now, does not serve us.
        self.client.set(f"{self.prefix}:probe", b"1", ex=_PROBE_LIFE_S)

    def _lose(self, error: Exception) -> None:
        metrics.dependency_failed("redis")
        with self._lock:
            if not self._is_up:
                return
            self._is_up = False
        log.warning(
            "Redis is gone: limits and caches go on in memory, each process by itself",
            error_type=type(error).__name__,
        )
        threading.Thread(target=self._watch, name="redis", daemon=True).start()

    def _watch(self) -> None:
        while not self._closed.wait(self._again_after_s):
            try:
                self._probe()
            except (redis.RedisError, OSError):
                continue
            self._is_up = True
            log.info("Redis is back: limits and caches are shared again")
            return
