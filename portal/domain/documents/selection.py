"""Selection of documents by switches on documents and folders, per user and per conversation."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from portal.domain.documents import MediaType
from portal.domain.paging import CountedPage


class SelectionSource(StrEnum):
    """The tier that decides."""

    SYSTEM = "system"
    USER = "user"
    CONVERSATION = "conversation"


class Decision(NamedTuple):
    """Whether something is on, the tier that decides, and the folder if a folder's switch does."""

    enabled: bool
    source: SelectionSource
    folder: FolderState | None = None


@dataclass(frozen=True, slots=True)
class FolderState:
    """The nearest switch of a folder at or above a place. `name` is None for a folder that the user
    may not see."""

    folder_id: UUID
    name: str | None
    enabled: bool


class EnabledCounts(NamedTuple):
    """How many documents in a folder and below are on, out of the readable ones that the user may
    see."""

    enabled_count: int
    total_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """The switches of a document or a folder. `user_default` and `override` are its own, None if
    not set; `override` is also None outside a conversation. `folder_default` and `folder_override`
    are those of the nearest folder. `in_scope` is None in a conversation without a scope."""

    user_default: bool | None
    override: bool | None = None
    folder_default: FolderState | None = None
    folder_override: FolderState | None = None
    in_scope: bool | None = None

    @property
    def decision(self) -> Decision:
        for source, own, folder in (
            (SelectionSource.CONVERSATION, self.override, self.folder_override),
            (SelectionSource.USER, self.user_default, self.folder_default),
        ):
            if own is not None:
                return Decision(own, source)
            if folder is not None:
                return Decision(folder.enabled, source, folder)
            if source is SelectionSource.CONVERSATION and self.in_scope is not None:
                return Decision(self.in_scope, source)
        return Decision(enabled=True, source=SelectionSource.SYSTEM)

    @property
    def enabled(self) -> bool:
        return self.decision.enabled

    @property
    def is_on(self) -> bool:
        """Return whether the switch is shown as on."""
        return self.enabled

    @property
    def source(self) -> SelectionSource:
        return self.decision.source

    @property
    def decided_by(self) -> FolderState | None:
        return self.decision.folder


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentSwitch(Switch):
    document_id: UUID
    title: str
    media_type: MediaType


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderSwitch(Switch):
    """The switches of a folder. `counts` is None if they were not counted, or there are no
    documents."""

    folder_id: UUID
    name: str
    has_folders: bool
    counts: EnabledCounts | None = None

    @property
    def is_on(self) -> bool:
        """Return whether any of its documents is on; without counts, whether its switches are."""
        return self.counts.enabled_count > 0 if self.counts else self.enabled

    @property
    def has_exceptions(self) -> bool:
        """Return whether some of its documents differ from its switches."""
        if self.counts is None:
            return False
        return self.counts.enabled_count != (self.counts.total_count if self.enabled else 0)


@dataclass(frozen=True, slots=True)
class AskScope:
    """The scope of a question: these documents, those in these folders, and those with one of these
    tags."""

    documents: tuple[UUID, ...] = ()
    folders: tuple[UUID, ...] = ()
    tags: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.documents or self.folders or self.tags)

    def as_json(self) -> dict[str, list[str]]:
        return {
            "documents": [str(document) for document in self.documents],
            "folders": [str(folder) for folder in self.folders],
            "tags": list(self.tags),
        }

    @classmethod
    def from_json(cls, stored: dict[str, list[str]] | None) -> AskScope:
        stored = stored or {}
        return cls(
            tuple(UUID(identifier) for identifier in stored.get("documents", ())),
            tuple(UUID(identifier) for identifier in stored.get("folders", ())),
            tuple(stored.get("tags", ())),
        )


class NamedScope(NamedTuple):
    """A scope as a user reads it: ids with titles or names."""

    documents: tuple[tuple[UUID, str], ...]
    folders: tuple[tuple[UUID, str], ...]
    tags: tuple[str, ...]

    @property
    def parts(self) -> list[tuple[str, UUID | str, str]]:
        """Return the kind, id and name of each part, folders first."""
        return [
            *(("folder", *folder) for folder in self.folders),
            *(("document", *document) for document in self.documents),
            *(("tag", tag, tag) for tag in self.tags),
        ]


@dataclass(frozen=True, slots=True)
class SelectionPage(CountedPage[DocumentSwitch]):
    """A page of switches by title. The counts are of all documents visible to the user, filtered or
    not."""

    enabled_count: int
