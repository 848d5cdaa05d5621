"""The documents that count for a user: visible, not deleted, and enabled.

The one definition of the rule that every search and list obeys: ``COALESCE(conversation override,
user default, TRUE)``, not deleted, and visible to the user. A document in the trash leaves search
by this rule, in the transaction that sets `deleted_at`.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, and_, or_, true

from portal.domain.people import User
from portal.store.models import CollectionRow, DocumentRow

PORTAL_COLLECTION = "portal"

# For statements written as text, in which documents have the alias d.
_DEFAULTS = """
    LEFT JOIN user_document_defaults user_default
        ON user_default.document_id = d.id AND user_default.user_id = :user_id
"""
SELECTION_JOINS = f"""
    {_DEFAULTS}
    LEFT JOIN conversation_document_overrides override
        ON override.document_id = d.id AND override.conversation_id = :conversation_id
"""

VISIBLE_WHERE = """
    d.deleted_at IS NULL
    AND (d.visibility = 'shared' OR d.owner_id = :user_id OR :user_is_admin)
"""
ENABLED = "COALESCE(override.enabled, user_default.enabled, TRUE)"
SELECTION_WHERE = f"{VISIBLE_WHERE} AND {ENABLED}"


def selection_sql(*, in_conversation: bool) -> tuple[str, str]:
    """Return SELECTION_JOINS and SELECTION_WHERE.

    Outside a conversation they leave out its overrides, which a generic plan would look up for each
    row.
    """
    if in_conversation:
        return SELECTION_JOINS, SELECTION_WHERE
    return _DEFAULTS, f"{VISIBLE_WHERE} AND COALESCE(user_default.enabled, TRUE)"


def selection_binds(user: User, conversation_id: UUID | None) -> dict[str, Any]:
    """Return values for the binds of SELECTION_JOINS and SELECTION_WHERE."""
    return {
        "user_id": user.id,
        "user_is_admin": user.is_admin,
        "conversation_id": conversation_id,
    }


def visible_to(user: User) -> ColumnElement[bool]:
    """Return the condition that a user may know that a document exists."""
    if user.is_admin:
        return true()
    return or_(DocumentRow.visibility == "shared", DocumentRow.owner_id == user.id)


def listed_for(user: User) -> ColumnElement[bool]:
    """Return the condition that a user is shown a document: visible, and not in the trash.

    Needs the document's collection: those of programs are shown to no user.
    """
    is_live = DocumentRow.deleted_at.is_(None)
    return and_(CollectionRow.name == PORTAL_COLLECTION, is_live, visible_to(user))
