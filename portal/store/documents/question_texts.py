"""Texts to suggest questions from: the newest documents of a user's selection."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.orm import Session

from portal.domain.documents import Heading
from portal.domain.documents.structure import Block, BlockKind
from portal.domain.people import User
from portal.store.documents.selection import (
    PORTAL_COLLECTION,
    SELECTION_JOINS,
    SELECTION_WHERE,
    selection_binds,
)

_MAX_CHARACTERS = 20_000
_MAX_PARTS = 200

_TEXTS = text(
    f"""
    SELECT d.title, left(r.text, {_MAX_CHARACTERS}) AS body,
           jsonb_path_query_array(r.headings, '$[0 to {_MAX_PARTS}]') AS headings,
           jsonb_path_query_array(r.blocks, '$[0 to {_MAX_PARTS}]') AS blocks
    FROM documents d {SELECTION_JOINS}
    JOIN collections c ON c.id = d.collection_id
    JOIN jobs j ON j.id = d.current_job_id
    JOIN document_revisions r ON r.id = j.revision_id
    WHERE c.name = :collection AND {SELECTION_WHERE}
    ORDER BY d.created_at DESC, d.id
    LIMIT :limit
    """
)


@dataclass(frozen=True, slots=True)
class QuestionText:
    """The beginning of a document's text, with its headings and tables."""

    title: str
    body: str
    headings: tuple[Heading, ...]
    tables: tuple[Block, ...]


def read_newest(session: Session, user: User, *, limit: int) -> list[QuestionText]:
    """Return the newest documents that a user may see and has switched on."""
    binds = selection_binds(user, None) | {"collection": PORTAL_COLLECTION, "limit": limit}
    return [
        QuestionText(
            title=row.title,
            body=row.body,
            headings=tuple(Heading(*heading) for heading in row.headings),
            tables=tuple(
                block
                for block in map(Block.from_json, row.blocks)
                if block.kind is BlockKind.TABLE and block.end <= len(row.body)
            ),
        )
        for row in session.execute(_TEXTS, binds)
    ]
