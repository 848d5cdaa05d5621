"""Storage of chunks with everything a search needs: terms, language, vocabulary and vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from portal.domain.documents import Chunk
from portal.services import Services
from portal.services.models import catalog
from portal.services.models.catalog import ModelVectors
from portal.store.documents import vocabulary
from portal.store.documents.texts import chunks as chunk_store
from portal.store.embedding_models import registry
from portal.store.embedding_models.registry import RegisteredModel
from portal.store.session import Session
from portal.text.language import detect_language
from portal.text.terms.analyser import analyser_version, index_terms


@dataclass(frozen=True, slots=True)
class ChunkOwner:
    """The job and document that chunks belong to, with its title."""

    job_id: UUID
    document_id: UUID
    collection_id: UUID
    title: str


@dataclass(frozen=True, slots=True)
class ChunkToStore:
    """A chunk to store, with its metadata."""

    chunk: Chunk
    metadata: Mapping[str, Any] = field(default_factory=dict)


Prepare = Callable[[Session], tuple[ChunkOwner, Sequence[ChunkToStore]]]
Finish = Callable[[Session, ChunkOwner, Sequence[UUID]], None]


def store(
    services: Services,
    texts: Sequence[str],
    prepare: Prepare,
    *,
    document_id: UUID,
    finish: Finish | None = None,
    vectors: ModelVectors | None = None,
) -> list[UUID]:
    """Store chunks of these texts with their vectors from every registered model; return their ids.

    All are stored in one transaction or none.

    `prepare` is called in that transaction, maybe more than once: it takes the locks, raises if
    storing is not allowed, and returns the rows to store. `finish` is called after the insert, in
    the same transaction, with the ids. Without `vectors` the texts are embedded first; in any case
    they are embedded for a model that was registered or activated meanwhile. Raises what
    `catalog.embed_for_all` raises.
    """
    # Embedding is slow and must not hold a transaction open.
    if vectors is None:
        vectors = catalog.embed_for_all(services, texts, document_id=document_id)
    while True:
        with services.database.begin() as session:
            owner, chunks = prepare(session)
            kept = registry.hold_models(session)
            if all(_is_embedded(model, vectors) for model in kept):
                chunk_ids = _insert(session, owner, chunks, kept, vectors)
                if finish is not None:
                    finish(session, owner, chunk_ids)
                return chunk_ids
        vectors = catalog.embed_for_all(services, texts, vectors, document_id=document_id)


def _is_embedded(model: RegisteredModel, vectors: ModelVectors) -> bool:
    """Return whether a model has been asked for vectors; the active one must have returned them."""
    if model.status == "active":
        return vectors.get(model.id) is not None
    return model.id in vectors


def _insert(
    session: Session,
    owner: ChunkOwner,
    chunks: Sequence[ChunkToStore],
    kept: Sequence[RegisteredModel],
    vectors: ModelVectors,
) -> list[UUID]:
    chunk_ids = chunk_store.add_chunks(session, [_row(owner, new) for new in chunks])
    texts = [
        chunk_text(owner.title, row.chunk.heading, row.chunk.context, row.chunk.content)
        for row in chunks
    ]
    vocabulary.add_words(session, texts)
    for model in kept:
        own = vectors[model.id]
        if own is None:
            registry.set_complete(session, model, is_complete=False)
        else:
            chunk_store.add_embeddings(
                session,
                model_id=model.id,
                document_id=owner.document_id,
                job_id=owner.job_id,
                chunk_ids=chunk_ids,
                vectors=own,
            )
    return chunk_ids


def _row(owner: ChunkOwner, new: ChunkToStore) -> dict[str, Any]:
    chunk = new.chunk
    return {
        "job_id": owner.job_id,
        "document_id": owner.document_id,
        "collection_id": owner.collection_id,
        "chunk_index": chunk.index,
        "content": chunk.content,
        "terms": chunk_terms(owner.title, chunk.heading, chunk.context, chunk.content),
        "analyser_version": analyser_version(),
        "language": detect_language(chunk.content),
        "page": chunk.page,
        "heading": chunk.heading,
        "context": chunk.context,
        "blocks": [block.as_json() for block in chunk.blocks],
        "char_start": chunk.char_start,
        "char_end": chunk.char_end,
        "attributes": dict(new.metadata),
    }


def embedded_text(chunk: Chunk) -> str:
    """Return the text to embed for a chunk; table rows get their header."""
    return f"{chunk.context}\n{chunk.content}" if chunk.context else chunk.content


def chunk_text(*parts: str | None) -> str:
    """Join a chunk's text with its title, heading and context, so that a search for a document's
    name finds it."""
    return "\n".join(part for part in parts if part)


def chunk_terms(title: str, heading: str | None, context: str | None, content: str) -> str:
    """Return the keyword-index terms of a chunk, each part on its own line."""
    parts = (content, context, heading, title)
    # Spaces around the line feeds keep every term delimited by spaces.
    return " \n ".join(index_terms(part or "") for part in parts)
