"""Chunks under the job that created them: list, read, add, delete."""

from __future__ import annotations

from math import ceil
from uuid import UUID

from portal.api.blueprint import ApiBlueprint
from portal.api.documents.schemas import chunks as schemas
from portal.domain.documents.chunks import NewChunk
from portal.http import context
from portal.limits import limited
from portal.limits.bodies import accepts
from portal.services.documents import chunks

blueprint = ApiBlueprint(
    "chunks",
    __name__,
    url_prefix="/api/v1/jobs/<uuid:job_id>/chunks",
    tag={"name": "Chunks", "description": "The passages that a job made of a document."},
)


@blueprint.get("")
@limited("list_chunks")
def list_chunks(job_id: UUID, query_data: schemas.ChunkQuery) -> schemas.ChunkListResponse:
    """List a job's passages."""
    limit, offset = query_data.limit, query_data.offset
    found, total = chunks.list_chunks(
        *context.caller(),
        job_id,
        limit=limit,
        offset=offset,
        order=query_data.sort_by,
        descending=query_data.sort_order == "desc",
    )
    pagination = schemas.PaginationModel(
        total=total,
        page=offset // limit + 1,
        per_page=limit,
        total_pages=ceil(total / limit),
    )
    items = [schemas.ChunkModel.of(chunk) for chunk in found]
    return schemas.ChunkListResponse(
        data=schemas.ChunkListModel(chunks=items, pagination=pagination)
    )


@blueprint.post("", status_code=201, errors=(409,))
# Room for a hundred chunks with their metadata, even if every character is escaped.
@accepts(max_kb=32 * 1024, max_values=50_000)
def add_chunks(job_id: UUID, json_data: schemas.AddChunksBody) -> schemas.AddedChunksResponse:
    """Add passages to a document.

    Requires the right to change the document. Adds all passages or none; they can be searched and
    cited at once. 409 if a chunk_index is taken, or if the passages of this job are not the ones
    that are searched.
    """
    new = [NewChunk(one.content, one.chunk_index, one.metadata) for one in json_data.chunks]
    added = chunks.add_chunks(*context.caller(), job_id, new)
    items = [schemas.ChunkModel.of(chunk) for chunk in added]
    return schemas.AddedChunksResponse(
        data=schemas.AddedChunksModel(chunks=items, total=len(items))
    )


@blueprint.delete("", errors=(409,))
def delete_chunks(job_id: UUID, query_data: schemas.DeleteChunksQuery) -> schemas.DeletedResponse:
    """Delete a job's passages.

    They are deleted permanently, and searches no longer find the document by them. Its text, its
    file and quotations in answers are kept. With `only_added`, only passages added by programs are
    deleted.
    """
    deleted = chunks.delete_chunks(*context.caller(), job_id, only_added=query_data.only_added)
    return schemas.DeletedResponse(data=schemas.DeletedModel(deleted=deleted))


@blueprint.get("/<uuid:chunk_id>")
@limited("get_chunk")
def get_chunk(job_id: UUID, chunk_id: UUID) -> schemas.ChunkResponse:
    """Get a passage."""
    chunk = chunks.get_chunk(*context.caller(), job_id, chunk_id)
    return schemas.ChunkResponse(data=schemas.ChunkModel.of(chunk))


@blueprint.delete("/<uuid:chunk_id>", errors=(409,))
def delete_chunk(job_id: UUID, chunk_id: UUID) -> schemas.DeletedResponse:
    """Delete a passage."""
    chunks.delete_chunk(*context.caller(), job_id, chunk_id)
    return schemas.DeletedResponse(data=schemas.DeletedModel(deleted=1))
