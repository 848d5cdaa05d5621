"""A small portal that changes at random, in step with the oracle in plain Python.

Changes go through the portal's use cases, or through plain SQL where there is no use case. Several
processes serve the same database, each with its own caches.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

import numpy as np
from sqlalchemy import text

from portal.domain.documents import Visibility
from portal.domain.embedding import Vector
from portal.domain.people import User
from portal.domain.search import SearchMode, SearchRequest
from portal.embeddings.providers.hashing import DEFAULT_DIMENSIONS
from portal.errors import EmptyFile, NotFound
from portal.services import Services
from portal.services.documents import folders, library, selections
from portal.services.documents.ingestion import attempts
from portal.services.documents.ingestion.chunk_storage import chunk_terms
from portal.services.people import accounts
from portal.services.search import engine
from portal.store.documents import rows as document_store
from portal.store.embedding_models import registry
from portal.store.embedding_models.registry import RegisteredModel
from portal.store.session import Session
from portal.text.terms.analyser import analyser_version
from tests.integration.documents.selection.selection_model import (
    Asker,
    Chunk,
    Document,
    Library,
    Question,
)
from tests.integration.search.chunks import chunk_search

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
    """A random change and the search after it. `user` is the number of the user concerned; if there
    is none, the last one who searched. With `moves` another user searches from now on. `seed`
    decides the rest."""

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
class World:
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
    def of(cls, *processes: Services) -> World:
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
        group = _uuid(rng, self._next())
        session.execute(
            text("INSERT INTO groups (id, name) VALUES (:id, CAST(:id AS text))"), {"id": group}
        )
        self.model.groups[group] = set()
        return group

    def _new_folder(self, session: Session, rng: random.Random) -> UUID:
        """Add a folder at a random place."""
        folder, parent = _uuid(rng, self._next()), rng.choice([None, *self.model.parents])
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
            id=_uuid(rng, self._next()),
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
                id=_uuid(rng, number := self._next()),
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
        jobs = [_uuid(rng, self._next()) for _ in texts]
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
            {"chunk": chunk.id, "document": document, "job": job, "embedding": _vector(chunk.id)}
            for job, document, chunk in owned
        ]
        if rows:
            session.execute(_VECTORS, rows)

    # --- changes ----------------------------------------------------------------------------------

    def apply(self, step: Step) -> None:
        """Apply a change to the database and to the model."""
        self.let_go()
        if step.user >= len(self.users):
            step = replace(step, user=self._seat.user)
        CHANGES[step.change](self, step)

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

    def switch_default(self, step: Step) -> None:
        with self._begin(step.process) as session:
            self._write_default(session, step)

    def _write_default(self, session: Session, step: Step) -> None:
        user, document = self.users[step.user].id, self._document(step).id
        enabled = _decides(step, 0.25)
        session.execute(_DEFAULT, {"owner": user, "document": document, "enabled": enabled})
        self.model.defaults[user, document] = enabled

    def forget_default(self, step: Step) -> None:
        user, document = self.users[step.user].id, self._document(step).id
        delete = "DELETE FROM user_document_defaults WHERE user_id = :p AND document_id = :d"
        self._run(step, delete, p=user, d=document)
        self.model.defaults.pop((user, document), None)

    def switch_all_defaults(self, step: Step) -> None:
        """Enable or disable all documents in one statement."""
        user, enabled = self.users[step.user].id, _decides(step, 0.3)
        self._run(step, _ALL_DEFAULTS, owner=user, enabled=enabled)
        self.model.defaults |= {(user, document): enabled for document in self.model.documents}

    def forget_all_defaults(self, step: Step) -> None:
        user = self.users[step.user].id
        self._run(step, "DELETE FROM user_document_defaults WHERE user_id = :p", p=user)
        self.model.defaults = _without(self.model.defaults, {user})

    def switch_override(self, step: Step) -> None:
        with self._begin(step.process) as session:
            self._write_override(session, step)

    def _write_override(self, session: Session, step: Step) -> None:
        conversation, document = self.conversations[step.user], self._document(step).id
        if conversation is None:
            return
        enabled = _decides(step, 0.5)
        session.execute(
            _OVERRIDE, {"owner": conversation, "document": document, "enabled": enabled}
        )
        self.model.overrides[conversation, document] = enabled

    def forget_override(self, step: Step) -> None:
        conversation, document = self.conversations[step.user], self._document(step).id
        self._run(step, f"{_FORGET_OVERRIDES} AND document_id = :d", c=conversation, d=document)
        if conversation is not None:
            self.model.overrides.pop((conversation, document), None)

    def forget_all_overrides(self, step: Step) -> None:
        conversation = self.conversations[step.user]
        self._run(step, _FORGET_OVERRIDES, c=conversation)
        self.model.overrides = _without(self.model.overrides, {conversation})

    def remake_conversation(self, step: Step) -> None:
        """Delete a user's conversation, or create one if it is deleted."""
        conversation = self.conversations[step.user]
        with self._begin(step.process) as session:
            if conversation is None:
                self.conversations[step.user] = self._new_conversation(session, step.user)
                return
            session.execute(text("DELETE FROM conversations WHERE id = :c"), {"c": conversation})
        self.conversations[step.user] = None
        self.model.overrides = _without(self.model.overrides, {conversation})
        self.model.folder_switches = _without(self.model.folder_switches, {conversation})

    def _folder(self, step: Step) -> UUID:
        return self.folder_slots[step.slot % FOLDERS]

    def switch_folder(self, step: Step) -> None:
        """Switch a folder for a user or in a conversation, or remove the switch."""
        rng, user, folder = random.Random(step.seed), self.users[step.user], self._folder(step)
        services, conversation = self.processes[step.process], self.conversations[step.user]
        enabled = rng.choice((True, False, False, None))
        if not self.model.sees_folder(Asker(user.id, user.is_admin), folder):
            try:
                selections.set_folder_switch(services, user, None, folder, enabled)
            except NotFound:
                return
            raise AssertionError("a foreign folder was switched")
        if conversation is not None and rng.random() < 0.5:
            owner = conversation
            selections.set_folder_switch(services, user, conversation, folder, enabled)
        else:
            owner = user.id
            selections.set_folder_switch(services, user, None, folder, enabled)
        self.model.folder_switches.pop((owner, folder), None)
        if enabled is not None:
            self.model.folder_switches[owner, folder] = enabled

    def move_folder(self, step: Step) -> None:
        """Move a folder anywhere but into itself."""
        folder, place = self._folder(step), random.Random(step.seed).choice(self.folder_slots)
        parent: UUID | None = place
        while place is not None:
            if place == folder:
                parent = None
            place = self.model.parents[place]
        folders.move_folder(self.processes[step.process], self.users[0], folder, parent)
        self.model.parents[folder] = parent

    def remake_folder(self, step: Step) -> None:
        """Delete a folder with those below it, and make others at other places."""
        services, folder = self.processes[step.process], self._folder(step)
        folders.delete_folder(services, self.users[0], folder, trash_documents=False)
        above, gone = self.model.parents[folder], {folder}
        while more := {f for f, parent in self.model.parents.items() if parent in gone} - gone:
            gone |= more
        for one in gone:
            del self.model.parents[one]
            self.model.folder_owners.pop(one, None)
        self.model.gates -= gone
        self.model.members = _without(self.model.members, gone)
        for document in self.model.documents.values():
            document.folder = above if document.folder in gone else document.folder
        self.model.folder_switches = _without(self.model.folder_switches, gone, place=1)
        rng = random.Random(step.seed)
        with self._begin(step.process) as session:
            for place, one in enumerate(self.folder_slots):
                if one in gone:
                    self.folder_slots[place] = self._new_folder(session, rng)

    def file(self, step: Step) -> None:
        """Move a document into a folder, or out of all."""
        folder = random.Random(step.seed).choice([None, *self.folder_slots])
        with self._begin(step.process) as session:
            self._file(session, self._document(step), folder)

    def close_folder(self, step: Step) -> None:
        """Open a folder to members only, or to all again."""
        folder = self._folder(step)
        is_gate = folder in self.model.gates
        visibility = "shared" if is_gate else "members"
        update = "UPDATE folders SET visibility = :visibility WHERE id = :id"
        self._run(step, update, visibility=visibility, id=folder)
        self.model.gates ^= {folder}

    def change_member(self, step: Step) -> None:
        """Add a user or a group to a folder's members, or remove one."""
        rng, folder = random.Random(step.seed), self._folder(step)
        user = self.users[step.user].id
        member, column = rng.choice(
            [(user, "user_id"), *((group, "group_id") for group in self.groups)]
        )
        if self.model.members.pop((folder, member), None):
            delete = f"DELETE FROM folder_members WHERE folder_id = :folder AND {column} = :member"
            self._run(step, delete, folder=folder, member=member)
            return
        role = rng.choice(("reader", "contributor", "keeper"))
        insert = f"INSERT INTO folder_members (folder_id, {column}, role) VALUES (:f, :m, :role)"
        self._run(step, insert, f=folder, m=member, role=role)
        self.model.members[folder, member] = role

    def change_group(self, step: Step) -> None:
        """Add a user to a group or remove one."""
        group, user = random.Random(step.seed).choice(self.groups), self.users[step.user].id
        users = self.model.groups[group]
        delete = "DELETE FROM group_members WHERE group_id = :group AND user_id = :user"
        insert = "INSERT INTO group_members VALUES (:group, :user)"
        self._run(step, delete if user in users else insert, group=group, user=user)
        users ^= {user}

    def remake_group(self, step: Step) -> None:
        """Delete a group, and make one without members."""
        rng = random.Random(step.seed)
        place = rng.randrange(GROUPS)
        gone = self.groups[place]
        with self._begin(step.process) as session:
            session.execute(text("DELETE FROM groups WHERE id = :id"), {"id": gone})
            self.groups[place] = self._new_group(session, rng)
        del self.model.groups[gone]
        self.model.members = _without(self.model.members, {gone}, place=1)

    def hand_over_folder(self, step: Step) -> None:
        """Change or remove a folder's owner."""
        owner = random.Random(step.seed).choice([*(user.id for user in self.users), None])
        folder = self._folder(step)
        update = "UPDATE folders SET owner_id = :owner WHERE id = :id"
        self._run(step, update, owner=owner, id=folder)
        self.model.folder_owners.pop(folder, None)
        if owner is not None:
            self.model.folder_owners[folder] = owner

    def trash(self, step: Step) -> None:
        """Move a document to the trash, or restore it."""
        document = self._document(step)
        if document.is_purged:
            return
        move = library.restore_document if document.is_deleted else library.delete_document
        move(self.processes[step.process], self._editor(document), document.id)
        document.is_deleted = not document.is_deleted

    def purge(self, step: Step) -> None:
        """Purge a document, or replace one that is purged."""
        document = self._document(step)
        if document.is_purged:
            new = self._new_document(random.Random(step.seed))
            with self._begin(step.process) as session:
                self._insert(session, [new])
            self.slots[step.slot] = new.id
            return
        library.purge_document(self.processes[step.process], self._editor(document), document.id)
        document.is_deleted = document.is_purged = True
        document.chunks = ()
        self.staged.pop(document.id, None)

    def show_or_hide(self, step: Step) -> None:
        document = self._document(step)
        if document.is_deleted:
            return
        is_shared = not document.is_shared
        library.change_document(
            self.processes[step.process],
            self._editor(document),
            document.id,
            visibility=Visibility.SHARED if is_shared else Visibility.PRIVATE,
        )
        document.is_shared = is_shared

    def give_away(self, step: Step) -> None:
        """Change or remove a document's owner."""
        document = self._document(step)
        owner = random.Random(step.seed).choice([*(user.id for user in self.users), None])
        update = "UPDATE documents SET owner_id = :owner WHERE id = :id"
        self._run(step, update, owner=owner, id=document.id)
        document.owner = owner

    def rename(self, step: Step) -> None:
        """Change a document's title and domain."""
        document = self._document(step)
        if document.is_deleted:
            return
        rng = random.Random(step.seed)
        title, domain = f"{rng.choice(TITLES)} {self._next()}", rng.choice(DOMAINS)
        library.change_document(
            self.processes[step.process],
            self._editor(document),
            document.id,
            title=title,
            domain=domain or "",
        )
        document.title, document.domain = title, domain

    def read_again(self, step: Step) -> None:
        """Store unpublished text beside the published one; if there already is some, publish it."""
        document = self._document(step)
        if document.is_purged:
            return
        with self._begin(step.process) as session:
            if document.id in self.staged:
                job, document.chunks = self.staged.pop(document.id)
                document_store.publish(session, document_id=document.id, job_id=job)
                return
            chunks = self._new_chunks(random.Random(step.seed))
            (job,) = self._insert_text(session, [(document.id, document.title, chunks)])
        self.staged[document.id] = job, chunks

    def fail(self, step: Step) -> None:
        """Fail a second reading, which leaves the published text in place."""
        document = self._document(step)
        if document.id not in self.staged:
            return
        job, _ = self.staged.pop(document.id)
        self._run(step, "UPDATE jobs SET status = 'processing' WHERE id = :id", id=job)
        attempts.fail(self.processes[step.process], job, EmptyFile(name=document.title))

    def withdraw(self, step: Step) -> None:
        """Delete a job, and with it the text that it published."""
        document = self._document(step)
        self._run(step, "DELETE FROM jobs WHERE document_id = :id", id=document.id)
        document.chunks = ()
        self.staged.pop(document.id, None)

    def lose_vectors(self, step: Step) -> None:
        """Delete a document's vectors, or restore the missing ones."""
        document = self._document(step)
        is_whole = all(chunk.has_vector for chunk in document.chunks)
        current_job = "SELECT current_job_id FROM documents WHERE id = :id"
        delete = (
            f"DELETE FROM chunk_embeddings WHERE document_id = :id AND job_id = ({current_job})"
        )
        with self._begin(step.process) as session:
            session.execute(text(delete), {"id": document.id})
            if not is_whole:
                job = session.execute(text(current_job), {"id": document.id}).scalar_one()
                owned = [(job, document.id, chunk) for chunk in document.chunks]
                self._insert_vectors(session, owned)
        document.chunks = tuple(
            replace(chunk, has_vector=not is_whole) for chunk in document.chunks
        )

    def promote(self, step: Step) -> None:
        """Toggle a user's administrator role."""
        place = 1 + step.user % 2
        user = replace(self.users[place], is_admin=not self.users[place].is_admin)
        update = "UPDATE users SET is_admin = :is_admin WHERE id = :id"
        self._run(step, update, is_admin=user.is_admin, id=user.id)
        self.users[place] = user

    def roll_back(self, step: Step) -> None:
        """Make changes and roll them back."""
        before = dict(self.model.defaults), dict(self.model.overrides)
        with self._begin(step.process) as session:
            self._write_default(session, step)
            self._write_override(session, step)
            document_store.set_deleted(session, self._document(step).id, deleted=True)
            session.rollback()
        self.model.defaults, self.model.overrides = before

    def hold_back(self, step: Step) -> None:
        """Hold a change uncommitted during the step's search; commit right after it."""
        before = dict(self.model.defaults), dict(self.model.overrides)
        session = self._held.enter_context(self._begin(step.process))
        self._write_default(session, step)
        self._write_override(session, step)
        after = self.model.defaults, self.model.overrides
        self.model.defaults, self.model.overrides = before

        def committed() -> None:
            self.model.defaults, self.model.overrides = after

        # Called before the session ends; no search runs in between.
        self._held.callback(committed)

    def shuffle(self, step: Step) -> None:
        """Switch and trash many documents at random, in one transaction."""
        rng = random.Random(step.seed)
        user = self.users[step.user].id
        with self._begin(step.process) as session:
            for document in self.model.documents.values():
                enabled, is_deleted = rng.random() < 0.5, rng.random() < 0.2
                binds = {"owner": user, "document": document.id, "enabled": enabled}
                session.execute(_DEFAULT, binds)
                self.model.defaults[user, document.id] = enabled
                if not document.is_purged:
                    document_store.set_deleted(session, document.id, deleted=is_deleted)
                    document.is_deleted = is_deleted

    # --- searches ---------------------------------------------------------------------------------

    def check(self, step: Step) -> None:
        """Search in the process that made the change or in another one, and compare the results
        with the oracle."""
        if step.moves:
            self._seat = Seat(step.asks, step.in_conversation, step.seed % len(self.processes))
        seat = self._seat
        user, services = self.users[seat.user], self.processes[seat.process]
        conversation = self.conversations[seat.user] if seat.in_conversation else None
        question = _question(random.Random(step.seed + 1), is_narrow=step.is_narrow)
        is_whole = step.seed % WHOLE_SEARCH_EVERY == 0
        search = self._search if is_whole else self._search_chunks
        found = search(services, user, conversation, question, step.mode)
        expected = self.model.answer(
            Asker(user.id, user.is_admin),
            conversation,
            question,
            step.mode.value,
        )
        assert set(found) == expected, (user.name, conversation, question)
        assert len(found) == len(expected), "a passage stands twice"

    def _search(
        self,
        services: Services,
        user: User,
        conversation: UUID | None,
        question: Question,
        mode: SearchMode,
    ) -> list[UUID]:
        """Search through the use case."""
        request = SearchRequest(
            question.text,
            top_n=SLOTS * MAX_CHUNKS,
            mode=mode,
            domain=question.domain,
            conversation_id=conversation,
        )
        return [hit.chunk_id for hit in engine.search(services, user, request).hits]

    def _search_chunks(
        self,
        services: Services,
        user: User,
        conversation: UUID | None,
        question: Question,
        mode: SearchMode,
    ) -> list[UUID]:
        """Search through the store alone, which takes half the time."""
        candidates, _ = chunk_search.find_chunks(
            services,
            user,
            question.text,
            _direction(self.slots[0]),
            model=self._model(),
            total_chunks=sum(len(one.chunks) for one in self.model.documents.values()),
            mode=mode,
            limit=SLOTS * MAX_CHUNKS,
            domain=question.domain,
            conversation_id=conversation,
        )
        return [candidate.chunk.chunk_id for candidate in candidates]

    def _model(self) -> RegisteredModel:
        if self._registered is None:
            with self._begin(0) as session:
                self._registered = registry.find_active(session)
        assert self._registered is not None
        return self._registered

    def check_strangers(self) -> None:
        """Check that no user can search in another's conversation, nor in a deleted one."""
        for place, conversation in enumerate(self.conversations):
            request = SearchRequest("maple", conversation_id=conversation or self.slots[0])
            other = self.users[(place + 1) % len(self.users)]
            try:
                engine.search(self.processes[0], other, request)
            except NotFound:
                continue
            raise AssertionError("a foreign conversation was searched")


CHANGES: dict[str, Callable[[World, Step], None]] = {
    change.__name__.replace("_", " "): change
    for change in (
        *(World.switch_default, World.forget_default, World.switch_all_defaults),
        *(World.forget_all_defaults, World.switch_override, World.forget_override),
        *(World.forget_all_overrides, World.remake_conversation, World.switch_folder),
        *(World.move_folder, World.remake_folder, World.file),
        *(World.close_folder, World.change_member, World.change_group),
        *(World.remake_group, World.hand_over_folder, World.trash),
        *(World.purge, World.show_or_hide, World.give_away),
        *(World.rename, World.read_again, World.fail),
        *(World.withdraw, World.lose_vectors, World.promote),
        *(World.roll_back, World.hold_back, World.shuffle),
    )
}


def _without(
    values: dict[tuple[Any, Any], Any], gone: Collection[UUID | None], *, place: int = 0
) -> dict[Any, Any]:
    """Return the entries whose keys have none of these ids at a place."""
    return {key: value for key, value in values.items() if key[place] not in gone}


def _decides(step: Step, share: float) -> bool:
    return random.Random(step.seed).random() < share


def _question(rng: random.Random, *, is_narrow: bool) -> Question:
    words = tuple(rng.sample(WORDS, rng.randint(1, 3)))
    question = Question(words)
    if not is_narrow:
        return question
    others = [word for word in WORDS if word not in words]
    narrowed: tuple[dict[str, Any], ...] = (
        {"domain": rng.choice(DOMAINS[:-1])},
        {"title": rng.choice(TITLES).lower()},
        {"type": rng.choice(list(TYPES))},
        {"excluded": rng.choice(others)},
        {"phrase": tuple(rng.sample(others, 2))},
    )
    for wish in rng.sample(narrowed, rng.choice((1, 1, 2))):
        question = replace(question, **wish)
    return question


def _uuid(rng: random.Random, number: int) -> UUID:
    """Return a reproducible id, made unique by `number`."""
    return UUID(int=rng.getrandbits(96) << 32 | number)


def _direction(key: UUID) -> Vector:
    """Return the chunk's own unit vector (dimensions,)."""
    values = np.random.default_rng(key.int).normal(size=DEFAULT_DIMENSIONS).astype(np.float32)
    direction: Vector = values / np.linalg.norm(values)
    return direction


def _vector(chunk: UUID) -> str:
    return "[" + ",".join(f"{value:.4f}" for value in _direction(chunk)) + "]"


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
_FORGET_OVERRIDES = "DELETE FROM conversation_document_overrides WHERE conversation_id = :c"
_DEFAULT = text(
    """
    INSERT INTO user_document_defaults (user_id, document_id, enabled)
    VALUES (:owner, :document, :enabled)
    ON CONFLICT (user_id, document_id) DO UPDATE SET enabled = excluded.enabled
    """
)
_ALL_DEFAULTS = """
    INSERT INTO user_document_defaults (user_id, document_id, enabled)
    SELECT :owner, id, :enabled FROM documents
    ON CONFLICT (user_id, document_id) DO UPDATE SET enabled = excluded.enabled
    """

_OVERRIDE = text(
    """
    INSERT INTO conversation_document_overrides (conversation_id, document_id, enabled)
    VALUES (:owner, :document, :enabled)
    ON CONFLICT (conversation_id, document_id) DO UPDATE SET enabled = excluded.enabled
    """
)
