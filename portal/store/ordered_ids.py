"""Ids in the order of time: UUIDs of version 7 (RFC 9562) with a counter after the timestamp."""

from __future__ import annotations

import os
import time
from threading import Lock
from uuid import UUID

_lock = Lock()
_last_ms = 0
_LOW_COUNTER_BITS = 20
_MAX = 1 << 32  # The range of the counter.
_RANDOM_BYTES = 5


def ids_in_order(count: int) -> list[UUID]:
    """Return new ids, each greater than the one before it and than all that this process made
    earlier."""
    global _last_ms  # noqa: PLW0603 - one clock a process.
    if count > _MAX:
        raise ValueError(f"at most {_MAX} ids at once")
    with _lock:
        _last_ms = max(time.time_ns() // 1_000_000, _last_ms + 1)
        now = _last_ms
    return [_id(now, number) for number in range(count)]


def _id(milliseconds: int, number: int) -> UUID:
    # 48 bits of time, the version, 12 bits of the counter, the variant, the counter's other 20
    # bits, 40 random bits and two zeros.
    high, low = divmod(number, 1 << _LOW_COUNTER_BITS)
    random = int.from_bytes(os.urandom(_RANDOM_BYTES))
    return UUID(int=milliseconds << 80 | 7 << 76 | high << 64 | 2 << 62 | low << 42 | random << 2)
