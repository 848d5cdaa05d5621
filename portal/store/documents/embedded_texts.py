"""Vectors of texts that were embedded before: the same words by the same model need no second one.

Nobody is served by what they may not see, not even in time saved: how quickly one's own document
becomes ready must not tell that somebody else has the same words in a private one.
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
    """By text the vectors (dimensions,) that passages of documents of a document's collection have
    which its owner may see, for those of these texts of which there are any. Of what stands in very
    many places some are looked at: to embed it is cheaper than to pass over all others'."""
    # Of all partitions, not of the model's own: that may be dropped meanwhile.
    query = """
        SELECT wanted.place, present.embedding
        FROM unnest(CAST(:texts AS text[])) WITH ORDINALITY AS wanted (content, place)
        CROSS JOIN LATERAL (
            SELECT e.embedding
            FROM (
                SELECT id, document_id, collection_id FROM document_chunks
                WHERE content = wanted.content AND context IS NULL
                LIMIT :most_places
            ) c
            JOIN documents own ON own.id = :document_id AND own.collection_id = c.collection_id
            JOIN documents d ON d.id = c.document_id
            JOIN chunk_embeddings e ON e.chunk_id = c.id AND e.model_id = :model_id
            WHERE d.deleted_at IS NULL
              AND (d.visibility = 'shared' OR d.owner_id = own.owner_id)
            LIMIT 1
        ) present
    """
    rows = session.execute(
        text(query).columns(column("place", Integer), column("embedding", VectorType)),
        {
            "texts": list(texts),
            "document_id": document_id,
            "model_id": model_id,
            "most_places": _MAX_PLACES,
        },
    )
    return {texts[place - 1]: vector for place, vector in rows}
