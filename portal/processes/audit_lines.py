"""The audit log as `portal audit` prints it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC

from portal.domain.audit import AuditEntry
from portal.observability.redaction import escape_controls


def plain_lines(entries: Iterator[AuditEntry]) -> Iterator[str]:
    """Yield one line for each entry: time, event, who, to what, from where."""
    for entry in entries:
        time = entry.created_at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
        words = [time, entry.event, f"by {entry.actor_name or entry.source}"]
        if entry.subject_kind:
            words.append(f"{entry.subject_kind} {entry.subject_title or entry.subject_id or ''}")
        if entry.address:
            words.append(f"from {entry.address}")
        yield escape_controls("  ".join(words)) + "\n"
