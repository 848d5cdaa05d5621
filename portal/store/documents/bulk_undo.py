"""Undoing of changes of many documents, where nothing came between."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import delete, func, select, text
from sqlalchemy.orm import Session

from portal.domain.documents.bulk import BulkAction
from portal.domain.people import User
from portal.store.documents.selection import EDITABLE_WHERE, KEEPS, OPEN_FOLDER
from portal.store.models import BulkChangeRow

# The assignment, and the condition that there was no later change.
_UNDO = {
    BulkAction.MOVE: (
        f"""folder_id = (
            SELECT f.id FROM folders f WHERE f.id = CAST(b.value AS uuid)
              AND {OPEN_FOLDER.format("f")}
        )""",
        # If the folder is gone the document moves out of folders, but never out of a gate.
        f"""d.folder_id IS NOT DISTINCT FROM CAST(c.value ->> 'value' AS uuid)
            AND (d.gate_id IS NULL OR b.value IS NULL OR EXISTS (
                SELECT FROM folders f
                WHERE f.id = CAST(b.value AS uuid) AND {OPEN_FOLDER.format("f")}
            ))""",
    ),
    BulkAction.ADD_TAG: ("tags = array_remove(d.tags, c.value ->> 'value')", "true"),
    BulkAction.REMOVE_TAG: (
        "tags = array_append(d.tags, c.value ->> 'value')",
        "NOT d.tags @> ARRAY[c.value ->> 'value']",
    ),
    BulkAction.DOMAIN: ("domain = b.value", "d.domain IS NOT DISTINCT FROM c.value ->> 'value'"),
    BulkAction.VISIBILITY: ("visibility = b.value", "d.visibility = c.value ->> 'value'"),
    BulkAction.DELETE: (
        "deleted_at = NULL",
        """d.deleted_at IS NOT NULL AND (d.status = 'failed' OR NOT EXISTS (
            SELECT FROM documents o
            WHERE o.owner_id = d.owner_id AND o.sha256 = d.sha256 AND o.id <> d.id
              AND o.deleted_at IS NULL AND o.status <> 'failed'
        ))""",
    ),
    BulkAction.RESTORE: ("deleted_at = now()", "d.deleted_at IS NULL"),
}
# Keepers may undo their moves out of a folder.
_WAS_KEPT = f"""OR d.visibility = 'shared' AND EXISTS (
    SELECT FROM folders f WHERE f.id = CAST(b.value AS uuid) AND {KEEPS.format("f")}
)"""
_HOLD_FOLDERS = text(
    """
    SELECT id FROM folders WHERE id IN (
        SELECT CAST(b.value AS uuid) FROM bulk_changes c, jsonb_each_text(c.before) b
        WHERE c.id = :change_id
    ) ORDER BY id FOR SHARE
    """
)
_UNDO_SWITCHES = (
    text(
        """
        DELETE FROM user_document_defaults s USING bulk_changes c, jsonb_each_text(c.before) b
        WHERE c.id = :change_id AND s.user_id = c.user_id
          AND s.document_id = CAST(b.key AS uuid) AND b.value IS NULL
        """
    ),
    text(
        """
        INSERT INTO user_document_defaults (user_id, document_id, enabled)
        SELECT c.user_id, d.id, CAST(b.value AS boolean)
        FROM bulk_changes c, jsonb_each_text(c.before) b
        JOIN documents d ON d.id = CAST(b.key AS uuid)
        WHERE c.id = :change_id AND b.value IS NOT NULL ORDER BY d.id
        ON CONFLICT (user_id, document_id)
        DO UPDATE SET enabled = excluded.enabled, updated_at = now()
        """
    ),
)


def lock_change(session: Session, user: User, change_id: UUID) -> BulkChangeRow | None:
    """Return a change of the user, locked until the transaction ends."""
    return session.scalar(
        select(BulkChangeRow)
        .where(BulkChangeRow.id == change_id, BulkChangeRow.user_id == user.id)
        .with_for_update()
    )


def undo(session: Session, user: User, change: BulkChangeRow) -> int:
    """Undo a change of the documents that the user may still change, and delete it. Return their
    number."""
    action, binds = BulkAction(change.action), {"change_id": change.id}
    if action is BulkAction.SWITCH:
        count = sum(session.execute(one, binds).rowcount for one in _UNDO_SWITCHES)  # type: ignore[attr-defined]
    else:
        if action is BulkAction.MOVE:
            session.execute(_HOLD_FOLDERS, binds)
        values, is_unchanged = _UNDO[action]
        statement = text(
            f"""
            UPDATE documents d SET {values}, updated_at = now()
            FROM bulk_changes c, jsonb_each_text(c.before) b
            WHERE c.id = :change_id AND d.id = CAST(b.key AS uuid) AND d.purged_at IS NULL
              AND ({EDITABLE_WHERE} {_WAS_KEPT if action is BulkAction.MOVE else ""})
              AND {is_unchanged}
            """
        )
        rights = {"user_id": user.id, "user_is_admin": user.is_admin}
        count = session.execute(statement, binds | rights).rowcount  # type: ignore[attr-defined]
    session.delete(change)
    return count


def list_of_change(session: Session, change_id: UUID) -> list[tuple[UUID, str, Any]]:
    """Return id, title and former value of the documents of a change."""
    query = """
        SELECT d.id, d.title, b.value FROM bulk_changes c, jsonb_each_text(c.before) b
        JOIN documents d ON d.id = CAST(b.key AS uuid) WHERE c.id = :change_id
    """
    rows = session.execute(text(query), {"change_id": change_id})
    return [(row[0], row[1], row[2]) for row in rows]


def delete_expired(session: Session, *, life: timedelta) -> None:
    """Delete what is older than `life`."""
    session.execute(delete(BulkChangeRow).where(BulkChangeRow.created_at < func.now() - life))
