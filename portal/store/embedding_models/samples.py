"""Stored chunks with their vectors by one model, and the constants that were fitted to them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from pgvector.sqlalchemy import Vector as VectorType
from sqlalchemy import text
from sqlalchemy.orm import Session

from portal.domain.embedding import Vector
from portal.store.embedding_models.registry import RegisteredModel

# The constants affect what every user reads, so private chunks are left out.
_SHARED = "shared_chunks s WHERE s.chunk_id = e.chunk_id"


@dataclass(frozen=True, slots=True, eq=False)
class SampledVectors:
    """Vectors (n, dim) of chunks, and the language of each."""

    vectors: Vector
    languages: tuple[str, ...]


def sample_vectors(session: Session, model: RegisteredModel, *, limit: int) -> SampledVectors:
    """Return shared chunks from all over the corpus, the same ones each time."""
    statement = f"""
        SELECT c.language, e.embedding
        FROM (
            SELECT e.chunk_id, e.embedding FROM {model.partition} e
            WHERE EXISTS (SELECT 1 FROM {_SHARED})
            ORDER BY md5(CAST(e.chunk_id AS text)) LIMIT :limit
        ) e
        JOIN document_chunks c ON c.id = e.chunk_id
    """
    clause = text(statement).columns(embedding=VectorType())
    rows = session.execute(clause, {"limit": limit}).all()
    vectors = np.array([row.embedding for row in rows], dtype=np.float32)
    return SampledVectors(vectors, tuple(row.language for row in rows))


def sample_embedded(
    session: Session, model: RegisteredModel, *, limit: int
) -> tuple[list[str], Vector]:
    """Return some chunks, the same ones each time, and their vectors (n, dim) by the model."""
    statement = f"""
        SELECT concat_ws(E'\\n', c.context, c.content) AS embedded, e.embedding
        FROM {model.partition} e JOIN document_chunks c ON c.id = e.chunk_id
        ORDER BY e.chunk_id LIMIT :limit
    """
    clause = text(statement).columns(embedding=VectorType())
    rows = session.execute(clause, {"limit": limit}).all()
    vectors = np.array([row.embedding for row in rows], dtype=np.float32)
    return [row.embedded for row in rows], vectors


def count_chunks(session: Session, model: RegisteredModel) -> int:
    """Count shared chunks with vectors by the model."""
    statement = f"""
        SELECT count(*) FROM {model.partition} e WHERE EXISTS (SELECT 1 FROM {_SHARED})
    """
    return int(session.execute(text(statement)).scalar_one())


def read_constants(session: Session, model: RegisteredModel) -> dict[str, Any] | None:
    statement = text("SELECT calibration FROM embedding_models WHERE id = :id")
    found: dict[str, Any] | None = session.execute(statement, {"id": model.id}).scalar_one_or_none()
    return found


def save_constants(session: Session, model: RegisteredModel, constants: Mapping[str, Any]) -> None:
    session.execute(
        text("UPDATE embedding_models SET calibration = CAST(:made AS jsonb) WHERE id = :id"),
        {"made": json.dumps(constants), "id": model.id},
    )
