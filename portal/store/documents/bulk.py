"""Changes of many documents: one statement changes them and stores the old values.

Rows are locked in the order of their ids, so that two such changes do not deadlock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import (
    CTE,
    ColumnElement,
    Text,
    Uuid,
    and_,
    any_,
    cast,
    delete,
    false,
    func,
    insert,
    literal,
    null,
    or_,
    select,
    text,
    true,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.orm import Session

from portal.domain.documents import Visibility
from portal.domain.documents.bulk import BulkAction, BulkCounts, BulkTarget
from portal.domain.people import User
from portal.store.documents.document_lists import matching
from portal.store.documents.selection import editable_by
from portal.store.models import BulkChangeRow, DocumentRow, UserDocumentDefaultRow
from portal.text.titles import MAX_TAGS

MAX_SKIPPED_LISTED = 100
_DOCUMENTS: Any = DocumentRow.__table__
_SWITCHES: Any = UserDocumentDefaultRow.__table__
_COLUMNS = {
    BulkAction.MOVE: "folder_id",
    BulkAction.DOMAIN: "domain",
    BulkAction.VISIBILITY: "visibility",
}
# The condition that the owner of a document has the same file in another live document, or in one
# that meets a further condition.
TWIN_LIVES = """({0}.status <> 'failed' AND EXISTS (
    SELECT FROM documents o
    WHERE o.owner_id = {0}.owner_id AND o.sha256 = {0}.sha256 AND o.id <> {0}.id
      AND o.status <> 'failed' AND o.purged_at IS NULL AND (o.deleted_at IS NULL OR {1})
))"""
_TO_READ = text(
    """
    SELECT d.id, d.title, original.file_id,
        coalesce(newest.status IN ('queued', 'processing'), false) AS is_being_read,
        d.current_job_id IS NOT NULL AND d.status <> 'failed' AND d.sha256 = original.sha256
            AS is_held
    FROM documents d
    LEFT JOIN LATERAL (
        SELECT j.status FROM jobs j WHERE j.document_id = d.id
        ORDER BY j.created_at DESC, j.id LIMIT 1
    ) newest ON true
    LEFT JOIN LATERAL (
        SELECT j.file_id, f.sha256 FROM jobs j JOIN stored_files f ON f.id = j.file_id
        WHERE j.document_id = d.id
        ORDER BY j.created_at DESC, j.id LIMIT 1
    ) original ON true
    WHERE d.id = ANY(:ids)
    ORDER BY d.created_at, d.id
    """
)


class Changed(NamedTuple):
    change_id: UUID | None
    changed_count: int
    found_count: int


class SkippedRow(NamedTuple):
    id: UUID
    title: str
    can_edit: bool


def _target(
    user: User, target: BulkTarget, action: BulkAction | None = None, *, deleted: bool = False
) -> CTE:
    statement = matching(user, target.filters, ids=target.ids, deleted=deleted)
    is_own = true() if user.is_admin else DocumentRow.owner_id == user.id
    # Keepers of a folder may not hide others' documents.
    is_editable = is_own if action is BulkAction.VISIBILITY else editable_by(user)
    can_edit = func.coalesce(is_editable, false()).label("can_edit")
    return statement.with_only_columns(DocumentRow.id, DocumentRow.title, can_edit).cte("target")


def change(
    session: Session, user: User, target: BulkTarget, action: BulkAction, value: Any
) -> Changed:
    """Change the documents of the target that differ and that the user may change."""
    d = _DOCUMENTS.c
    chosen = _target(user, target, action, deleted=action is BulkAction.RESTORE)
    before, new, differs = _change_of(action, value)
    locked = (
        select(d.id, cast(func.to_jsonb(before), JSONB).label("before"))
        .where(d.id.in_(select(chosen.c.id).where(chosen.c.can_edit)), differs)
        .order_by(d.id)
        .with_for_update(key_share=True)
        .cte("locked")
    )
    changed = (
        update(_DOCUMENTS)
        .where(d.id == locked.c.id)
        .values(**new, updated_at=func.now())
        .returning(d.id, locked.c.before)
        .cte("changed")
    )
    return _execute(session, _note(user, action, value, changed), chosen, changed)


def _change_of(
    action: BulkAction, value: Any
) -> tuple[ColumnElement[Any], dict[str, Any], ColumnElement[bool]]:
    """Return the column whose old value an undo needs, the new values, and the condition that they
    change a document."""
    d, nothing = _DOCUMENTS.c, cast(null(), Text)
    match action:
        case BulkAction.MOVE | BulkAction.DOMAIN | BulkAction.VISIBILITY:
            column = d[_COLUMNS[action]]
            return column, {column.name: value}, column.is_distinct_from(value)
        case BulkAction.ADD_TAG:
            has_room = func.cardinality(d.tags) < MAX_TAGS
            tags = func.array_append(d.tags, value)
            return nothing, {"tags": tags}, and_(~_is_tagged(value), has_room)
        case BulkAction.REMOVE_TAG:
            tag = func.unnest(d.tags).column_valued("tag")
            is_meant = func.lower(tag) == func.lower(value)
            kept = func.array(select(tag).where(~is_meant).scalar_subquery())
            removed = select(tag).where(is_meant).limit(1).scalar_subquery()
            return removed, {"tags": kept}, _is_tagged(value)
        case BulkAction.DELETE:
            return nothing, {"deleted_at": func.now()}, d.deleted_at.is_(None)
        case BulkAction.RESTORE:
            # Of several twins in the target, the first is restored.
            too = "o.id < documents.id AND o.id IN (SELECT id FROM target)"
            is_alone = text(f"NOT {TWIN_LIVES.format('documents', too)}")
            return nothing, {"deleted_at": None}, and_(d.deleted_at.is_not(None), is_alone)
        case _:
            raise ValueError(action)


def set_switches(
    session: Session, user: User, target: BulkTarget, *, enabled: bool | None
) -> Changed:
    """Switch documents on or off for the user; None returns to the default."""
    s = _SWITCHES.c
    chosen = _target(user, target)
    # Counted here rather than from the written rows: joining both would compare each with each.
    changed = (
        select(chosen.c.id, cast(func.to_jsonb(s.enabled), JSONB).label("before"))
        .outerjoin(_SWITCHES, and_(s.document_id == chosen.c.id, s.user_id == user.id))
        .where(s.enabled.is_distinct_from(enabled))
        .order_by(chosen.c.id)
        .cte("changed")
    )
    written: Any
    if enabled is None:
        written = delete(_SWITCHES).where(
            s.user_id == user.id, s.document_id.in_(select(changed.c.id))
        )
    else:
        rows = select(literal(user.id), changed.c.id, literal(enabled)).order_by(changed.c.id)
        added = upsert(_SWITCHES).from_select(["user_id", "document_id", "enabled"], rows)
        written = added.on_conflict_do_update(
            index_elements=["user_id", "document_id"],
            set_={"enabled": added.excluded.enabled, "updated_at": func.now()},
        )
    noted = _note(user, BulkAction.SWITCH, enabled, changed)
    return _execute(session, noted, chosen, changed, written.cte("written"))


def _note(user: User, action: BulkAction, value: Any, changed: CTE) -> CTE:
    """Return the part of a statement that stores a change and the old values, if any changed."""
    after = {"value": None if value is None else value if value in {True, False} else str(value)}
    rows = select(
        literal(user.id),
        literal(action.value),
        literal(after, JSONB),
        func.jsonb_object_agg(cast(changed.c.id, Text), changed.c.before),
    ).having(func.count() > 0)
    return (
        insert(BulkChangeRow.__table__)  # type: ignore[arg-type]
        .from_select(["user_id", "action", "value", "before"], rows)
        .returning(BulkChangeRow.__table__.c.id)
        .cte("noted")
    )


def _execute(session: Session, noted: CTE, chosen: CTE, changed: CTE, *more: CTE) -> Changed:
    row = session.execute(
        select(
            select(noted.c.id).scalar_subquery(),
            select(func.count()).select_from(changed).scalar_subquery(),
            select(func.count()).select_from(chosen).scalar_subquery(),
        ).add_cte(*more)
    ).one()
    return Changed(row[0], row[1], row[2])


def _is_tagged(tag: str) -> ColumnElement[bool]:
    """Return the condition that a document has a tag, which may differ in case."""
    tags = cast(func.lower(cast(_DOCUMENTS.c.tags, Text)), ARRAY(Text))
    return func.lower(tag) == any_(tags)


def list_skipped(
    session: Session,
    user: User,
    target: BulkTarget,
    action: BulkAction | None = None,
    value: Any = None,
) -> tuple[tuple[SkippedRow, ...], int]:
    """Return the first documents of a target that could not be changed, and their number: others'
    documents, those still in the trash, and those with too many tags."""
    is_restoring = action is BulkAction.RESTORE
    chosen = _target(user, target, action, deleted=is_restoring)
    is_editable = chosen.c.can_edit
    statement = select(chosen.c.id, chosen.c.title, is_editable)
    if action is BulkAction.ADD_TAG:
        documents = statement.join(_DOCUMENTS, _DOCUMENTS.c.id == chosen.c.id)
        statement = documents.where(or_(~is_editable, ~_is_tagged(value)))
    elif not is_restoring:
        statement = statement.where(~is_editable)
    first = statement.order_by(chosen.c.title, chosen.c.id).limit(MAX_SKIPPED_LISTED)
    rows = session.execute(first).all()
    listed = tuple(SkippedRow(*row) for row in rows)
    if len(listed) < MAX_SKIPPED_LISTED:
        return listed, len(listed)
    count = session.scalar(select(func.count()).select_from(statement.subquery())) or 0
    return listed, max(count, len(listed))


def lock_to_read(session: Session, user: User, target: BulkTarget) -> Sequence[Any]:
    """Lock the documents of a target that the user may change. Return rows of `id`, `title`,
    `file_id`, `is_being_read` and `is_held`: whether the searched text is of this file, so that no
    other document of the owner can have it."""
    chosen = _target(user, target)
    ids = session.scalars(
        select(DocumentRow.id)
        .where(DocumentRow.id.in_(select(chosen.c.id).where(chosen.c.can_edit)))
        .order_by(DocumentRow.id)
        .with_for_update(key_share=True)
    )
    return session.execute(_TO_READ, {"ids": list(ids)}).all()


def count(
    session: Session, user: User, target: BulkTarget, action: BulkAction | None = None
) -> BulkCounts:
    chosen = _target(user, target, action)
    editable_count = func.count().filter(chosen.c.can_edit)
    row = session.execute(select(func.count(), editable_count).select_from(chosen)).one()
    return BulkCounts(row[0], row[1])


def gates_of(session: Session, ids: Iterable[UUID]) -> dict[UUID, UUID | None]:
    """Return the gate of each shared document among these."""
    # One parameter for all: a statement takes no more than 65,535.
    query = select(DocumentRow.id, DocumentRow.gate_id).where(
        DocumentRow.id == any_(cast(list(ids), ARRAY(Uuid))),
        DocumentRow.visibility == Visibility.SHARED.value,
    )
    return {row[0]: row[1] for row in session.execute(query)}


def count_gates(
    session: Session, user: User, target: BulkTarget, *, with_others: bool = False
) -> Counter[UUID | None]:
    """Count by gate the shared documents that the user may move; all visible ones `with_others`."""
    rows = session.execute(
        matching(user, target.filters, ids=target.ids)
        .where(DocumentRow.visibility == Visibility.SHARED.value)
        .where(true() if with_others else editable_by(user))
        .with_only_columns(DocumentRow.gate_id, func.count(DocumentRow.id))
        .group_by(DocumentRow.gate_id)
        .order_by(None)
    )
    return Counter({row[0]: row[1] for row in rows})
