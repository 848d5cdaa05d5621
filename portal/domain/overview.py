"""The overview that administrators see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True, slots=True)
class Day:
    """One day: answers, how many of them found nothing in the documents, uploads that were read or
    failed, and the bytes of all documents at its end."""

    day: date
    answers: int
    unanswered: int
    read: int
    failed: int
    stored_bytes: int


@dataclass(frozen=True, slots=True)
class Bucket:
    """A count of values above the previous bucket's limit, up to `limit`; None means no limit."""

    limit: float | None
    count: int


@dataclass(frozen=True, slots=True)
class Overview:
    """`latency_s` and `hits` are about searches since the processes started, `waiting` and
    `working` are the current numbers of document jobs."""

    days: Sequence[Day]
    latency_s: Sequence[Bucket]
    hits: Sequence[Bucket]
    waiting: int
    working: int
