"""Serialisation of the support of each sentence for the column of messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from portal.domain.answering import SentenceSupport


def to_support(values: Sequence[Any]) -> SentenceSupport:
    """Parse [start, end, markers, is supported, likeness]."""
    start, end, markers, is_supported, likeness = values
    return SentenceSupport(start, end, tuple(markers), is_supported, likeness)


def from_support(support: Sequence[SentenceSupport]) -> list[list[Any]]:
    """Convert to the column's format."""
    return [[s.start, s.end, list(s.markers), s.is_supported, s.likeness] for s in support]
