"""The chunks that a search found, as shown in results and whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import TextClause, Uuid, bindparam, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Session

from portal.domain.people import User
from portal.store.binary_parameters import UuidsParameter
from portal.store.documents.outlines import label_of_chunk
from portal.store.documents.selection import (
    SELECTION_JOINS,
    SELECTION_WHERE,
    selection_binds,
    selection_sql,
)
from portal.store.search.filters.narrowing import CONTENT_TYPE
from portal.store.search.queries import Legs
from portal.store.statements import Reader, Statement, fetch_under, sending


class FoundChunk(NamedTuple):
    """A chunk with data of its document; `document_chunks` counts those of the document,
    `documents_version` is the collection's."""

    chunk_id: UUID
    document_id: UUID
    title: str
    media_type: str
    domain: str | None
    content: str
    terms: str
    language: str
    page: int | None
    page_label: str | None
    heading: str | None
    context: str | None
    char_start: int | None
    char_end: int | None
    document_chunks: int
    documents_version: int


_DOCUMENTS_VERSION = "SELECT documents_version FROM collections WHERE id = :collection_id"
_VERSION = text(_DOCUMENTS_VERSION)


@lru_cache(maxsize=2)
def _chunks(*, in_conversation: bool) -> TextClause:
    # The selection is checked again: a leg that uses a cached set (see `enabled_sets`) must not
    # show a document that was switched off just now.
    joins, counts = selection_sql(in_conversation=in_conversation)
    return text(f"""
        SELECT c.id AS chunk_id, d.id AS document_id, d.title, d.media_type, d.domain,
               c.content, c.terms, c.language, c.page, {label_of_chunk("c")} AS page_label,
               c.heading, c.context, c.char_start, c.char_end, d.chunk_count AS document_chunks,
               ({_DOCUMENTS_VERSION}) AS documents_version
        FROM document_chunks c
        JOIN documents d ON d.id = c.document_id AND d.current_job_id = c.job_id
        {joins}
        WHERE c.id = ANY(CAST(:chunk_ids AS uuid[])) AND {counts}
    """)


def load_chunks(
    reader: Reader, legs: Legs, chunk_ids: Sequence[str]
) -> tuple[dict[str, FoundChunk], int]:
    """Return those of these chunks that are enabled for a user, by id, and the documents' version.

    The server cancels the statement at the deadline of the search.
    """
    binds = selection_binds(legs.scope.user, legs.scope.conversation_id)
    ids = UuidsParameter.named(chunk_ids)
    binds |= {"chunk_ids": ids, "collection_id": legs.versions.collection_id}
    clause = _chunks(in_conversation=legs.scope.conversation_id is not None)
    settings = {"statement_timeout": legs.deadline.milliseconds}
    if chunk_ids:
        chunks = Statement(clause, binds, keeps_plan=True)
        with sending(reader, settings, [chunks]) as (rows,):
            pass
        if rows:
            found = list(map(FoundChunk._make, rows))
            return {str(chunk.chunk_id): chunk for chunk in found}, found[0].documents_version
    ((version,),) = fetch_under(reader, settings, _VERSION, binds)
    return {}, version


@dataclass(frozen=True, slots=True)
class WholeChunk:
    """A chunk with its metadata: the portal's, and what a program added under other names."""

    id: UUID
    document_id: UUID
    content: str
    metadata: dict[str, Any]


# What a search says of its hits: metadata that a program stored must not look like it.
_OF_SEARCHES = "'{similarity,rrf_score,dense_rank,sparse_rank}'"
_WHOLE_CHUNKS = text(
    f"""
    SELECT c.id, c.document_id, c.content,
           (c.metadata - CAST({_OF_SEARCHES} AS text[])) || jsonb_build_object(
               'title', d.title, 'content_type', {CONTENT_TYPE}, 'page', c.page,
               'heading', c.heading, 'chunk_index', c.chunk_index) AS metadata
    FROM document_chunks c
    JOIN documents d ON d.current_job_id = c.job_id {SELECTION_JOINS}
    WHERE c.id = ANY(:chunk_ids) AND {SELECTION_WHERE}
    """
).bindparams(bindparam("chunk_ids", type_=ARRAY(Uuid)))


def read_whole_chunks(
    session: Session, user: User, chunk_ids: Sequence[UUID]
) -> dict[UUID, WholeChunk]:
    """Return those of these chunks that are enabled for a user, by id."""
    binds = selection_binds(user, None) | {"chunk_ids": list(chunk_ids)}
    return {row.id: WholeChunk(*row) for row in session.execute(_WHOLE_CHUNKS, binds)}
