"""How the column of messages keeps what became of each sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from portal.domain.answering import SentenceSupport


def to_support(values: Sequence[Any]) -> SentenceSupport:
    """From [start, end, markers, is supported, likeness]."""
    start, end, markers, is_supported, likeness = values
    return SentenceSupport(start, end, tuple(markers), is_supported, likeness)


def from_support(support: Sequence[SentenceSupport]) -> list[list[Any]]:
    """As the column keeps it."""
    return [[s.start, s.end, list(s.markers), s.is_supported, s.likeness] for s in support]
