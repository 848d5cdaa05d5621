"""Vectors of texts that were embedded before, reused for the same text and model.

Only vectors of the owner's documents and of those that all users may see are reused. Otherwise the
time until a document is ready would reveal that another user's document has the same text.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from pgvector.sqlalchemy import Vector as VectorType
from sqlalchemy import Integer, column, text
from sqlalchemy.orm import Session

from portal.domain.embedding import Vector

_MAX_PLACES = 100


def find_vectors(
    session: Session, model_id: int, *, document_id: UUID, texts: Sequence[str]
) -> dict[str, Vector]:
    """Return the known vectors (dimensions,) of these texts, by text. Searches the documents in the
    same collection that are the owner's or open to all. For a text with very many matches only some
    are checked: embedding it again is cheaper than skipping all those of other users."""
    # Query all partitions, since the model's own may be dropped meanwhile.
    query = """
        SELECT wanted.place, present.embedding
        FROM unnest(CAST(:texts AS text[])) WITH ORDINALITY AS wanted (content, place)
        CROSS JOIN LATERAL (
            SELECT e.embedding
            FROM (
                SELECT id, document_id, collection_id FROM document_chunks
                WHERE content = wanted.content AND context IS NULL
                LIMIT :max_places
            ) c
            JOIN documents own ON own.id = :document_id AND own.collection_id = c.collection_id
            JOIN documents d ON d.id = c.document_id
            JOIN chunk_embeddings e ON e.chunk_id = c.id AND e.model_id = :model_id
            WHERE d.deleted_at IS NULL
              AND (d.visibility = 'shared' AND d.gate_id IS NULL OR d.owner_id = own.owner_id)
            LIMIT 1
        ) present
    """
    rows = session.execute(
        text(query).columns(column("place", Integer), column("embedding", VectorType)),
        {
            "texts": list(texts),
            "document_id": document_id,
            "model_id": model_id,
            "max_places": _MAX_PLACES,
        },
    )
    return {texts[place - 1]: vector for place, vector in rows}
