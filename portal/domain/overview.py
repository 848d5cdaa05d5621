"""The overview that administrators see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True, slots=True)
class Day:
    """One day: answers, those without an answer in the documents among them, uploads that were read
    and that failed, and the bytes of all documents that were there at its end."""

    day: date
    answers: int
    unanswered: int
    read: int
    failed: int
    stored_bytes: int


@dataclass(frozen=True, slots=True)
class Bucket:
    """A count of values above the previous bucket's limit and at most `limit`; None: no limit."""

    limit: float | None
    count: int


@dataclass(frozen=True, slots=True)
class Overview:
    """`latency_s` and `hits` are those of searches since the processes began, `waiting` and
    `working` the jobs of documents now."""

    days: Sequence[Day]
    latency_s: Sequence[Bucket]
    hits: Sequence[Bucket]
    waiting: int
    working: int
