"""Delete an account, and keep, transfer, trash or purge its documents."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from portal.domain.documents import OwnedDocuments, Visibility
from portal.domain.people import DocumentFate, User, require_admin
from portal.errors import InvalidInput, NoSuchAccount, NotFound
from portal.services import Services, audit
from portal.services.audit import AuditEvent
from portal.services.documents.library import erase
from portal.services.people.accounts import normalise_name, refuse_last_admin
from portal.store.documents import folders as folder_store
from portal.store.documents import rows as document_store
from portal.store.documents.folders import sources as source_store
from portal.store.models import UserRow
from portal.store.people import accounts as account_store
from portal.store.session import Session


def count_documents(services: Services, actor: User, user_id: UUID) -> OwnedDocuments:
    """Return how many documents an account has, for administrators and itself."""
    if user_id != actor.id:
        require_admin(actor)
    with services.database.begin() as session:
        return document_store.count_documents_of(session, user_id)


def delete_account(
    services: Services,
    actor: User,
    user_id: UUID,
    *,
    documents: DocumentFate,
    new_owner_name: str = "",
) -> None:
    """Delete an account with its conversations, tokens and settings, all or nothing. Administrators
    delete any account, other users their own. `new_owner_name` is the user who receives the
    documents. Raises NotFound, InvalidInput, NoSuchAccount, and Conflict for the last
    administrator."""
    if user_id != actor.id:
        require_admin(actor)
    elif documents is DocumentFate.TRANSFER:
        # A user must not be able to push documents onto another.
        raise InvalidInput("only an administrator can transfer documents to another user")
    with services.database.begin() as session:
        # Users who create folders lock the tree and then their own row.
        folder_store.lock_tree(session)
        _delete(session, account_store.lock_for_deletion(session, user_id), actor, documents,
                new_owner_name)  # fmt: skip


def delete_account_by_name(
    services: Services, name: str, *, documents: DocumentFate, new_owner_name: str = ""
) -> None:
    """Delete an account from the command line. Raises NoSuchAccount, InvalidInput, Conflict."""
    with services.database.begin() as session:
        folder_store.lock_tree(session)
        found = account_store.find_user_by_name(session, normalise_name(name))
        row = account_store.lock_for_deletion(session, found.id) if found else None
        if row is None:
            raise NoSuchAccount(name=name)
        _delete(session, row, None, documents, new_owner_name)


def _delete(
    session: Session,
    row: UserRow | None,
    actor: User | None,
    documents: DocumentFate,
    new_owner_name: str,
) -> None:
    if row is None:
        raise NotFound
    # Uploads of this user wait for the lock, since they reference the row: earlier ones are among
    # the documents below, later ones find no account.
    refuse_last_admin(session, row)
    new_owner = _find_new_owner(session, row, actor, documents, new_owner_name)
    counts = _dispose_of_documents(session, row.id, actor, documents, new_owner)
    if documents in {DocumentFate.PURGE, DocumentFate.KEEP_SHARED}:
        # Like private documents, private folders are for no other user.
        folder_store.remove_private(session, row.id)
    if new_owner is not None and documents is not DocumentFate.TRASH:
        # Otherwise the next run of a source would add the trashed documents again.
        source_store.hand_over(session, account_store.to_user(row), new_owner.id)
    if new_owner is not None:
        folder_store.hand_over(session, row.id, new_owner.id)
    audit.record(
        session,
        AuditEvent.USER_DELETED,
        actor,
        row,
        documents=documents.value,
        # Entries keep this name, since programs read them.
        heir=new_owner.name if new_owner else None,
        **counts,
    )
    account_store.delete_user(session, row.id)


def _dispose_of_documents(
    session: Session,
    owner_id: UUID,
    actor: User | None,
    fate: DocumentFate,
    new_owner: UserRow | None,
) -> dict[str, Any]:
    """Purge, trash or transfer a user's documents; return how many of each."""
    counts = {"transferred": 0, "trashed": 0, "purged": 0}
    for document in document_store.lock_documents_of(session, owner_id):
        is_private = document.visibility == Visibility.PRIVATE
        if fate is DocumentFate.PURGE or (fate is DocumentFate.KEEP_SHARED and is_private):
            if document.deleted_at is None:
                document_store.set_deleted(session, document.id, deleted=True)
            erase(session, document.id, actor=actor)
            counts["purged"] += 1
            continue
        if fate is DocumentFate.TRASH and document.deleted_at is None:
            document_store.set_deleted(session, document.id, deleted=True)
            counts["trashed"] += 1
        if new_owner is not None:
            document.owner_id = new_owner.id
            counts["transferred"] += 1
    return counts


def _find_new_owner(
    session: Session, row: UserRow, actor: User | None, documents: DocumentFate, new_owner_name: str
) -> UserRow | None:
    """Return the new owner of the documents that stay."""
    if documents is DocumentFate.PURGE:
        return None
    if documents is DocumentFate.TRANSFER:
        new_owner = account_store.find_user_by_name(session, normalise_name(new_owner_name))
        if new_owner is None or new_owner.disabled_at is not None:
            raise NoSuchAccount(name=new_owner_name)
    elif actor is not None and actor.is_admin and actor.id != row.id:
        new_owner = account_store.get_user(session, actor.id)
    else:
        new_owner = account_store.first_active_admin(session, other_than=row.id)
    if new_owner is None or new_owner.id == row.id:
        raise InvalidInput("choose another account to transfer the documents to")
    # The new owner must not be deleted at the same time.
    account_store.lock_user(session, new_owner.id)
    return new_owner
