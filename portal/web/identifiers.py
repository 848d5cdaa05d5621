"""Ids that somebody may have typed: in the query of an address, in the field of a form."""

from __future__ import annotations

from uuid import UUID


def as_uuid(text: str | None) -> UUID | None:
    """None for what is none."""
    try:
        return UUID(text) if text else None
    except ValueError:
        return None
