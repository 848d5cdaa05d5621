"""Write and delete records of programs' collections.

A record is a chunk with its own id, a vector and a document. Ids of documents derive from the
collection's id and the document's name there, so that none has to be looked up.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid5

from sqlalchemy import text
from sqlalchemy.orm import Session

from portal.domain.vector_collections import NewRecord, RecordFilter
from portal.store.binary_parameters import VectorParameter
from portal.store.collections.reads import condition_of
from portal.store.collections.rows import VectorCollection
from portal.store.embedding_models.registry import RegisteredModel
from portal.store.ordered_ids import ids_in_order
from portal.text.language import detect_language
from portal.text.terms.analyser import analyser_version, index_terms

_MEDIA_TYPE = "text/plain"


def document_id(collection_id: UUID, name: str) -> UUID:
    """Return the id of the document that records call `name`."""
    return uuid5(collection_id, f"document:{name}")


def _document_of(collection: VectorCollection, record: NewRecord) -> UUID:
    if record.document is not None:
        return document_id(collection.id, record.document)
    return uuid5(collection.id, f"record:{record.id}")


def write(
    session: Session,
    collection: VectorCollection,
    model: RegisteredModel,
    records: Sequence[NewRecord],
) -> None:
    """Store records with distinct ids, replacing those with the same ids. The collection must be
    locked for writing. Writing to a document in the trash restores it without its former
    records."""
    documents = [_document_of(collection, record) for record in records]
    left = _documents_of(session, collection, [record.id for record in records])
    _make_documents(session, collection, documents, records)
    chunk_ids = _write_chunks(session, collection, documents, records)
    _write_vectors(session, model, documents, chunk_ids, records)
    _publish(session, {*documents, *left})


def _documents_of(session: Session, collection: VectorCollection, ids: Sequence[str]) -> list[UUID]:
    query = text(
        """
        SELECT DISTINCT document_id FROM document_chunks
        WHERE collection_id = :collection AND external_id = ANY(CAST(:ids AS text[]))
        """
    )
    return list(session.scalars(query, {"collection": collection.id, "ids": list(ids)}))


_EMPTY_TRASHED = text(
    """
    DELETE FROM document_chunks USING documents d
    WHERE d.id = document_id AND d.id = ANY(CAST(:documents AS uuid[])) AND d.deleted_at IS NOT NULL
    """
)
# Private without an owner: a query that does not filter by collection then shows them to
# administrators only.
_DOCUMENTS = text(
    f"""
    INSERT INTO documents (id, collection_id, title, file_name, media_type, size_bytes, sha256,
                           visibility, status)
    SELECT new.id, :collection, '', new.name, '{_MEDIA_TYPE}', 0, new.sha256, 'private', 'ready'
    FROM unnest(CAST(:documents AS uuid[]), CAST(:names AS text[]), CAST(:hashes AS text[]))
         AS new (id, name, sha256)
    ON CONFLICT (id) DO UPDATE SET deleted_at = NULL, purged_at = NULL
    WHERE documents.deleted_at IS NOT NULL
    """
)
# All chunks of a document belong to a single job, which has the document's id.
_JOBS = text(
    """
    INSERT INTO jobs (id, document_id, status, finished_at)
    SELECT id, id, 'ready', now() FROM unnest(CAST(:documents AS uuid[])) AS new (id)
    ON CONFLICT (id) DO NOTHING
    """
)


def _make_documents(
    session: Session,
    collection: VectorCollection,
    documents: Sequence[UUID],
    records: Sequence[NewRecord],
) -> None:
    names = {
        document: record.document or record.id
        for document, record in zip(documents, records, strict=True)
    }
    binds: dict[str, Any] = {"documents": list(names)}
    session.execute(_EMPTY_TRASHED, binds)
    binds |= {"collection": collection.id, "names": list(names.values())}
    binds["hashes"] = [hashlib.sha256(name.encode()).hexdigest() for name in names.values()]
    session.execute(_DOCUMENTS, binds)
    session.execute(_JOBS, binds)


_NEXT_INDEX = text(
    """
    SELECT document_id, max(chunk_index) + 1 FROM document_chunks
    WHERE document_id = ANY(CAST(:documents AS uuid[])) GROUP BY document_id
    """
)
_CHUNKS = text(
    """
    INSERT INTO document_chunks (id, job_id, document_id, collection_id, external_id, chunk_index,
                                 content, terms, analyser_version, language, metadata)
    SELECT new.id, new.document, new.document, :collection, new.external_id, new.chunk_index,
           new.content, new.terms, :analyser, new.language, CAST(new.metadata AS jsonb)
    FROM unnest(CAST(:ids AS uuid[]), CAST(:documents AS uuid[]), CAST(:external_ids AS text[]),
                CAST(:indexes AS int[]), CAST(:contents AS text[]), CAST(:terms AS text[]),
                CAST(:languages AS text[]), CAST(:metadatas AS text[]))
         AS new (id, document, external_id, chunk_index, content, terms, language, metadata)
    ON CONFLICT (collection_id, external_id) WHERE external_id IS NOT NULL DO UPDATE
       SET job_id = excluded.job_id, document_id = excluded.document_id,
           chunk_index = CASE WHEN document_chunks.document_id = excluded.document_id
                              THEN document_chunks.chunk_index ELSE excluded.chunk_index END,
           content = excluded.content, terms = excluded.terms,
           analyser_version = excluded.analyser_version, language = excluded.language,
           metadata = excluded.metadata
    RETURNING external_id, id
    """
)


def _write_chunks(
    session: Session,
    collection: VectorCollection,
    documents: Sequence[UUID],
    records: Sequence[NewRecord],
) -> dict[str, UUID]:
    """Return the chunks' ids by record id."""
    following = session.execute(_NEXT_INDEX, {"documents": list(set(documents))})
    indexes: dict[UUID, int] = dict(following.all())
    places = []
    for document in documents:
        places.append(indexes.get(document, 0))
        indexes[document] = places[-1] + 1
    rows = session.execute(
        _CHUNKS,
        {
            "collection": collection.id,
            "analyser": analyser_version(),
            "ids": ids_in_order(len(records)),
            "documents": list(documents),
            "external_ids": [record.id for record in records],
            "indexes": places,
            "contents": [record.content for record in records],
            "terms": [index_terms(record.content) for record in records],
            "languages": [detect_language(record.content) for record in records],
            "metadatas": [json.dumps(dict(record.metadata)) for record in records],
        },
    )
    return dict(rows.all())


def _write_vectors(
    session: Session,
    model: RegisteredModel,
    documents: Sequence[UUID],
    chunk_ids: dict[str, UUID],
    records: Sequence[NewRecord],
) -> None:
    statement = text(
        f"""
        INSERT INTO {model.partition} (model_id, chunk_id, document_id, job_id, embedding)
        VALUES (:model, :chunk, :document, :document, CAST(:vector AS vector))
        ON CONFLICT (model_id, chunk_id) DO UPDATE
           SET document_id = excluded.document_id, job_id = excluded.job_id,
               embedding = excluded.embedding
        """
    )
    moved = text(
        f"UPDATE {model.partition} SET document_id = :document, job_id = :document"
        " WHERE model_id = :model AND chunk_id = :chunk"
    )
    with_vector, without = [], []
    for document, record in zip(documents, records, strict=True):
        binds = {"model": model.id, "chunk": chunk_ids[record.id], "document": document}
        if record.vector is None:
            without.append(binds)
        else:
            with_vector.append(binds | {"vector": VectorParameter(record.vector)})
    if with_vector:
        session.execute(statement, with_vector)
    if without:
        session.execute(moved, without)


def delete(session: Session, collection: VectorCollection, wanted: RecordFilter) -> int:
    """Permanently delete matching records, also those in the trash, and return how many."""
    binds: dict[str, Any] = {"collection": collection.id}
    condition = condition_of(wanted, binds)
    statement = text(
        f"DELETE FROM document_chunks c WHERE c.collection_id = :collection {condition}"
        " RETURNING c.document_id"
    )
    documents = list(session.scalars(statement, binds))
    _publish(session, set(documents))
    return len(documents)


def delete_document(session: Session, collection: VectorCollection, document: UUID) -> bool:
    """Permanently delete a document with its records, and return whether it existed."""
    statement = text(
        "DELETE FROM documents WHERE id = :id AND collection_id = :collection RETURNING id"
    )
    found = session.scalar(statement, {"id": document, "collection": collection.id})
    return found is not None


_DROP_EMPTY = text(
    """
    DELETE FROM documents d WHERE d.id = ANY(CAST(:documents AS uuid[]))
      AND NOT EXISTS (SELECT FROM document_chunks c WHERE c.document_id = d.id)
    """
)
# Counts their chunks too, by a trigger.
_PUBLISH = text(
    """
    UPDATE documents SET current_job_id = id, updated_at = now()
    WHERE id = ANY(CAST(:documents AS uuid[]))
    """
)


def _publish(session: Session, documents: set[UUID]) -> None:
    """Delete documents without chunks and publish the others."""
    binds = {"documents": list(documents)}
    session.execute(_DROP_EMPTY, binds)
    session.execute(_PUBLISH, binds)
