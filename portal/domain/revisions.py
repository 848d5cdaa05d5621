"""Revisions: the texts that a document has had, each of one reading of one file."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from portal.domain.documents import MediaType
from portal.domain.jobs import JobStatus

MAX_NUMBER = 2**31 - 1
"""As far as an integer of PostgreSQL goes."""


@dataclass(frozen=True, slots=True)
class Revision:
    """A text that is searched, or was. `sha256` and `size_bytes` are of its file; `uploaded_by` is
    the user who sent that, empty when the account is gone. `previous` is the number of the
    one that was searched before: some are begun and never searched. With `is_reread` the file is
    that of the revision before. The numbers of characters tell it from the one before, None where
    that was not compared."""

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
class RevisionPage:
    """One page of a document's revisions, the latest first; `next_cursor` None at the end."""

    items: tuple[Revision, ...]
    next_cursor: str | None
    total_count: int


@dataclass(frozen=True, slots=True)
class UnreadVersion:
    """What was begun after the text that is searched, and is not searched itself: it waits, is
    being read, failed, or was cancelled. With `is_reread` its file is that of the present text."""

    status: JobStatus
    file_name: str
    media_type: MediaType
    is_reread: bool
