"""Switches of documents and folders, for a conversation or, without one, for the user.

Functions raise NotFound for a conversation, document or folder that the user may not see.
"""

from __future__ import annotations

from uuid import UUID

from portal.domain.documents.selection import DocumentSwitch, FolderSwitch, SelectionPage
from portal.domain.people import User
from portal.errors import existing
from portal.services import Services
from portal.services.transactions import in_transaction
from portal.store.answers import conversations as conversation_store
from portal.store.documents import folders as folder_store
from portal.store.documents import switches as switch_store
from portal.store.session import Session

find_switches = in_transaction(switch_store.find_switches)
find_folders_off = in_transaction(switch_store.find_folders_off)


def list_switches(
    services: Services,
    user: User,
    conversation_id: UUID | None,
    *,
    contains: str = "",
    cursor: str | None = None,
    limit: int = 50,
    in_panel: bool = False,
    folder_id: UUID | None = None,
) -> SelectionPage:
    """Return the effective switches and the tier that decides each, by title. For `in_panel`, see
    `store.documents.switches.list_switches`. Raises MalformedRequest on a bad cursor."""
    with services.database.begin() as session:
        _require_own(session, user, conversation_id)
        return switch_store.list_switches(
            session,
            user,
            conversation_id,
            contains=contains,
            cursor=cursor,
            limit=limit,
            in_panel=in_panel,
            folder_id=folder_id,
        )


def set_switch(
    services: Services,
    user: User,
    conversation_id: UUID | None,
    document_id: UUID,
    enabled: bool | None,
) -> DocumentSwitch:
    """Enable or disable a document in a conversation or, without one, in all that do not override
    it; None removes the switch. Takes effect with the next message, in every process."""
    with services.database.begin() as session:
        owner = _lock_owner(session, user, conversation_id)
        existing(switch_store.find_switch(session, user, conversation_id, document_id))
        switch_store.set_switch(session, document_id, **owner, enabled=enabled)
        return existing(switch_store.find_switch(session, user, conversation_id, document_id))


def set_all_overrides(
    services: Services, user: User, conversation_id: UUID, enabled: bool | None
) -> None:
    """Enable or disable every existing document in one conversation. None restores the user's
    defaults. Documents added later inherit."""
    with services.database.begin() as session:
        conversation_store.lock_own(session, conversation_id, user.id)
        switch_store.set_all_overrides(session, user, conversation_id, enabled=enabled)


def count_enabled(services: Services, user: User, conversation_id: UUID | None) -> tuple[int, int]:
    """Return the number of enabled documents and of all, without those that could not be read."""
    with services.database.begin() as session:
        _require_own(session, user, conversation_id)
        return switch_store.count_enabled(session, user, conversation_id, is_readable=True)


def list_folder_switches(
    services: Services,
    user: User,
    conversation_id: UUID | None = None,
    *,
    parent_id: UUID | None = None,
    contains: str = "",
    with_counts: bool = False,
) -> tuple[FolderSwitch, ...]:
    """Return the folders directly below one with their switches, or all whose names contain a text.
    For `with_counts`, see `store.documents.switches.list_folder_switches`."""
    with services.database.begin() as session:
        _require_own(session, user, conversation_id)
        if parent_id is not None:
            existing(folder_store.find_folder(session, user, parent_id))
        return switch_store.list_folder_switches(
            session,
            user,
            conversation_id,
            parent_id=parent_id,
            contains=contains,
            with_counts=with_counts,
        )


def get_folder_switch(services: Services, user: User, folder_id: UUID) -> FolderSwitch:
    """Return a user's own switch of a folder."""
    with services.database.begin() as session:
        return existing(switch_store.find_folder_switch(session, user, None, folder_id))


def set_folder_switch(
    services: Services,
    user: User,
    conversation_id: UUID | None,
    folder_id: UUID,
    enabled: bool | None,
    *,
    clears_inside: bool = False,
) -> FolderSwitch:
    """Enable or disable everything in a folder, now and later; None follows the folder above.
    `clears_inside` removes the conversation's switches inside it, which would take precedence."""
    with services.database.begin() as session:
        folder_store.lock_tree(session)
        owner = _lock_owner(session, user, conversation_id)
        existing(switch_store.find_folder_switch(session, user, conversation_id, folder_id))
        if clears_inside and conversation_id is not None and enabled is not None:
            switch_store.clear_folder(session, user, conversation_id, folder_id)
        switch_store.set_folder_switch(session, folder_id, **owner, enabled=enabled)
        return existing(switch_store.find_folder_switch(session, user, conversation_id, folder_id))


def _require_own(session: Session, user: User, conversation_id: UUID | None) -> None:
    if conversation_id is not None:
        conversation_store.require_own(session, conversation_id, user.id)


def _lock_owner(session: Session, user: User, conversation_id: UUID | None) -> dict[str, UUID]:
    """Return the owner of a switch as a keyword argument; lock the conversation, if any."""
    if conversation_id is None:
        return {"user_id": user.id}
    conversation_store.lock_own(session, conversation_id, user.id)
    return {"conversation_id": conversation_id}
