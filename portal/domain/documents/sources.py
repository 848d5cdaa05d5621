"""External sources that folders are synchronised with."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import IO, Protocol
from uuid import UUID

from portal.domain.documents import Failure
from portal.errors import PortalError

MAX_ADDRESS_CHARACTERS = 20_000
"""For a list of web pages; other addresses have a lower limit."""
MIN_EVERY_MINUTES = 5
MAX_EVERY_MINUTES = 7 * 24 * 60
MAX_LISTED = 200
"""Changes of each kind listed per run; all are counted."""
MAX_RUNS_KEPT = 20
"""Per source, of the runs that changed something."""


@dataclass(frozen=True, slots=True)
class SourceItem:
    """A file of a source. `path` identifies it, also to users; `stamp` changes with the file, or is
    empty if only reading it shows a change. `below` is the path from the synchronised folder to
    that of its document."""

    path: str
    stamp: str = ""
    below: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of a source. Files below an unreadable path are unknown, not gone, and so are files
    missing from an incomplete listing. `refused` are files that are not imported, with the
    reason."""

    items: Sequence[SourceItem]
    unreadable: Sequence[str] = ()
    refused: Sequence[tuple[str, PortalError]] = ()
    is_complete: bool = True


@dataclass(frozen=True, slots=True)
class Opened:
    """The bytes of a file, its name, and the stamp to compare with next time."""

    stream: IO[bytes]
    file_name: str
    stamp: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class Unchanged:
    """A file whose content is the same as before, and the stamp to compare with next time."""

    stamp: str


class Source(Protocol):
    """A source that a folder is synchronised with."""

    def list_items(self) -> Listing:
        """Return all files. Raises SourceUnavailable."""

    def open(
        self, item: SourceItem, known: str | None
    ) -> AbstractContextManager[Opened | Unchanged]:
        """Open a listed file, unless its content is the same as at the stamp `known`. Raises
        OSError, PageUnavailable, and PageGone for one that the source removed."""


class Change(StrEnum):
    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class ListedChange:
    """What happened to a file in a run; `failure` says why it was refused."""

    change: Change
    path: str
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class SyncRun:
    """The outcome of a run. With a `failure` it ended early, and nothing was removed."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    refused: int = 0
    listed: tuple[ListedChange, ...] = ()
    failure: Failure | None = None

    @property
    def has_changed(self) -> bool:
        return bool(self.added or self.changed or self.removed)


@dataclass(frozen=True, slots=True)
class PastRun:
    """A run, and when it ended."""

    ran_at: datetime
    run: SyncRun


@dataclass(frozen=True, slots=True)
class FolderSource:
    """The source of a folder. Its documents belong to the owner, with whose rights it runs."""

    folder_id: UUID
    owner_id: UUID
    owner_name: str
    kind: str
    address: str
    every_minutes: int
    due_at: datetime
    last_run_at: datetime | None
    last_run: SyncRun | None
