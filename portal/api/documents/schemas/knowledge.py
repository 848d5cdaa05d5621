"""Bodies of documents in the knowledge API."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from pydantic import AwareDatetime, Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticKnownError

from portal.api.documents.schemas.jobs import FailureModel, JobModel
from portal.api.schemas import TEXT_CURSOR, CleanText, RequestModel, ResponseModel, cursor_field
from portal.domain.documents import (
    TYPES,
    DocumentFilter,
    DocumentSort,
    DocumentStatus,
    MediaType,
    Visibility,
)
from portal.ingest.decoding import ENCODINGS
from portal.text.titles import MAX_TAG_CHARACTERS, MAX_TAGS


def _read_type(name: Any) -> MediaType:
    found = TYPES.get(name.lower()) if isinstance(name, str) else None
    if found is None:
        raise PydanticKnownError("literal_error", {"expected": ", ".join(map(repr, TYPES))})
    return found


TypeName = Annotated[str, WithJsonSchema({"type": "string", "enum": [*map(str.upper, TYPES)]})]
NamedType = Annotated[
    MediaType,
    PlainValidator(_read_type),
    WithJsonSchema({"type": "string", "enum": [*TYPES]}),
]


class DocumentModel(ResponseModel):
    id: UUID
    title: str
    file_name: str
    type: TypeName
    media_type: MediaType
    bytes: int
    status: DocumentStatus = Field(examples=[DocumentStatus.READY])
    error: FailureModel | None = Field(description="why it failed", examples=[None])
    visibility: Visibility
    domain: str | None
    owner: str
    folder_id: UUID | None = Field(
        description="null if it is in no folder that you may see", examples=[None]
    )
    folder: str | None = Field(description="the name of its folder", examples=[None])
    tags: list[str] = Field(examples=[["2026"]])
    job_id: UUID | None = Field(description="its last ingestion")
    job: JobModel | None = Field(description="its progress")
    chunk_count: int
    created_at: AwareDatetime
    url: str
    warnings: list[str] = Field(
        description="parts that could not be read, such as pages without text", examples=[[]]
    )


class DocumentDetailModel(DocumentModel):
    sha256: str
    revision_id: UUID | None
    extractor: str | None = Field(examples=["pypdfium2"])
    encoding: str | None = Field(description="encoding of a text file", examples=[None])
    page_count: int
    character_count: int


class DocumentListResponse(ResponseModel):
    documents: list[DocumentModel]
    total_count: int
    next_cursor: str | None = Field(description="null on the last page", examples=[None])


class DocumentFilters(RequestModel):
    """Filters of documents; all of them apply."""

    status: DocumentStatus | None = Field(None, description="only documents in this state")
    type: NamedType | None = Field(None, description="only documents of this format")
    domain: CleanText | None = Field(None, max_length=100, description="only this domain")
    visibility: Visibility | None = Field(None, description="only shared or only private ones")
    owner_id: UUID | None = Field(None, description="only documents of this user")
    folder_id: UUID | None = Field(None, description="only in this folder and below it")
    tag: CleanText | None = Field(
        None, max_length=MAX_TAG_CHARACTERS, description="only documents with this tag"
    )
    unfiled: bool = Field(False, description="only documents outside of folders")
    q: CleanText | None = Field(None, max_length=300, description="part of the title")

    def filters(self) -> DocumentFilter:
        return DocumentFilter(
            status=self.status,
            media_type=self.type,
            domain=self.domain,
            title_contains=self.q,
            visibility=self.visibility,
            owner_id=self.owner_id,
            folder_id=self.folder_id,
            is_unfiled=self.unfiled,
            tag=self.tag,
        )


class DocumentQuery(DocumentFilters):
    cursor: CleanText | None = cursor_field(TEXT_CURSOR, max_length=2000)
    sort: DocumentSort = Field(
        DocumentSort.NEWEST,
        description="a minus sign sorts in descending order; ties are sorted newest first",
    )
    limit: int = Field(50, ge=1, le=200, description="documents per page")


class UploadedModel(DocumentModel):
    is_duplicate: bool = Field(description="whether the same file had been uploaded before")


class UploadResponse(ResponseModel):
    documents: list[UploadedModel]


UPLOAD_BODY = {
    "content": {
        "multipart/form-data": {
            "schema": {
                "type": "object",
                "required": ["file"],
                "additionalProperties": False,
                "properties": {
                    "file": {
                        "type": "array",
                        "minItems": 1,
                        "items": {"type": "string", "format": "binary"},
                    },
                    "title": {"type": "string", "maxLength": 300},
                    "domain": {"type": "string", "maxLength": 100},
                    "visibility": {"type": "string", "enum": ["shared", "private"]},
                    "folder_id": {
                        "type": "string",
                        "pattern": "^([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})?$",
                        "description": "empty: no folder",
                    },
                    "path": {
                        "type": "string",
                        "maxLength": 2000,
                        "description": "folders below `folder_id`, separated by slashes; those "
                        "that are missing are created; folders nest up to 20 levels",
                    },
                },
            }
        }
    },
    "required": True,
}


IDEMPOTENCY_HEADER = {
    "name": "Idempotency-Key",
    "in": "header",
    "schema": {"type": "string", "maxLength": 200, "pattern": "^[!-~]{1,200}$"},
    "description": "visible ASCII; the same key and body get the same response for a day",
}


class TagsBody(RequestModel):
    tags: list[Annotated[CleanText, Field(max_length=MAX_TAG_CHARACTERS)]] = Field(
        max_length=MAX_TAGS, examples=[["2026", "合同"]]
    )


class TagModel(ResponseModel):
    name: str = Field(examples=["合同"])
    document_count: int = Field(description="number of documents that you may see")


class TagListModel(ResponseModel):
    tags: list[TagModel]


class FolderBody(RequestModel):
    folder_id: UUID | None = Field(description="null for no folder")


class DeleteQuery(RequestModel):
    purge: bool = Field(False, description="delete permanently instead of moving to the trash")


class ReindexRequest(RequestModel):
    encoding: CleanText | None = Field(
        None,
        min_length=1,
        max_length=40,
        description="encoding of a text file or web page, such as `gb18030`; null to detect it",
        examples=["gb18030"],
        json_schema_extra={"enum": [*ENCODINGS, None]},
    )


class ContentResponse(ResponseModel):
    id: UUID
    revision_id: UUID
    text: str
