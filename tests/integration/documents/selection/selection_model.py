"""A plain Python model of who may find which document, as an oracle for searches.

It must not import `portal.store`: an oracle that shares code with what it checks shares its bugs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Asker:
    """The properties of a user that decide what they may find."""

    id: UUID
    is_admin: bool


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk: its words in order, and whether it has a vector."""

    id: UUID
    words: tuple[str, ...]
    has_vector: bool = True

    def holds(self, phrase: tuple[str, ...]) -> bool:
        starts = range(len(self.words) - len(phrase) + 1)
        return any(self.words[start : start + len(phrase)] == phrase for start in starts)


@dataclass(slots=True)
class Document:
    """A document; `chunks` are those of its published text, empty before there is one."""

    id: UUID
    owner: UUID | None
    is_shared: bool
    title: str
    type: str
    domain: str | None
    chunks: tuple[Chunk, ...] = ()
    is_deleted: bool = False
    is_purged: bool = False
    folder: UUID | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """A query: its words and filters; `phrase` are consecutive words."""

    words: tuple[str, ...]
    phrase: tuple[str, ...] = ()
    excluded: str | None = None
    title: str | None = None
    type: str | None = None
    domain: str | None = None

    @property
    def text(self) -> str:
        """Return the query as a user writes it; the domain is a parameter."""
        parts = [*self.words]
        if self.phrase:
            parts.append(f'"{" ".join(self.phrase)}"')
        if self.excluded:
            parts.append(f"-{self.excluded}")
        if self.title:
            parts.append(f"title:{self.title}")
        if self.type:
            parts.append(f"type:{self.type}")
        return " ".join(parts)

    def fits_document(self, document: Document) -> bool:
        return (
            (self.domain is None or document.domain == self.domain)
            and (self.type is None or document.type == self.type)
            and (self.title is None or self.title.lower() in document.title.lower())
        )

    def fits_chunk(self, chunk: Chunk) -> bool:
        return chunk.holds(self.phrase) and self.excluded not in chunk.words

    def matches(self, chunk: Chunk) -> bool:
        """Return whether a chunk contains any of the words, or of the phrase's words."""
        return not {*self.words, *self.phrase}.isdisjoint(chunk.words)


@dataclass(slots=True)
class Library:
    """The whole state: documents and every switch that was set."""

    documents: dict[UUID, Document] = field(default_factory=dict)
    defaults: dict[tuple[UUID, UUID], bool] = field(default_factory=dict)
    overrides: dict[tuple[UUID, UUID], bool] = field(default_factory=dict)
    parents: dict[UUID, UUID | None] = field(default_factory=dict)
    folder_switches: dict[tuple[UUID, UUID], bool] = field(default_factory=dict)
    folder_owners: dict[UUID, UUID] = field(default_factory=dict)
    gates: set[UUID] = field(default_factory=set)
    members: dict[tuple[UUID, UUID], str] = field(default_factory=dict)
    groups: dict[UUID, set[UUID]] = field(default_factory=dict)

    def gate_of(self, folder: UUID | None) -> UUID | None:
        """Return the nearest folder, itself or above, that is open to members only."""
        while folder is not None and folder not in self.gates:
            folder = self.parents[folder]
        return folder

    def role_in(self, user: UUID, folder: UUID | None) -> str | None:
        """Return a user's role behind the gate of a folder; without a gate, all users may read."""
        gate = self.gate_of(folder)
        if gate is None:
            return "reader"
        names = {user, *(group for group, users in self.groups.items() if user in users)}
        roles = {role for (at, name), role in self.members.items() if at == gate and name in names}
        if self.folder_owners.get(gate) == user:
            roles.add("keeper")
        in_order = ("keeper", "contributor", "reader")
        return next((role for role in in_order if role in roles), None)

    def sees_folder(self, asker: Asker, folder: UUID) -> bool:
        is_own = self.folder_owners.get(folder) == asker.id
        return asker.is_admin or is_own or self.role_in(asker.id, folder) is not None

    def sees(self, asker: Asker, document: Document) -> bool:
        is_open = document.is_shared and self.role_in(asker.id, document.folder) is not None
        return is_open or asker.is_admin or document.owner == asker.id

    def nearest(self, owner: UUID | None, folder: UUID | None) -> bool | None:
        """Return the switch of the nearest folder that a user or a conversation has switched."""
        while folder is not None:
            if owner is not None and (owner, folder) in self.folder_switches:
                return self.folder_switches[owner, folder]
            folder = self.parents[folder]
        return None

    def is_on(self, user: UUID, conversation: UUID | None, document: Document) -> bool:
        in_order = (
            self.overrides.get((conversation, document.id)) if conversation else None,
            self.nearest(conversation, document.folder),
            self.defaults.get((user, document.id)),
            self.nearest(user, document.folder),
        )
        return next((each for each in in_order if each is not None), True)

    def counts(self, asker: Asker, conversation: UUID | None, document: Document) -> bool:
        """Return whether this user may find a document in this conversation, or outside of any."""
        if document.is_deleted or document.is_purged:
            return False
        if not self.sees(asker, document):
            return False
        return self.is_on(asker.id, conversation, document)

    def allowed(self, asker: Asker, conversation: UUID | None) -> Iterator[tuple[Document, Chunk]]:
        for document in self.documents.values():
            if self.counts(asker, conversation, document):
                for chunk in document.chunks:
                    yield document, chunk

    def answer(
        self, asker: Asker, conversation: UUID | None, question: Question, mode: str
    ) -> set[UUID]:
        """Return the chunks that a search without a limit finds; a phrase that occurs nowhere is
        searched for again as words."""
        allowed = list(self.allowed(asker, conversation))
        found = set(_found(allowed, question, mode))
        if not found and question.phrase:
            words = question.words + question.phrase
            found = set(_found(allowed, replace(question, words=words, phrase=()), mode))
        return found


def _found(
    allowed: Iterable[tuple[Document, Chunk]], question: Question, mode: str
) -> Iterator[UUID]:
    for document, chunk in allowed:
        if not (question.fits_document(document) and question.fits_chunk(chunk)):
            continue
        by_meaning = mode in {"vector", "hybrid"} and chunk.has_vector
        by_words = mode in {"keyword", "hybrid"} and question.matches(chunk)
        if by_meaning or by_words:
            yield chunk.id
