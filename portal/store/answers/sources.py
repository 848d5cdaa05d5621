"""Chunks that an answer is written from, and the earlier turns of its conversation.

Both depend on the current selection: a chunk that was found a moment ago is only read if it is
still enabled, and an earlier answer is withheld if one of its documents no longer is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.orm import Session

from portal.domain.answering import Source
from portal.domain.documents.structure import Block, BlockKind
from portal.domain.people import User
from portal.store.documents.outlines import label_of_chunk
from portal.store.documents.selection import SELECTION_JOINS, SELECTION_WHERE, selection_binds


@dataclass(frozen=True, slots=True)
class PastMessage:
    """A message before the question. `rests_on` are the documents that it cites or consulted, or
    that earlier answers in its prompt did, with None for a deleted one; `is_withheld` if one of
    them is no longer enabled, or not for this user."""

    role: str
    content: str
    is_withheld: bool
    rests_on: frozenset[UUID | None]


# The key in an answer's replay for the documents behind the history in its prompt, which the answer
# may repeat without citing them.
HISTORY_RESTS_ON = "history_rests_on"

_SOURCES = text(
    f"""
    SELECT c.id AS chunk_id, d.id AS document_id,
           CASE WHEN c.char_start IS NOT NULL THEN j.revision_id END AS revision_id,
           d.title, d.media_type, c.content AS text, COALESCE(c.char_start, 0) AS char_start,
           COALESCE(c.char_end, char_length(c.content)) AS char_end, c.language, c.page,
           {label_of_chunk("c")} AS page_label, c.heading,
           jsonb_path_query_array(
               r.headings, 'strict $[*][2] ? (@ >= $start && @ < $end)',
               jsonb_build_object('start', c.char_start, 'end', c.char_end)
           ) AS heading_starts, c.context, c.blocks
    FROM document_chunks c
    JOIN documents d ON d.current_job_id = c.job_id
    JOIN jobs j ON j.id = c.job_id
    LEFT JOIN document_revisions r ON r.id = j.revision_id AND c.char_start IS NOT NULL
    {SELECTION_JOINS}
    WHERE c.id = ANY(:chunk_ids) AND {SELECTION_WHERE}
    """
)

# The limit is more than fits into the token budget of any conversation.
_PAST = text(
    f"""
    SELECT m.role, m.content, EXISTS (
        SELECT FROM unnest(basis.ids) AS used(id)
        WHERE NOT EXISTS (
            SELECT FROM documents d {SELECTION_JOINS}
            WHERE d.id = used.id AND {SELECTION_WHERE}
        )
    ) AS is_withheld, basis.ids AS rests_on
    FROM messages m
    CROSS JOIN LATERAL (
        SELECT COALESCE(array_agg(one.id), '{{}}') AS ids
        FROM (
            SELECT document_id AS id FROM citations WHERE citations.message_id = m.id
            UNION
            SELECT CAST(jsonb_array_elements_text(
                m.retrieval #> '{{extra,{HISTORY_RESTS_ON}}}') AS uuid)
        ) one
    ) basis
    WHERE m.conversation_id = :conversation_id AND m.superseded_at IS NULL
      AND (CAST(:before AS bigint) IS NULL OR m.position < :before)
    ORDER BY m.position DESC
    LIMIT 40
    """
)


def use_one_snapshot(session: Session) -> None:
    """Have all statements of this transaction see one snapshot. Must be its first."""
    session.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"))


def read_sources(
    session: Session, user: User, conversation_id: UUID | None, chunk_ids: Sequence[UUID]
) -> dict[UUID, Source]:
    """Return the chunks with these ids that are enabled for a user in a conversation, or outside of
    one, by id. They have no numbers and no scores."""
    binds: dict[str, Any] = selection_binds(user, conversation_id)
    rows = session.execute(_SOURCES, binds | {"chunk_ids": list(chunk_ids)})
    return {row.chunk_id: _to_source(row) for row in rows}


def _to_source(row: Any) -> Source:
    starts = (start - row.char_start for start in row.heading_starts or ())
    blocks = (Block.from_json(block) for block in row.blocks)
    return Source(
        **row._asdict()
        | {
            "heading_starts": frozenset(starts),
            "blocks": tuple(block for block in blocks if block.kind is not BlockKind.IMAGE),
        }
    )


_FIRST_CHUNKS = text(
    """
    SELECT c.id FROM document_chunks c JOIN documents d ON d.current_job_id = c.job_id
    WHERE d.id = :document_id ORDER BY c.chunk_index LIMIT :limit
    """
)


def first_chunks(session: Session, document_id: UUID, *, limit: int) -> tuple[UUID, ...]:
    """Return the first chunks of a document's current revision, in order. `read_sources` leaves out
    those that a user may not read."""
    rows = session.execute(_FIRST_CHUNKS, {"document_id": document_id, "limit": limit})
    return tuple(rows.scalars())


_LAST_CITED = text(
    """
    SELECT DISTINCT ON (c.document_id, c.chunk_index) c.id
    FROM citations
    JOIN document_chunks c ON c.id = citations.chunk_id
    JOIN documents d ON d.current_job_id = c.job_id
    WHERE citations.was_cited AND citations.message_id = (
        SELECT m.id FROM messages m
        WHERE m.conversation_id = :conversation_id AND m.superseded_at IS NULL
          AND m.role = 'assistant' AND (CAST(:before AS bigint) IS NULL OR m.position < :before)
        ORDER BY m.position DESC LIMIT 1
    )
    ORDER BY c.document_id, c.chunk_index
    """
)


def last_cited_chunks(
    session: Session, conversation_id: UUID, *, before: int | None
) -> tuple[UUID, ...]:
    """Return the chunks that the last answer before a position cites, if they are still current.
    `read_sources` leaves out those that a user may not read."""
    values = {"conversation_id": conversation_id, "before": before}
    return tuple(session.execute(_LAST_CITED, values).scalars())


_COUNT_CHUNKS = text(
    """
    SELECT count(*) FROM document_chunks c JOIN documents d ON d.current_job_id = c.job_id
    WHERE d.id = ANY(:document_ids)
    """
)


def count_chunks(session: Session, document_ids: Iterable[UUID]) -> int:
    """Return how many chunks the current revisions of documents have."""
    values = {"document_ids": list(document_ids)}
    return int(session.execute(_COUNT_CHUNKS, values).scalar_one())


_FIRST_HEADINGS = text(
    """
    SELECT d.id, r.headings #>> '{0,1}' AS heading
    FROM documents d JOIN jobs j ON j.id = d.current_job_id
    JOIN document_revisions r ON r.id = j.revision_id
    WHERE d.id = ANY(:document_ids) AND r.headings #>> '{0,1}' <> ''
    """
)


def first_headings(session: Session, document_ids: Sequence[UUID]) -> dict[UUID, str]:
    """Return the first heading of each document that has one."""
    rows = session.execute(_FIRST_HEADINGS, {"document_ids": list(document_ids)})
    return {row.id: row.heading for row in rows}


def read_past(
    session: Session, user: User, conversation_id: UUID, *, before: int | None
) -> tuple[PastMessage, ...]:
    """Return the last messages before a position, in order; without a position, the last ones."""
    binds = selection_binds(user, conversation_id) | {"before": before}
    rows = session.execute(_PAST, binds).all()
    return tuple(
        PastMessage(row.role, row.content, row.is_withheld, frozenset(row.rests_on))
        for row in reversed(rows)
    )
