"""The effective selection of a user: documents that are visible, not deleted, and enabled.

This is the one definition of the rule that every search and list obeys. A document is visible to
its owner and to administrators; if it is shared, also to the members of its gate, the nearest
folder above it that is open to members only, or, without a gate, to all (ADR 56). Whether it is
enabled depends on the first of these that is set: its switch in the conversation, that of the
nearest folder in the conversation, the conversation's scope (its documents and folders are switched
on, its tags are on, all else is off), the user's switch of the document, that of the nearest
folder; by default it is on. Triggers keep the nearest switches in `folder_states` (ADR 54). A
document in the trash leaves search by this rule, in the transaction that sets `deleted_at`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Select, and_, column, or_, select, table, true

from portal.domain.documents.folders import FolderRole
from portal.domain.documents.selection import AskScope
from portal.domain.people import User
from portal.store.models import CollectionRow, DocumentRow

PORTAL_COLLECTION = "portal"
# Statements are cached for this many users, because composing one takes longer than running it.
MAX_COMPOSED = 256

# For statements written as text, in which documents have the alias d. Each table is joined by its
# primary key, under the name of its switch.
_JOINS = {
    "override": """conversation_document_overrides override
        ON override.document_id = d.id AND override.conversation_id = :conversation_id""",
    "folder_override": """folder_states folder_override
        ON folder_override.folder_id = d.folder_id
        AND folder_override.owner_id = :conversation_id""",
    "folder_scope": """(
            SELECT id, scope -> 'tags' AS tags FROM conversations WHERE scope IS NOT NULL
        ) folder_scope ON folder_scope.id = :conversation_id""",
    "user_default": """user_document_defaults user_default
        ON user_default.document_id = d.id AND user_default.user_id = :user_id""",
    "folder_default": """folder_states folder_default
        ON folder_default.folder_id = d.folder_id AND folder_default.owner_id = :user_id""",
}
# Whether a document has a tag of the scope; NULL without a scope.
IN_SCOPE = """CASE WHEN folder_scope.id IS NOT NULL
    THEN jsonb_exists_any(folder_scope.tags, d.tags) END"""
_STATES = {"folder_scope": IN_SCOPE}
# The condition that a user passes the gate of a document or folder. The subquery is the same for
# all rows, and evaluated at most once per statement.
_PASSES = """({0}.gate_id IS NULL OR {0}.gate_id IN (
    SELECT folder_id FROM folder_access WHERE user_id = :user_id
))"""
VISIBLE_WHERE = f"""
    d.deleted_at IS NULL
    AND (d.visibility = 'shared' AND {_PASSES.format("d")}
         OR d.owner_id = :user_id OR :user_is_admin)
"""
# The condition that not all users may see a document: its chunks are not in the index of shared
# ones.
IS_LIMITED = "(d.visibility = 'private' OR d.gate_id IS NOT NULL)"
# The condition that a user may see a folder, by its alias.
VISIBLE_FOLDER = f"""(
    {{0}}.visibility <> 'private' AND {_PASSES} OR {{0}}.owner_id = :user_id OR :user_is_admin
)"""
# The condition that a user may add to a folder, by its alias.
OPEN_FOLDER = f"""({VISIBLE_FOLDER} AND (
    {{0}}.gate_id IS NULL OR :user_is_admin OR {{0}}.gate_id IN (
        SELECT folder_id FROM folder_access
        WHERE user_id = :user_id AND role IN ('contributor', 'keeper')
    )
))"""
# The condition that a user is a keeper of the gate of a shared document or a folder.
KEEPS = """{0}.gate_id IN (
    SELECT folder_id FROM folder_access WHERE user_id = :user_id AND role = 'keeper'
)"""
EDITABLE_WHERE = f"""(
    d.owner_id = :user_id OR :user_is_admin OR d.visibility = 'shared' AND {KEEPS.format("d")}
)"""
# A view of the users who pass each gate, as members or through a group, and their roles.
_ACCESS = table("folder_access", column("folder_id"), column("user_id"), column("role"))


def _enabled(switches: Iterable[str]) -> str:
    states = (_STATES.get(name, f"{name}.enabled") for name in switches)
    return f"COALESCE({', '.join(states)}, TRUE)"


def selection_sql(*, in_conversation: bool) -> tuple[str, str]:
    """Return the joins and conditions of the selection. Without a conversation, its switches are
    left out, which would be looked up for each row."""
    names = [name for name in _JOINS if in_conversation or name.endswith("default")]
    joins = " ".join(f"LEFT JOIN {_JOINS[name]}" for name in reversed(names))
    return joins, f"{VISIBLE_WHERE} AND {_enabled(names)}"


ENABLED = _enabled(_JOINS)
SELECTION_JOINS, SELECTION_WHERE = selection_sql(in_conversation=True)


def selection_binds(user: User, conversation_id: UUID | None) -> dict[str, Any]:
    """Return values for the binds of SELECTION_JOINS and SELECTION_WHERE."""
    return {
        "user_id": user.id,
        "user_is_admin": user.is_admin,
        "conversation_id": conversation_id,
    }


def gates_of(user: User, *roles: FolderRole) -> Select[Any]:
    """Select the gates that a user passes; with `roles`, those where the user has one of them."""
    gates = select(_ACCESS.c.folder_id).where(_ACCESS.c.user_id == user.id)
    return gates.where(_ACCESS.c.role.in_(roles)) if roles else gates


def passes_gate(user: User, row: Any) -> ColumnElement[bool]:
    """Return the condition that a user passes the gate of a document or folder."""
    return or_(row.gate_id.is_(None), row.gate_id.in_(gates_of(user)))


def visible_to(user: User) -> ColumnElement[bool]:
    """Return the condition that a user may know that a document exists."""
    if user.is_admin:
        return true()
    is_shared = and_(DocumentRow.visibility == "shared", passes_gate(user, DocumentRow))
    return or_(is_shared, DocumentRow.owner_id == user.id)


def editable_by(user: User) -> ColumnElement[bool]:
    """Return the condition that a user may change a document: owners and administrators, and the
    keepers of its gate if it is shared."""
    if user.is_admin:
        return true()
    keeps = DocumentRow.gate_id.in_(gates_of(user, FolderRole.KEEPER))
    return or_(DocumentRow.owner_id == user.id, and_(DocumentRow.visibility == "shared", keeps))


# Not a join: within one collection, the indexes of sorted lists are in order.
_PORTAL_ID = (
    select(CollectionRow.id).where(CollectionRow.name == PORTAL_COLLECTION).scalar_subquery()
)


def listed_for(user: User, *, deleted: bool = False) -> ColumnElement[bool]:
    """Return the condition that a document is in the user's lists, or with `deleted` in the user's
    trash. Documents of programs are in neither."""
    is_visible = and_(DocumentRow.collection_id == _PORTAL_ID, visible_to(user))
    if not deleted:
        return and_(is_visible, DocumentRow.deleted_at.is_(None))
    is_trashed = and_(DocumentRow.deleted_at.is_not(None), DocumentRow.purged_at.is_(None))
    # Only the owner and administrators see the trash; for other users its documents are gone.
    is_own = true() if user.is_admin else DocumentRow.owner_id == user.id
    return and_(is_visible, is_trashed, is_own)


def in_or_below(folders: str) -> str:
    """Return the condition that a document on the alias d is in a folder that fulfils the condition
    `folders`, or below one."""
    return f"""d.folder_id IN (
        WITH RECURSIVE below AS (
            SELECT id FROM folders WHERE {folders}
            UNION SELECT f.id FROM folders f JOIN below ON f.parent_id = below.id
        ) SELECT id FROM below)"""


# The condition of a scope on the alias d.
_CONDITION = f"""
    AND (d.id = ANY(CAST(:f_scope_documents AS uuid[]))
      OR d.tags && CAST(:f_scope_tags AS text[])
      OR {in_or_below("id = ANY(CAST(:f_scope_folders AS uuid[]))")})
"""


def scope_conditions(scope: AskScope | None, binds: dict[str, Any]) -> list[str]:
    """Return the conditions of a scope, none for all documents; add their binds."""
    if not scope:
        return []
    binds |= {
        "f_scope_documents": list(scope.documents),
        "f_scope_folders": list(scope.folders),
        "f_scope_tags": list(scope.tags),
    }
    return [_CONDITION]
