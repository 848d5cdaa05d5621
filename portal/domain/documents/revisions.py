"""Revisions: the texts that a document has had, each from one reading of one file."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from portal.domain.documents import MediaType
from portal.domain.documents.jobs import JobStatus

MAX_NUMBER = 2**31 - 1
"""The maximum of PostgreSQL's integer type."""


@dataclass(frozen=True, slots=True)
class Revision:
    """A text that is or was searched. `sha256` and `size_bytes` are those of its file;
    `uploaded_by` is empty if the account is gone. `previous` is the number of the revision searched
    before it; numbers may have gaps. With `is_reread` the file is that of the previous revision.
    The counts of changed characters are None if the texts were not compared."""

    id: UUID
    number: int
    previous: int | None
    created_at: datetime
    uploaded_by: str
    file_name: str
    media_type: MediaType
    size_bytes: int | None
    sha256: str | None
    extractor: str
    encoding: str | None
    page_count: int
    character_count: int
    is_current: bool
    is_reread: bool
    characters_added: int | None
    characters_removed: int | None


@dataclass(frozen=True, slots=True)
class UnreadVersion:
    """A version that is newer than the searchable text, and queued, being read, failed or
    cancelled. With `is_reread` its file is that of the current text."""

    status: JobStatus
    file_name: str
    media_type: MediaType
    is_reread: bool
