"""A small portal and the oracle's library, filled with the same documents at random."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from typing import Self
from uuid import UUID

import numpy as np
from sqlalchemy import text

from portal.domain.embedding import Vector
from portal.domain.people import User
from portal.domain.search import SearchMode
from portal.embeddings.providers.hashing import DEFAULT_DIMENSIONS
from portal.services import Services
from portal.services.documents.ingestion.chunk_storage import chunk_terms
from portal.services.people import accounts
from portal.store.embedding_models.registry import RegisteredModel
from portal.store.session import Session
from portal.text.terms.analyser import analyser_version
from tests.integration.documents.selection.selection_model import Chunk, Document, Library

PASSWORD = "correct horse battery"
# To the analyser each is a single word, and no inflection of another.
WORDS = ("maple", "copper", "violin", "glacier", "lantern", "合同", "年假", "报销", "门户", "发票")
TITLES = ("Ledger", "Atlas", "手册")
TYPES = {"pdf": "application/pdf", "txt": "text/plain", "md": "text/markdown"}
DOMAINS = ("law", "people", None)
SLOTS = 10
FOLDERS = 6
GROUPS = 2
MAX_CHUNKS = 3
WHOLE_SEARCH_EVERY = 4


@dataclass(frozen=True, slots=True)
class Step:
    """A random change and the search after it. `user` is the index of the user concerned; past the
    end, it means the last user who searched. With `moves`, another user searches from now on.
    `seed` decides the rest."""

    change: str
    process: int
    user: int
    slot: int
    seed: int
    mode: SearchMode
    moves: bool
    asks: int
    in_conversation: bool
    is_narrow: bool


@dataclass(frozen=True, slots=True)
class Seat:
    """Who searches, in which conversation and process. It lasts for several steps, because a cached
    set can only be stale for a user who searches again."""

    user: int = 0
    in_conversation: bool = False
    process: int = 0


@dataclass(slots=True)
class SmallPortal:
    """The oracle's library and the database, kept in step."""

    processes: tuple[Services, ...]
    users: list[User]
    model: Library = field(default_factory=Library)
    slots: list[UUID] = field(default_factory=list)
    conversations: list[UUID | None] = field(default_factory=list)
    folder_slots: list[UUID] = field(default_factory=list)
    groups: list[UUID] = field(default_factory=list)
    staged: dict[UUID, tuple[UUID, tuple[Chunk, ...]]] = field(default_factory=dict)
    _held: ExitStack = field(default_factory=ExitStack)
    _seat: Seat = field(default_factory=Seat)
    _registered: RegisteredModel | None = None
    _made: int = 0

    @classmethod
    def of(cls, *processes: Services) -> Self:
        """Create an administrator and two other users, without documents."""
        accounts.ensure_first_administrator(processes[0])
        users = [accounts.find_user(processes[0], "admin")]
        users += [
            accounts.create_user(processes[0], name=name, password=PASSWORD)
            for name in ("ann", "ben")
        ]
        return cls(processes, users)

    # --- starting over ----------------------------------------------------------------------------

    def reset(self) -> None:
        """Delete everything but the users, and fill the library with new documents."""
        self.let_go()
        rng = random.Random(0)
        with self._begin(0) as session:
            for table in ("documents", "conversations", "user_document_defaults", "folders"):
                session.execute(text(f"DELETE FROM {table}"))
            session.execute(text("DELETE FROM groups"))
            session.execute(text("UPDATE users SET is_admin = (name = 'admin')"))
            self.users = [replace(user, is_admin=user.name == "admin") for user in self.users]
            self.model, self.staged = Library(), {}
            documents = [self._new_document(rng) for _ in range(SLOTS)]
            self.slots = [document.id for document in documents]
            self._insert(session, documents)
            self.groups = [self._new_group(session, rng) for _ in range(GROUPS)]
            self.folder_slots = [self._new_folder(session, rng) for _ in range(FOLDERS)]
            for document in documents:
                self._file(session, document, rng.choice([None, *self.folder_slots]))
            self.conversations = [self._new_conversation(session, place) for place in range(3)]

    def _new_group(self, session: Session, rng: random.Random) -> UUID:
        group = random_uuid(rng, self._next())
        session.execute(
            text("INSERT INTO groups (id, name) VALUES (:id, CAST(:id AS text))"), {"id": group}
        )
        self.model.groups[group] = set()
        return group

    def _new_folder(self, session: Session, rng: random.Random) -> UUID:
        """Add a folder at a random place."""
        folder, parent = random_uuid(rng, self._next()), rng.choice([None, *self.model.parents])
        session.execute(
            text(
                "INSERT INTO folders (id, parent_id, name) VALUES (:id, :parent, CAST(:id AS text))"
            ),
            {"id": folder, "parent": parent},
        )
        self.model.parents[folder] = parent
        return folder

    def _file(self, session: Session, document: Document, folder: UUID | None) -> None:
        session.execute(
            text("UPDATE documents SET folder_id = :folder WHERE id = :id"),
            {"folder": folder, "id": document.id},
        )
        document.folder = folder

    def _new_conversation(self, session: Session, place: int) -> UUID:
        made: UUID = session.execute(
            text("INSERT INTO conversations (user_id) VALUES (:user) RETURNING id"),
            {"user": self.users[place].id},
        ).scalar_one()
        return made

    def _new_document(self, rng: random.Random) -> Document:
        return Document(
            id=random_uuid(rng, self._next()),
            owner=rng.choice(self.users).id,
            is_shared=rng.random() < 0.6,
            title=f"{rng.choice(TITLES)} {self._next()}",
            type=rng.choice(list(TYPES)),
            domain=rng.choice(DOMAINS),
            chunks=self._new_chunks(rng),
        )

    def _new_chunks(self, rng: random.Random) -> tuple[Chunk, ...]:
        """Return chunks with unique texts: each contains its own number."""
        return tuple(
            Chunk(
                id=random_uuid(rng, number := self._next()),
                words=(*rng.sample(WORDS, rng.randint(2, 5)), str(number)),
                has_vector=rng.random() < 0.9,
            )
            for _ in range(rng.randint(1, MAX_CHUNKS))
        )

    def _next(self) -> int:
        self._made += 1
        return self._made

    def _insert(self, session: Session, documents: Sequence[Document]) -> None:
        """Insert documents with published text, as indexing does."""
        session.execute(_DOCUMENTS, [_document_row(document) for document in documents])
        for document in documents:
            self.model.documents[document.id] = document
        self._publish_new(session, documents)

    def _publish_new(self, session: Session, documents: Sequence[Document]) -> None:
        jobs = self._insert_text(session, [(one.id, one.title, one.chunks) for one in documents])
        session.execute(
            text("UPDATE documents SET current_job_id = :job, status = 'ready' WHERE id = :id"),
            [
                {"job": job, "id": document.id}
                for job, document in zip(jobs, documents, strict=True)
            ],
        )

    def _insert_text(
        self, session: Session, texts: Sequence[tuple[UUID, str, tuple[Chunk, ...]]]
    ) -> list[UUID]:
        """Insert unpublished jobs with chunks and vectors; return the jobs' ids."""
        rng = random.Random(self._next())
        jobs = [random_uuid(rng, self._next()) for _ in texts]
        owned = [
            (job, document, title, place, chunk)
            for job, (document, title, chunks) in zip(jobs, texts, strict=True)
            for place, chunk in enumerate(chunks)
        ]
        session.execute(
            text("INSERT INTO jobs (id, document_id, status) VALUES (:id, :document, 'ready')"),
            [
                {"id": job, "document": document}
                for job, (document, _, _) in zip(jobs, texts, strict=True)
            ],
        )
        session.execute(_CHUNKS, [_chunk_row(*one) for one in owned])
        with_vector = [(job, document, chunk) for job, document, _, _, chunk in owned]
        self._insert_vectors(session, [one for one in with_vector if one[2].has_vector])
        return jobs

    def _insert_vectors(self, session: Session, owned: Iterable[tuple[UUID, UUID, Chunk]]) -> None:
        rows = [
            {"chunk": chunk.id, "document": document, "job": job, "embedding": vector_of(chunk.id)}
            for job, document, chunk in owned
        ]
        if rows:
            session.execute(_VECTORS, rows)

    # --- for changes ---------------------------------------------------------------------------

    def let_go(self) -> None:
        """Commit the change that a step holds back."""
        self._held.close()

    def _begin(self, process: int) -> AbstractContextManager[Session]:
        return self.processes[process].database.begin()

    def _run(self, step: Step, statement: str, **binds: object) -> None:
        with self._begin(step.process) as session:
            session.execute(text(statement), binds)

    def _document(self, step: Step) -> Document:
        return self.model.documents[self.slots[step.slot]]

    def _editor(self, document: Document) -> User:
        """Return a user who may change a document: its owner, or the administrator."""
        owners = [user for user in self.users if user.id == document.owner]
        return owners[0] if owners else self.users[0]


def random_uuid(rng: random.Random, number: int) -> UUID:
    """Return a reproducible id, made unique by `number`."""
    return UUID(int=rng.getrandbits(96) << 32 | number)


def direction_of(key: UUID) -> Vector:
    """Return the chunk's own unit vector (dimensions,)."""
    values = np.random.default_rng(key.int).normal(size=DEFAULT_DIMENSIONS).astype(np.float32)
    direction: Vector = values / np.linalg.norm(values)
    return direction


def vector_of(chunk: UUID) -> str:
    return "[" + ",".join(f"{value:.4f}" for value in direction_of(chunk)) + "]"


def _document_row(document: Document) -> dict[str, object]:
    return {
        "id": document.id,
        "owner": document.owner,
        "title": document.title,
        "type": TYPES[document.type],
        "domain": document.domain,
        "visibility": "shared" if document.is_shared else "private",
    }


def _chunk_row(
    job: UUID, document: UUID, title: str, place: int, chunk: Chunk
) -> dict[str, object]:
    content = " ".join(chunk.words)
    return {
        "id": chunk.id,
        "job": job,
        "document": document,
        "place": place,
        "content": content,
        "terms": chunk_terms(title, None, None, content),
        "version": analyser_version(),
        "end": len(content),
    }


_PORTAL = "(SELECT id FROM collections WHERE name = 'portal')"


_DOCUMENTS = text(
    f"""
    INSERT INTO documents (id, collection_id, owner_id, title, file_name, media_type, size_bytes,
                           sha256, domain, visibility)
    VALUES (:id, {_PORTAL}, :owner, :title, 'a', :type, 1, CAST(:id AS text), :domain, :visibility)
    """
)


_CHUNKS = text(
    f"""
    INSERT INTO document_chunks (id, job_id, document_id, collection_id, chunk_index, content,
                                 terms, analyser_version, char_start, char_end)
    VALUES (:id, :job, :document, {_PORTAL}, :place, :content, :terms, :version, 0, :end)
    """
)


_VECTORS = text(
    """
    INSERT INTO chunk_embeddings (model_id, chunk_id, document_id, job_id, embedding)
    VALUES ((SELECT embedding_model_id FROM collections WHERE name = 'portal'),
            :chunk, :document, :job, CAST(:embedding AS vector))
    """
)
