"""Documents, their extracted text, and the chunks that search finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from portal.domain.documents.structure import Block
from portal.errors import PERMANENT, Message, PortalError, params_as_json, stored_params


class DocumentStatus(StrEnum):
    QUEUED = "queued"
    PROCESSING = "processing"
    READY = "ready"
    FAILED = "failed"


class Visibility(StrEnum):
    SHARED = "shared"
    PRIVATE = "private"


class MediaType(StrEnum):
    PDF = "application/pdf"
    TEXT = "text/plain"
    MARKDOWN = "text/markdown"
    HTML = "text/html"
    DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
    XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    CSV = "text/csv"
    PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
    EPUB = "application/epub+zip"
    EML = "message/rfc822"
    PNG = "image/png"
    JPEG = "image/jpeg"
    TIFF = "image/tiff"

    @property
    def short(self) -> str:
        """Return the common name: PDF, TXT, MD, DOCX and so on."""
        return {MediaType.TEXT: "TXT", MediaType.MARKDOWN: "MD"}.get(self, self.name)

    @property
    def has_encoding(self) -> bool:
        """Return whether it is text in an encoding, which may be detected wrongly."""
        return self in {MediaType.TEXT, MediaType.MARKDOWN, MediaType.HTML, MediaType.CSV}


TYPES = {media_type.short.lower(): media_type for media_type in MediaType}
"""Media types by the names that searches and filters take: pdf, txt, md and so on."""


@dataclass(frozen=True, slots=True)
class Page:
    """Text of one page: characters `start` to `end` of the extracted text."""

    number: int
    start: int
    end: int
    label: str | None = None


@dataclass(frozen=True, slots=True)
class Heading:
    level: int
    title: str
    start: int


@dataclass(frozen=True, slots=True)
class ExtractedText:
    """The readable text of a file, with the positions of its pages and headings. `blocks` are its
    tables, lists, captions, notes and code, ordered and disjoint, then its images."""

    text: str
    extractor: str
    pages: tuple[Page, ...] = ()
    headings: tuple[Heading, ...] = ()
    blocks: tuple[Block, ...] = ()
    encoding: str | None = None
    warnings: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a text that search returns as a unit. `content` is `text[char_start:char_end]`; a
    chunk added through the API has no range. `page` is that of its first character, `page_label`
    the label printed on that page, if it is not its number, and `ends_on` the page of its last
    character, if loaded. `heading` is the path of headings above it. `context` has the caption and
    the header of a table that begins further up, one per line. `blocks` include headings; their
    offsets count from the start of `content`."""

    index: int
    content: str
    char_start: int | None
    char_end: int | None
    page: int | None = None
    heading: str | None = None
    page_label: str | None = None
    ends_on: Page | None = None
    context: str | None = None
    blocks: tuple[Block, ...] = ()


@dataclass(frozen=True, slots=True)
class Failure:
    """An error code and its parameters, translated where they are shown."""

    code: str
    params: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def stored(cls, error: Mapping[str, Any] | None) -> Failure | None:
        """Return the failure in an error column: `{code, params}`, as `as_json` wrote it."""
        return cls(error["code"], stored_params(error.get("params", {}))) if error else None

    @classmethod
    def of(cls, error: PortalError) -> Failure:
        return cls(error.code, error.params)

    @property
    def is_permanent(self) -> bool:
        """Return whether another attempt would fail as well."""
        return self.code in PERMANENT

    def as_json(self) -> dict[str, Any]:
        """Return the JSON that `stored` reads."""
        return {"code": self.code, "params": params_as_json(self.params)}


@dataclass(frozen=True, slots=True)
class DocumentSummary:
    """A document as lists show it."""

    id: UUID
    title: str
    file_name: str
    media_type: MediaType
    size_bytes: int
    status: DocumentStatus
    visibility: Visibility
    domain: str | None
    owner_id: UUID
    owner_name: str
    created_at: datetime
    failure: Failure | None
    job_id: UUID | None
    chunk_count: int
    deleted_at: datetime | None
    can_edit: bool
    is_for_members: bool = field(default=False, kw_only=True)
    """Whether only the members of the folder see it."""
    warnings: tuple[str, ...]
    # Its folder, if the user may see that.
    folder_id: UUID | None = None
    folder_name: str | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DocumentDetail:
    """A document with the facts about its current text."""

    summary: DocumentSummary
    sha256: str
    revision_id: UUID | None
    extractor: str | None
    encoding: str | None
    page_count: int
    character_count: int


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk as stored; `id` is its chunk id."""

    id: UUID
    chunk: Chunk


@dataclass(frozen=True, slots=True)
class OwnedDocuments:
    """How many shared and private documents a user has; `trashed` of both are in the trash."""

    shared: int
    private: int
    trashed: int


@dataclass(frozen=True, slots=True)
class DocumentFilter:
    status: DocumentStatus | None = None
    media_type: MediaType | None = None
    domain: str | None = None
    title_contains: str | None = None
    has_text: bool = False
    visibility: Visibility | None = None
    owner_id: UUID | None = None
    folder_id: UUID | None = None
    """In this folder or below it."""
    is_unfiled: bool = False
    """In no folder that the user may see."""
    tag: str | None = None


class DocumentSort(StrEnum):
    """The order of a list; a minus means descending."""

    NEWEST = "-created"
    OLDEST = "created"
    TITLE = "title"
    TITLE_DESCENDING = "-title"
    LARGEST = "-size"
    SMALLEST = "size"
    TYPE = "type"
    TYPE_DESCENDING = "-type"
    STATUS = "status"
    STATUS_DESCENDING = "-status"
    OWNER = "owner"
    OWNER_DESCENDING = "-owner"

    @property
    def key(self) -> str:
        return self.removeprefix("-")

    @property
    def is_descending(self) -> bool:
        return self.startswith("-")
