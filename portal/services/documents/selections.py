"""What is switched on for a person: their own defaults, and what a conversation says above them."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from portal.domain.people import User
from portal.domain.selection import DocumentSwitch, SelectionPage
from portal.errors import NotFound
from portal.services import Services
from portal.store.answers import conversations as conversation_store
from portal.store.documents import selections as selection_store
from portal.store.session import Session


def list_defaults(
    services: Services, user: User, *, contains: str = "", cursor: str | None = None,
    limit: int = 50,
) -> SelectionPage:  # fmt: skip
    """A person's own switches, by title. Raises MalformedRequest on a bad cursor."""
    with services.database.begin() as session:
        return selection_store.list_switches(
            session, user, None, contains=contains, cursor=cursor, limit=limit
        )


def switches(
    services: Services, user: User, document_ids: Sequence[UUID]
) -> dict[UUID, DocumentSwitch]:
    """A person's own switches of these documents, without those that the person may not see."""
    with services.database.begin() as session:
        return selection_store.find_switches(session, user, document_ids)


def set_default(
    services: Services, user: User, document_id: UUID, enabled: bool | None
) -> DocumentSwitch:  # fmt: skip
    """Switch a document on or off in all conversations that do not say otherwise; None inherits
    the system's default again. Raises NotFound."""
    with services.database.begin() as session:
        _seen(session, user, None, document_id)
        selection_store.set_default(session, user.id, document_id, enabled=enabled)
        return _seen(session, user, None, document_id)


def list_switches(
    services: Services, user: User, conversation_id: UUID, *, contains: str = "",
    cursor: str | None = None, limit: int = 50,
) -> SelectionPage:  # fmt: skip
    """What is switched on in a conversation, and which tier decides, by title. Raises NotFound,
    MalformedRequest on a bad cursor."""
    with services.database.begin() as session:
        conversation_store.require_own(session, conversation_id, user.id)
        return selection_store.list_switches(
            session, user, conversation_id, contains=contains, cursor=cursor, limit=limit
        )


def set_override(
    services: Services, user: User, conversation_id: UUID, document_id: UUID,
    enabled: bool | None,
) -> DocumentSwitch:  # fmt: skip
    """Switch a document on or off in one conversation; None inherits the person's default again.
    Counts from the next message on, in every process. Raises NotFound."""
    with services.database.begin() as session:
        conversation_store.lock_own(session, conversation_id, user.id)
        _seen(session, user, conversation_id, document_id)
        selection_store.set_override(session, conversation_id, document_id, enabled=enabled)
        return _seen(session, user, conversation_id, document_id)


def set_all_overrides(
    services: Services, user: User, conversation_id: UUID, enabled: bool | None
) -> None:  # fmt: skip
    """Switch every document there is on or off in one conversation; None goes back to the
    person's defaults. Documents that come later inherit. Raises NotFound."""
    with services.database.begin() as session:
        conversation_store.lock_own(session, conversation_id, user.id)
        selection_store.set_all_overrides(session, user, conversation_id, enabled=enabled)


def count(services: Services, user: User, conversation_id: UUID | None) -> tuple[int, int]:
    """How many documents are on, and of how many. Raises NotFound."""
    with services.database.begin() as session:
        if conversation_id is not None:
            conversation_store.require_own(session, conversation_id, user.id)
        return selection_store.count(session, user, conversation_id)


def _seen(
    session: Session, user: User, conversation_id: UUID | None, document_id: UUID
) -> DocumentSwitch:
    switch = selection_store.find_switch(session, user, conversation_id, document_id)
    if switch is None:
        raise NotFound
    return switch
