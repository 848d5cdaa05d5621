"""Parse ids from query strings and forms, where anything may have been typed."""

from __future__ import annotations

from uuid import UUID


def as_uuid(text: str | None) -> UUID | None:
    """Return the UUID, or None for anything else."""
    try:
        return UUID(text) if text else None
    except ValueError:
        return None
