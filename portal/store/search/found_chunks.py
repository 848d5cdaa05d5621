"""Passages that a search found, whole: their text, what is known of them, how near they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Uuid, bindparam, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Session

from portal.domain.embedding import Vector
from portal.domain.people import User
from portal.store.documents.selection import SELECTION_JOINS, SELECTION_WHERE, selection_binds
from portal.store.embedding_models.registry import RegisteredModel
from portal.store.search.query_filters import CONTENT_TYPE
from portal.store.vector_parameters import VectorParameter


@dataclass(frozen=True, slots=True)
class WholeChunk:
    """A passage with its metadata: what the portal knows of it, and what a program said."""

    id: UUID
    document_id: UUID
    content: str
    metadata: dict[str, Any]


_CHUNKS = text(
    f"""
    SELECT c.id, c.document_id, c.content, jsonb_build_object(
               'title', d.title, 'content_type', {CONTENT_TYPE}, 'page', c.page,
               'heading', c.heading, 'chunk_index', c.chunk_index) || c.metadata AS metadata
    FROM document_chunks c
    JOIN documents d ON d.current_job_id = c.job_id {SELECTION_JOINS}
    WHERE c.id = ANY(:chunk_ids) AND {SELECTION_WHERE}
    """
).bindparams(bindparam("chunk_ids", type_=ARRAY(Uuid)))


def read_chunks(session: Session, user: User, chunk_ids: Sequence[UUID]) -> dict[UUID, WholeChunk]:
    """Those of these passages that count for a person, by id."""
    binds = selection_binds(user, None) | {"chunk_ids": list(chunk_ids)}
    return {row.id: WholeChunk(*row) for row in session.execute(_CHUNKS, binds)}


def similarities(
    session: Session, model: RegisteredModel, vector: Vector, chunk_ids: Sequence[UUID]
) -> dict[UUID, float]:
    """Cosines of passages to a vector (dimensions,) of this model, of those that have one by it."""
    distance = model.exact_distance("e", "vector")
    statement = text(
        f"SELECT e.chunk_id, 1 - {distance} FROM {model.partition} e"
        " WHERE e.chunk_id = ANY(:chunk_ids)"
    ).bindparams(bindparam("chunk_ids", type_=ARRAY(Uuid)))
    binds = {"vector": VectorParameter(vector), "chunk_ids": list(chunk_ids)}
    return {chunk_id: float(cosine) for chunk_id, cosine in session.execute(statement, binds)}
