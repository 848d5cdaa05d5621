"""The chunks before and after a chunk in its document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import text

from portal.store.statements import Reader, fetch_named
from portal.text.layout.joining import Fragment


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The chunks around another one, None at the ends of a section."""

    before: Fragment | None = None
    after: Fragment | None = None


# Chunks under another heading are on another subject, and chunks added by a program have no
# neighbours. The unique key (job_id, chunk_index) finds each neighbour.
_NEIGHBOURS = text(
    """
    SELECT c.id, n.chunk_index < c.chunk_index AS is_before, n.content, n.char_start, n.char_end
    FROM document_chunks c
    JOIN document_chunks n
      ON n.job_id = c.job_id AND n.chunk_index IN (c.chunk_index - 1, c.chunk_index + 1)
     AND n.heading IS NOT DISTINCT FROM c.heading
     AND n.char_start IS NOT NULL AND c.char_start IS NOT NULL
    WHERE c.id = ANY(CAST(:chunk_ids AS uuid[]))
    """
)


def neighbours(reader: Reader, chunk_ids: Sequence[UUID]) -> dict[UUID, Neighbours]:
    """Return the chunks before and after each chunk under the same heading, in one statement."""
    if not chunk_ids:
        return {}
    before: dict[UUID, Fragment] = {}
    after: dict[UUID, Fragment] = {}
    row: Any
    for row in fetch_named(reader, _NEIGHBOURS, {"chunk_ids": list(chunk_ids)}):
        side = before if row.is_before else after
        side[row.id] = Fragment(row.content, row.char_start, row.char_end)
    return {
        chunk_id: Neighbours(before.get(chunk_id), after.get(chunk_id)) for chunk_id in chunk_ids
    }
