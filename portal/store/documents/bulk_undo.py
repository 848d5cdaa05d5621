"""Undo bulk changes of documents that have not been changed again since."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import delete, func, select, text
from sqlalchemy.orm import Session

from portal.domain.documents.bulk import BulkAction
from portal.domain.people import User
from portal.store.documents.bulk import TWIN_LIVES
from portal.store.documents.selection import EDITABLE_WHERE, KEEPS, OPEN_FOLDER
from portal.store.models import BulkChangeRow
from portal.text.titles import MAX_TAGS

# The assignment, and the condition that there was no later change.
_UNDO = {
    BulkAction.MOVE: (
        f"""folder_id = (
            SELECT f.id FROM folders f WHERE f.id = CAST(b.value AS uuid)
              AND {OPEN_FOLDER.format("f")}
        )""",
        # If the folder is gone the document moves out of folders, but never out of a gate.
        f"""d.folder_id IS NOT DISTINCT FROM CAST(c.value ->> 'value' AS uuid)
            AND (d.folder_id IS NOT NULL AND d.gate_id IS NULL OR b.value IS NULL OR EXISTS (
                SELECT FROM folders f
                WHERE f.id = CAST(b.value AS uuid) AND {OPEN_FOLDER.format("f")}
            ))""",
    ),
    BulkAction.ADD_TAG: (
        "tags = array_remove(d.tags, c.value ->> 'value')",
        "c.value ->> 'value' = ANY(d.tags)",
    ),
    BulkAction.REMOVE_TAG: (
        # As it was written on the document, which may differ in case.
        "tags = array_append(d.tags, coalesce(b.value, c.value ->> 'value'))",
        f"""cardinality(d.tags) < {MAX_TAGS} AND lower(c.value ->> 'value')
            <> ALL (CAST(lower(CAST(d.tags AS text)) AS text[]))""",
    ),
    BulkAction.DOMAIN: ("domain = b.value", "d.domain IS NOT DISTINCT FROM c.value ->> 'value'"),
    BulkAction.VISIBILITY: ("visibility = b.value", "d.visibility = c.value ->> 'value'"),
    BulkAction.DELETE: (
        "deleted_at = NULL",
        f"d.deleted_at IS NOT NULL AND NOT {TWIN_LIVES.format('d', 'false')}",
    ),
    BulkAction.RESTORE: ("deleted_at = now()", "d.deleted_at IS NULL"),
}
_MAY_UNDO = {
    # Keepers may undo their moves out of a folder.
    BulkAction.MOVE: f"""({EDITABLE_WHERE} OR d.visibility = 'shared' AND EXISTS (
        SELECT FROM folders f WHERE f.id = CAST(b.value AS uuid) AND {KEEPS.format("f")}
    ))""",
    # Keepers of a folder may not hide others' documents.
    BulkAction.VISIBILITY: "(d.owner_id = :user_id OR :user_is_admin)",
}
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
          AND s.enabled = CAST(c.value ->> 'value' AS boolean)
        RETURNING s.document_id
        """
    ),
    text(
        """
        INSERT INTO user_document_defaults (user_id, document_id, enabled)
        SELECT c.user_id, d.id, CAST(b.value AS boolean)
        FROM bulk_changes c CROSS JOIN jsonb_each_text(c.before) b
        JOIN documents d ON d.id = CAST(b.key AS uuid)
        LEFT JOIN user_document_defaults s ON s.user_id = c.user_id AND s.document_id = d.id
        WHERE c.id = :change_id AND b.value IS NOT NULL
          AND s.enabled IS NOT DISTINCT FROM CAST(c.value ->> 'value' AS boolean) ORDER BY d.id
        ON CONFLICT (user_id, document_id)
        DO UPDATE SET enabled = excluded.enabled, updated_at = now()
        RETURNING document_id
        """
    ),
)


def lock_change(session: Session, user: User, change_id: UUID) -> BulkChangeRow | None:
    """Return a change of the user, locked until the transaction ends."""
    return session.scalar(
        select(BulkChangeRow).filter_by(id=change_id, user_id=user.id).with_for_update()
    )


def undo(session: Session, user: User, change: BulkChangeRow) -> set[UUID]:
    """Undo a change on the documents that the user may still change, and delete its record. Return
    the ids of the documents."""
    action, binds = BulkAction(change.action), {"change_id": change.id}
    if action is BulkAction.SWITCH:
        undone = {id_ for one in _UNDO_SWITCHES for id_ in session.scalars(one, binds)}
    else:
        if action is BulkAction.MOVE:
            session.execute(_HOLD_FOLDERS, binds)
        values, is_unchanged = _UNDO[action]
        statement = text(
            f"""
            UPDATE documents d SET {values}, updated_at = now()
            FROM bulk_changes c, jsonb_each_text(c.before) b
            WHERE c.id = :change_id AND d.id = CAST(b.key AS uuid) AND d.purged_at IS NULL
              AND {_MAY_UNDO.get(action, EDITABLE_WHERE)}
              AND {is_unchanged}
            RETURNING d.id
            """
        )
        rights = {"user_id": user.id, "user_is_admin": user.is_admin}
        undone = set(session.scalars(statement, binds | rights))
    session.delete(change)
    return undone


def list_of_change(session: Session, change_id: UUID) -> list[tuple[UUID, str, Any]]:
    """Return id, title and former value of the documents of a change."""
    query = """
        SELECT d.id, d.title, b.value FROM bulk_changes c, jsonb_each_text(c.before) b
        JOIN documents d ON d.id = CAST(b.key AS uuid) WHERE c.id = :change_id
    """
    rows = session.execute(text(query), {"change_id": change_id})
    return [(row[0], row[1], row[2]) for row in rows]


def delete_expired(session: Session, *, life: timedelta) -> None:
    """Delete changes that are older than `life`."""
    session.execute(delete(BulkChangeRow).where(BulkChangeRow.created_at < func.now() - life))
