"""Read chunks of the portal's own documents, as a user sees them in or outside a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
from pgvector.sqlalchemy import Vector as VectorType
from sqlalchemy import text
from sqlalchemy.orm import Session

from portal.domain.embedding import Vector
from portal.domain.people import User
from portal.domain.search.metadata_filter import MetadataFilter
from portal.store.documents.outlines import label_of_chunk
from portal.store.documents.selection import (
    PORTAL_COLLECTION,
    SELECTION_JOINS,
    SELECTION_WHERE,
    selection_binds,
)
from portal.store.embedding_models.registry import RegisteredModel
from portal.store.search.filters.metadata import metadata_condition


@dataclass(frozen=True, slots=True)
class PortalChunk:
    """One chunk and its document. `metadata` was stored with it by extraction or a program; without
    a revision, `content` is all of its text."""

    id: UUID
    document_id: UUID
    revision_id: UUID | None
    title: str
    media_type: str
    visibility: str
    domain: str | None
    language: str
    content: str
    char_start: int
    char_end: int
    page: int | None
    page_label: str | None
    heading: str | None
    metadata: dict[str, Any]


_FROM = f"""
    FROM document_chunks c
    JOIN documents d ON d.current_job_id = c.job_id
    JOIN collections collection
        ON collection.id = d.collection_id AND collection.name = '{PORTAL_COLLECTION}'
    JOIN jobs j ON j.id = c.job_id
    {SELECTION_JOINS}
    WHERE {SELECTION_WHERE}
"""
_COLUMNS = f"""
    c.id, d.id, CASE WHEN c.char_start IS NOT NULL THEN j.revision_id END, d.title, d.media_type,
    d.visibility, d.domain, c.language, c.content, COALESCE(c.char_start, 0),
    COALESCE(c.char_end, char_length(c.content)), c.page, {label_of_chunk("c")}, c.heading,
    c.metadata
"""


def list_chunks(
    session: Session,
    user: User,
    conversation_id: UUID | None,
    *,
    ids: Sequence[UUID] | None = None,
    metadata: MetadataFilter | None = None,
    limit: int | None = None,
    offset: int = 0,
) -> list[PortalChunk]:
    """Return enabled chunks in the order in which they were added."""
    binds = selection_binds(user, conversation_id) | {"limit": limit, "offset": offset}
    conditions = ""
    if ids is not None:
        binds["chunk_ids"] = list(ids)
        conditions += " AND c.id = ANY(:chunk_ids)"
    if metadata is not None:
        conditions += f" AND {metadata_condition(metadata, binds)}"
    statement = f"SELECT {_COLUMNS} {_FROM} {conditions} ORDER BY c.id LIMIT :limit OFFSET :offset"
    return [PortalChunk(*row) for row in session.execute(text(statement), binds)]


def count(session: Session, user: User, conversation_id: UUID | None) -> int:
    binds = selection_binds(user, conversation_id)
    return session.scalar(text(f"SELECT count(*) {_FROM}"), binds) or 0


def vectors(session: Session, model: RegisteredModel, ids: Sequence[UUID]) -> dict[UUID, Vector]:
    """Return the vectors (dimensions,) that `model` gave these chunks, without those it has not
    embedded yet."""
    statement = text(
        f"SELECT chunk_id, embedding FROM {model.partition} WHERE chunk_id = ANY(:ids)"
    ).columns(embedding=VectorType())
    rows = session.execute(statement, {"ids": list(ids)})
    return {chunk_id: np.asarray(stored, dtype=np.float32) for chunk_id, stored in rows}
