"""Schemas of chunks as programs read and write them."""

from __future__ import annotations

from typing import Any, Literal
from uuid import UUID

from pydantic import AwareDatetime, ConfigDict, Field, model_validator

from portal.api.schemas import CleanText, RequestModel, ResponseModel
from portal.domain.documents.chunks import (
    MAX_CHUNK_INDEX,
    MAX_CHUNKS_ADDED,
    MAX_CONTENT_CHARACTERS,
    ChunkOrder,
)

_METADATA = {"source_file": "leave.pdf", "page_number": 3}
_NEW = {
    "content": "Part-time staff earn leave by the hour.",
    "metadata": {"topic": "leave"},
}


class Envelope(ResponseModel):
    """The envelope of every response of /api/v1."""

    success: Literal[True] = True
    error: None = None


class ChunkModel(ResponseModel):
    id: UUID
    job_id: UUID = Field(description="the job that created it")
    document_id: UUID
    chunk_index: int = Field(description="position among the job's passages, from 0")
    content: str = Field(examples=["工作满一年的员工享有十天带薪年假。"])
    metadata: dict[str, Any] = Field(examples=[_METADATA])
    page: int | None = Field(
        description="page of the document; null if it has no pages", examples=[3]
    )
    heading: str | None = Field(description="heading above the passage", examples=["年假"])
    context: str | None = Field(
        description="caption and header of the table whose rows the passage begins with, if they "
        "are further up",
        examples=["工龄与年假\n工龄 | 年假天数"],
    )
    created_at: AwareDatetime
    has_embedding: bool = Field(
        description="whether the active model has a vector for it", examples=[True]
    )


class ChunkQuery(RequestModel):
    limit: int = Field(20, ge=1, le=100, description="passages per page")
    offset: int = Field(0, ge=0, le=MAX_CHUNK_INDEX, description="number of passages to skip")
    sort_by: ChunkOrder = Field(ChunkOrder.CHUNK_INDEX, description="sort key")
    sort_order: Literal["asc", "desc"] = Field("asc", description="sort direction")


class PaginationModel(ResponseModel):
    total: int = Field(description="passages of the job")
    page: int = Field(description="from 1")
    per_page: int
    total_pages: int


class ChunkListModel(ResponseModel):
    chunks: list[ChunkModel]
    pagination: PaginationModel


class ChunkListResponse(Envelope):
    data: ChunkListModel


class ChunkResponse(Envelope):
    data: ChunkModel


class NewChunkModel(RequestModel):
    content: CleanText = Field(
        min_length=1,
        max_length=MAX_CONTENT_CHARACTERS,
        description="the text that is searched and cited",
        examples=["Part-time staff earn leave by the hour."],
    )
    chunk_index: int | None = Field(
        None, ge=0, le=MAX_CHUNK_INDEX, description="its position; default: after the last passage"
    )
    metadata: dict[str, Any] = Field(
        default_factory=dict, description="values for metadata_filter", examples=[_METADATA]
    )


def _or_one(schema: dict[str, Any]) -> None:
    several = dict(schema)
    schema.clear()
    schema |= {"anyOf": [several, dict(several["properties"]["chunks"]["items"])]}
    schema["examples"] = [_NEW]


class AddChunksBody(RequestModel):
    """Several passages, or one."""

    model_config = ConfigDict(json_schema_extra=_or_one)

    chunks: list[NewChunkModel] = Field(min_length=1, max_length=MAX_CHUNKS_ADDED)

    @model_validator(mode="before")
    @classmethod
    def _as_several(cls, value: Any) -> Any:
        is_one = isinstance(value, dict) and "chunks" not in value
        return {"chunks": [value]} if is_one else value


class AddedChunksModel(ResponseModel):
    chunks: list[ChunkModel] = Field(description="in the given order")
    total: int


class AddedChunksResponse(Envelope):
    data: AddedChunksModel


class DeleteChunksQuery(RequestModel):
    only_added: bool = Field(False, description="keep the passages of the document's own text")


class DeletedModel(ResponseModel):
    deleted: int = Field(description="number of deleted passages", examples=[1])


class DeletedResponse(Envelope):
    data: DeletedModel
