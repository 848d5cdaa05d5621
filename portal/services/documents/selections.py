"""Switches of documents and folders: a user's own, and those of a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from portal.domain.documents.selection import DocumentSwitch, FolderSwitch, SelectionPage
from portal.domain.people import User
from portal.errors import existing
from portal.services import Services
from portal.store.answers import conversations as conversation_store
from portal.store.documents import folders as folder_store
from portal.store.documents import selections as selection_store
from portal.store.session import Session


def list_defaults(
    services: Services, user: User, *, contains: str = "", cursor: str | None = None,
    limit: int = 50,
) -> SelectionPage:  # fmt: skip
    """Return a user's own switches, by title. Raises MalformedRequest on a bad cursor."""
    with services.database.begin() as session:
        return selection_store.list_switches(
            session, user, None, contains=contains, cursor=cursor, limit=limit
        )


def switches(
    services: Services, user: User, document_ids: Sequence[UUID]
) -> dict[UUID, DocumentSwitch]:
    """Return a user's own switches of these documents, without those the user may not see."""
    with services.database.begin() as session:
        return selection_store.find_switches(session, user, document_ids)


def set_default(
    services: Services, user: User, document_id: UUID, enabled: bool | None
) -> DocumentSwitch:  # fmt: skip
    """Enable or disable a document in all conversations without an override. None restores the
    system's default. Raises NotFound."""
    with services.database.begin() as session:
        _seen(session, user, None, document_id)
        selection_store.set_default(session, user.id, document_id, enabled=enabled)
        return _seen(session, user, None, document_id)


def list_switches(
    services: Services, user: User, conversation_id: UUID, *, contains: str = "",
    cursor: str | None = None, limit: int = 50, in_panel: bool = False,
    folder_id: UUID | None = None,
) -> SelectionPage:  # fmt: skip
    """Return the effective switches in a conversation and the tier that decides each, by title.
    `in_panel` as of `store.documents.selections.list_switches`. Raises NotFound, MalformedRequest
    on a bad cursor."""
    with services.database.begin() as session:
        conversation_store.require_own(session, conversation_id, user.id)
        return selection_store.list_switches(
            session, user, conversation_id, contains=contains, cursor=cursor, limit=limit,
            in_panel=in_panel, folder_id=folder_id,
        )  # fmt: skip


def set_override(
    services: Services, user: User, conversation_id: UUID, document_id: UUID,
    enabled: bool | None,
) -> DocumentSwitch:  # fmt: skip
    """Enable or disable a document in one conversation; None restores the user's default. Takes
    effect with the next message, in every process. Raises NotFound."""
    with services.database.begin() as session:
        conversation_store.lock_own(session, conversation_id, user.id)
        _seen(session, user, conversation_id, document_id)
        selection_store.set_override(session, conversation_id, document_id, enabled=enabled)
        return _seen(session, user, conversation_id, document_id)


def set_all_overrides(
    services: Services, user: User, conversation_id: UUID, enabled: bool | None
) -> None:  # fmt: skip
    """Enable or disable every existing document in one conversation. None restores the user's
    defaults. Documents added later inherit. Raises NotFound."""
    with services.database.begin() as session:
        conversation_store.lock_own(session, conversation_id, user.id)
        selection_store.set_all_overrides(session, user, conversation_id, enabled=enabled)


def count(services: Services, user: User, conversation_id: UUID | None) -> tuple[int, int]:
    """Return the number of enabled documents and the total, without what could not be read. Raises
    NotFound."""
    with services.database.begin() as session:
        if conversation_id is not None:
            conversation_store.require_own(session, conversation_id, user.id)
        return selection_store.count(session, user, conversation_id, is_readable=True)


def _seen(
    session: Session, user: User, conversation_id: UUID | None, document_id: UUID
) -> DocumentSwitch:
    return existing(selection_store.find_switch(session, user, conversation_id, document_id))


def list_folder_switches(
    services: Services, user: User, conversation_id: UUID | None = None, *,
    parent_id: UUID | None = None, contains: str = "",
) -> tuple[FolderSwitch, ...]:  # fmt: skip
    """Return the folders right below one with their switches, or all whose names contain a text.
    Raises NotFound."""
    with services.database.begin() as session:
        if conversation_id is not None:
            conversation_store.require_own(session, conversation_id, user.id)
        if parent_id is not None:
            existing(folder_store.find_folder(session, user, parent_id))
        return selection_store.list_folder_switches(
            session, user, conversation_id, parent_id=parent_id, contains=contains
        )


def folder_switch(services: Services, user: User, folder_id: UUID) -> FolderSwitch:
    """Return a user's own switch of a folder. Raises NotFound."""
    with services.database.begin() as session:
        return _seen_folder(session, user, None, folder_id)


def folders_off(services: Services, user: User) -> set[UUID]:
    """Return the folders that are off for a user."""
    with services.database.begin() as session:
        return selection_store.find_folders_off(session, user)


def set_folder_default(
    services: Services, user: User, folder_id: UUID, enabled: bool | None
) -> FolderSwitch:
    """Enable or disable all that lies in a folder, now and later; None follows the folder above.
    Raises NotFound."""
    with services.database.begin() as session:
        folder_store.lock_tree(session)
        _seen_folder(session, user, None, folder_id)
        selection_store.set_folder_switch(session, folder_id, user_id=user.id, enabled=enabled)
        return _seen_folder(session, user, None, folder_id)


def set_folder_override(
    services: Services, user: User, conversation_id: UUID, folder_id: UUID,
    enabled: bool | None,
) -> FolderSwitch:  # fmt: skip
    """Enable or disable all that lies in a folder in one conversation. Raises NotFound."""
    with services.database.begin() as session:
        folder_store.lock_tree(session)
        conversation_store.lock_own(session, conversation_id, user.id)
        _seen_folder(session, user, conversation_id, folder_id)
        selection_store.set_folder_switch(
            session, folder_id, conversation_id=conversation_id, enabled=enabled
        )
        return _seen_folder(session, user, conversation_id, folder_id)


def _seen_folder(
    session: Session, user: User, conversation_id: UUID | None, folder_id: UUID
) -> FolderSwitch:
    return existing(selection_store.find_folder_switch(session, user, conversation_id, folder_id))
