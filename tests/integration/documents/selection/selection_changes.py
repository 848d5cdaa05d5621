"""Random changes of a small portal: through the portal's use cases, or through plain SQL where
there is no use case."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from sqlalchemy import text

from portal.domain.documents import Visibility
from portal.errors import EmptyFile, NotFound
from portal.services.documents import folders, library, switches
from portal.services.documents.ingestion import attempts
from portal.store.documents import rows as document_store
from portal.store.models import DocumentRow
from portal.store.session import Session
from tests.integration.documents.selection.selection_model import Asker
from tests.integration.documents.selection.small_portal import (
    DOMAINS,
    FOLDERS,
    GROUPS,
    TITLES,
    SmallPortal,
    Step,
)


@dataclass(slots=True)
class Changes(SmallPortal):
    """Each method makes the same change in the library and in the database."""

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
                switches.set_folder_switch(services, user, None, folder, enabled)
            except NotFound:
                return
            raise AssertionError("a foreign folder was switched")
        if conversation is not None and rng.random() < 0.5:
            owner = conversation
            switches.set_folder_switch(services, user, conversation, folder, enabled)
        else:
            owner = user.id
            switches.set_folder_switch(services, user, None, folder, enabled)
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
        """Delete a folder with those below it, and create as many at random places."""
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
        """Move a document into a folder, or out of all folders."""
        folder = random.Random(step.seed).choice([None, *self.folder_slots])
        with self._begin(step.process) as session:
            self._file(session, self._document(step), folder)

    def close_folder(self, step: Step) -> None:
        """Restrict a folder to its members, or open it to all users again."""
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
        """Delete a group, and create one without members."""
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
                document_store.publish(session, session.get_one(DocumentRow, document.id), job)
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


CHANGES: dict[str, Callable[[Changes, Step], None]] = {
    change.__name__.replace("_", " "): change
    for change in (
        *(Changes.switch_default, Changes.forget_default, Changes.switch_all_defaults),
        *(Changes.forget_all_defaults, Changes.switch_override, Changes.forget_override),
        *(Changes.forget_all_overrides, Changes.remake_conversation, Changes.switch_folder),
        *(Changes.move_folder, Changes.remake_folder, Changes.file),
        *(Changes.close_folder, Changes.change_member, Changes.change_group),
        *(Changes.remake_group, Changes.hand_over_folder, Changes.trash),
        *(Changes.purge, Changes.show_or_hide, Changes.give_away),
        *(Changes.rename, Changes.read_again, Changes.fail),
        *(Changes.withdraw, Changes.lose_vectors, Changes.promote),
        *(Changes.roll_back, Changes.hold_back, Changes.shuffle),
    )
}


def _without(
    values: dict[tuple[Any, Any], Any], gone: Collection[UUID | None], *, place: int = 0
) -> dict[Any, Any]:
    """Return the entries whose keys have none of these ids at `place`."""
    return {key: value for key, value in values.items() if key[place] not in gone}


def _decides(step: Step, share: float) -> bool:
    return random.Random(step.seed).random() < share


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
