"""Nearest chunks by one model alone, and sample questions, for comparing two models."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.orm import Session

from portal.domain.embedding import Vector
from portal.settings import SearchSettings
from portal.store.binary_parameters import VectorParameter
from portal.store.embedding_models.registry import RegisteredModel
from portal.store.embedding_models.vector_index import scan_settings
from portal.store.statements import fetch_under


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A chunk near a query, and its document."""

    chunk_id: UUID
    title: str
    file_stem: str


@dataclass(frozen=True, slots=True)
class SampledChunk:
    id: UUID
    content: str


_SEARCHABLE = "documents d WHERE d.current_job_id = {leg}.job_id AND d.deleted_at IS NULL"
_FILE_STEM = r"regexp_replace(d.file_name, '\.[^.]*$', '')"


def nearest(
    session: Session, model: RegisteredModel, vector: Vector, *, search: SearchSettings, limit: int
) -> list[Neighbour]:
    """Return the nearest chunks to a query vector by one model, as its index finds them."""
    candidates = limit * model.candidate_factor
    statement = f"""
        SELECT near.chunk_id, d.title, {_FILE_STEM} AS file_stem
        FROM (
            SELECT e.chunk_id, e.job_id, {model.exact_distance("e", "vector")} AS distance
            FROM {model.partition} e
            WHERE EXISTS (SELECT 1 FROM {_SEARCHABLE.format(leg="e")})
            ORDER BY {model.order_expression("e", "vector")}
            LIMIT :candidates
        ) near
        JOIN documents d ON d.current_job_id = near.job_id
        ORDER BY near.distance, near.chunk_id
        LIMIT :limit
    """
    binds = {"vector": VectorParameter(vector), "candidates": candidates, "limit": limit}
    rows = fetch_under(session, scan_settings(search, candidates), text(statement), binds)
    return [Neighbour(*row) for row in rows]


def sample_chunks(session: Session, *, limit: int) -> list[SampledChunk]:
    """Return searchable chunks from all over the corpus, the same ones each time."""
    statement = f"""
        SELECT c.id, c.content FROM document_chunks c
        WHERE EXISTS (SELECT 1 FROM {_SEARCHABLE.format(leg="c")})
        ORDER BY md5(CAST(c.id AS text)) LIMIT :limit
    """
    return [SampledChunk(*row) for row in session.execute(text(statement), {"limit": limit})]


def document_names(session: Session) -> set[str]:
    """Return titles of searchable documents, and file names without their extension."""
    statement = f"""
        SELECT d.title, {_FILE_STEM} AS file_stem FROM documents d
        WHERE d.current_job_id IS NOT NULL AND d.deleted_at IS NULL
    """
    return {name for row in session.execute(text(statement)) for name in row}
