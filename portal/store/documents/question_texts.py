"""Texts to suggest questions from: the newest documents of a user's selection."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.orm import Session

from portal.domain.documents import Heading, MediaType
from portal.domain.people import User
from portal.store.documents.selection import (
    PORTAL_COLLECTION,
    SELECTION_JOINS,
    SELECTION_WHERE,
    selection_binds,
)

_MAX_CHARACTERS = 20_000
_MAX_HEADINGS = 200
# Sheets have names but no subjects, and questions in e-mails are meant for their recipients.
_UNFIT = [MediaType.CSV, MediaType.XLSX, MediaType.EML]

_TEXTS = text(
    f"""
    SELECT d.title, left(r.text, {_MAX_CHARACTERS}) AS body,
           jsonb_path_query_array(r.headings, '$[0 to {_MAX_HEADINGS}]') AS headings
    FROM documents d {SELECTION_JOINS}
    JOIN collections c ON c.id = d.collection_id
    JOIN jobs j ON j.id = d.current_job_id
    JOIN document_revisions r ON r.id = j.revision_id
    WHERE c.name = :collection AND d.media_type <> ALL(:unfit) AND {SELECTION_WHERE}
    ORDER BY d.created_at DESC, d.id
    LIMIT :limit
    """
)


@dataclass(frozen=True, slots=True)
class QuestionText:
    """The beginning of a document's text, with its headings."""

    title: str
    body: str
    headings: tuple[Heading, ...]


def read_newest(session: Session, user: User, *, limit: int) -> list[QuestionText]:
    """Return the newest documents that a user may see and has switched on, without sheets and
    e-mail."""
    binds = selection_binds(user, None)
    binds |= {"collection": PORTAL_COLLECTION, "unfit": _UNFIT, "limit": limit}
    return [
        QuestionText(row.title, row.body, tuple(Heading(*heading) for heading in row.headings))
        for row in session.execute(_TEXTS, binds)
    ]
