"""Bodies of the revisions of documents."""

from __future__ import annotations

from uuid import UUID

from pydantic import AwareDatetime, Field

from portal.api.schemas import CleanText, PageQuery, RequestModel, ResponseModel, cursor_field
from portal.domain.documents import MediaType
from portal.domain.documents.revisions import MAX_NUMBER
from portal.text.likeness.stretches import StretchKind

_NUMBER = "number of the revision, from 1; numbers of texts that were searched are never reused"


class RevisionModel(ResponseModel):
    id: UUID
    number: int = Field(description=_NUMBER)
    created_at: AwareDatetime = Field(description="when its text was read")
    uploaded_by: str = Field(description="empty if the account was deleted", examples=["ada"])
    file_name: str
    media_type: MediaType
    bytes: int | None = Field(description="size of its file", examples=[2048])
    sha256: str | None = Field(description="hash of its file")
    extractor: str = Field(examples=["pypdfium2"])
    encoding: str | None = Field(description="encoding of a text file", examples=[None])
    page_count: int
    character_count: int
    is_current: bool = Field(description="whether this text is searched")
    is_reread: bool = Field(description="whether the file of the previous revision was read again")
    characters_added: int | None = Field(
        description="compared with the previous revision; null if they were not compared",
        examples=[120],
    )
    characters_removed: int | None = Field(description="as `characters_added`", examples=[4])


class RevisionListResponse(ResponseModel):
    revisions: list[RevisionModel] = Field(description="latest first")
    total_count: int
    next_cursor: str | None = Field(description="null on the last page", examples=[None])


class RevisionQuery(PageQuery):
    cursor: CleanText | None = cursor_field("^[0-9]{1,9}$")
    limit: int = Field(50, ge=1, le=200, description="revisions per page")


class RevisionContentResponse(ResponseModel):
    id: UUID = Field(description="id of the document")
    revision_id: UUID
    number: int
    text: str


class DifferencesQuery(RequestModel):
    against: int | None = Field(
        None,
        ge=1,
        le=MAX_NUMBER,
        description="number of the other revision; default: the previous one",
    )
    part: int = Field(1, ge=1, le=1_000_000, description="part number, for long differences")


class StretchModel(ResponseModel):
    kind: StretchKind = Field(
        description="`removed`: only in `against`; `added`: only in `number`; `same` and "
        "`folded`: in both"
    )
    text: str | None = Field(description="null for a `folded` text that is too long to include")
    characters: int


class DifferencesResponse(ResponseModel):
    number: int
    against: int
    characters_added: int
    characters_removed: int
    part: int
    part_count: int
    stretches: list[StretchModel]


VERSION_BODY = {
    "content": {
        "multipart/form-data": {
            "schema": {
                "type": "object",
                "required": ["file"],
                "properties": {"file": {"type": "string", "format": "binary"}},
            }
        }
    },
    "required": True,
}
