"""Sources outside of the portal that folders are kept in step with."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import IO, Protocol
from uuid import UUID

from portal.domain.documents import Failure

MAX_ADDRESS_CHARACTERS = 1000
MIN_EVERY_MINUTES = 5
MAX_EVERY_MINUTES = 7 * 24 * 60
MAX_LISTED = 200
"""Changes of one run that are listed; all are counted."""


class SourceKind(StrEnum):
    DIRECTORY = "directory"
    """A directory on the server."""


@dataclass(frozen=True, slots=True)
class SourceItem:
    """A file of a source: its path below the folder, and a stamp that changes with the file."""

    path: str
    stamp: str


@dataclass(frozen=True, slots=True)
class Listing:
    """All files of a source. What lies below an unreadable path is unknown, not gone."""

    items: Sequence[SourceItem]
    unreadable: Sequence[str] = ()


class Source(Protocol):
    """What a folder is kept in step with. A new kind is one module and one line in the registry."""

    def list_items(self) -> Listing:
        """Return all files. Raises SourceUnavailable."""

    def open(self, item: SourceItem) -> AbstractContextManager[IO[bytes]]:
        """Open a file that was listed. Raises OSError."""


class Change(StrEnum):
    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class ListedChange:
    """What became of a file in a run; `failure` says why it was refused."""

    change: Change
    path: str
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class SyncRun:
    """The outcome of a run. With `failure` it ended early, and nothing was removed."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    refused: int = 0
    listed: tuple[ListedChange, ...] = ()
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class FolderSource:
    """The source of a folder. Its documents belong to the owner, whose rights it needs."""

    folder_id: UUID
    owner_id: UUID
    owner_name: str
    kind: SourceKind
    address: str
    every_minutes: int
    due_at: datetime
    last_run_at: datetime | None
    last_run: SyncRun | None
