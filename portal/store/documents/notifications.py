"""Notifications: written in the transaction that ends a job, delivered once, kept for a while.

Those about documents are shown only while the recipient may see the document and it is not in the
trash. Those about new devices are not shown on the device in question, which may be a thief's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Select,
    and_,
    case,
    delete,
    func,
    literal,
    or_,
    select,
    true,
    update,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session, aliased

from portal.domain.documents import Failure
from portal.domain.documents.jobs import UNFINISHED
from portal.domain.documents.notifications import (
    MANY_IN_WORK,
    MAX_UNREAD_COUNTED,
    OF_ACCOUNT,
    Beside,
    Notification,
    NotificationKind,
    NotificationPage,
    NotificationState,
)
from portal.domain.people import User
from portal.errors import Message
from portal.store.cursors import latest_first
from portal.store.documents.selection import PORTAL_COLLECTION, visible_to
from portal.store.models import (
    CollectionRow,
    DocumentRevisionRow,
    DocumentRow,
    JobRow,
    NotificationRow,
    StoredFileRow,
    UserRow,
)

# Users take turns, so any user with queued jobs has one among the next of all (store.queue).
_MAX_JOBS_CHECKED = 500
_COLUMNS = (
    *(NotificationRow.id, NotificationRow.kind, NotificationRow.document_id),
    NotificationRow.job_id,
    select(DocumentRow.title)
    .where(DocumentRow.id == NotificationRow.document_id)
    .scalar_subquery()
    .label("title"),
    NotificationRow.payload,
    *(NotificationRow.created_at, NotificationRow.read_at),
)


def add_ending(session: Session, job_id: UUID, kind: NotificationKind) -> None:
    """Notify the owner of a document, and the user who uploaded the file, how a job ended.

    Runs in the transaction that ends the job, once for each end. Nothing is sent for documents in
    the trash or owned by a program.
    """
    # The job of the searchable text; for a ready document this is the job itself.
    current = aliased(JobRow)
    beside = case(
        (current.id.is_(None), None),
        (current.file_id == JobRow.file_id, Beside.REREAD.value),
        else_=Beside.VERSION.value,
    )
    payload = func.jsonb_build_object(
        "error",
        JobRow.error if kind is NotificationKind.FAILED else None,
        "beside",
        beside,
        "warnings",
        func.coalesce(DocumentRevisionRow.warnings, func.jsonb_build_array()),
    )
    ending = (
        select(UserRow.id, literal(kind.value), DocumentRow.id, JobRow.id, JobRow.attempts, payload)
        .select_from(JobRow)
        .join(DocumentRow, DocumentRow.id == JobRow.document_id)
        .join(CollectionRow, CollectionRow.id == DocumentRow.collection_id)
        .outerjoin(StoredFileRow, StoredFileRow.id == JobRow.file_id)
        .join(UserRow, UserRow.id.in_([DocumentRow.owner_id, StoredFileRow.uploaded_by]))
        .outerjoin(DocumentRevisionRow, DocumentRevisionRow.id == JobRow.revision_id)
        .outerjoin(current, and_(current.id == DocumentRow.current_job_id, current.id != JobRow.id))
        .where(
            JobRow.id == job_id,
            DocumentRow.deleted_at.is_(None),
            CollectionRow.name == PORTAL_COLLECTION,
        )
    )
    columns = ["user_id", "kind", "document_id", "job_id", "attempt", "payload"]
    session.execute(insert(NotificationRow).from_select(columns, ending).on_conflict_do_nothing())


def add_new_device(session: Session, user_id: UUID, device: Mapping[str, str | None]) -> None:
    """Notify a user of a sign-in with a device that they have not used before."""
    kind = NotificationKind.NEW_DEVICE.value
    session.add(NotificationRow(user_id=user_id, kind=kind, payload={"device": dict(device)}))


def add_recovery_code(session: Session, user_id: UUID, *, left: int) -> None:
    """Notify a user that a recovery code was used to sign in."""
    kind = NotificationKind.RECOVERY_CODE.value
    session.add(
        NotificationRow(user_id=user_id, kind=kind, payload={"details": {"left": str(left)}})
    )


def state(session: Session, user: User) -> NotificationState:
    """Return the state of a user's notifications, in one statement that reads a few rows."""
    unread = _of(user, literal(1)).where(NotificationRow.read_at.is_(None))
    untold = _of(user, NotificationRow.created_at).where(NotificationRow.delivered_at.is_(None))
    # Jobs of deleted documents stay in the queue with their turn, before all later ones.
    nearest = (
        select(DocumentRow.owner_id)
        .join(JobRow, JobRow.document_id == DocumentRow.id)
        .where(
            JobRow.status.in_([status.value for status in UNFINISHED]),
            DocumentRow.deleted_at.is_(None),
        )
        .order_by(JobRow.turn)
        .limit(_MAX_JOBS_CHECKED)
        .subquery()
    )
    in_work = select(literal(1)).select_from(nearest).where(nearest.c.owner_id == user.id)
    oldest = untold.order_by(NotificationRow.created_at).limit(1).scalar_subquery()
    row = session.execute(
        select(
            _count(unread, MAX_UNREAD_COUNTED),
            _count(in_work, MANY_IN_WORK),
            func.extract("epoch", func.clock_timestamp() - oldest),
        )
    ).one()
    return NotificationState(
        unread=row[0], in_work=row[1], waiting_s=None if row[2] is None else float(row[2])
    )


def _count(statement: Select[Any], max_count: int) -> Any:
    return select(func.count()).select_from(statement.limit(max_count).subquery()).scalar_subquery()


def list_notifications(
    session: Session, user: User, *, unread_only: bool, cursor: str | None, limit: int
) -> NotificationPage:
    """Return a user's notifications, newest first. Raises MalformedRequest on a bad cursor."""
    statement = _of(user, *_COLUMNS)
    if unread_only:
        statement = statement.where(NotificationRow.read_at.is_(None))
    items, next_cursor = latest_first(
        session,
        statement,
        NotificationRow.created_at,
        NotificationRow.id,
        cursor=cursor,
        limit=limit,
        to_item=_to_notification,
        place=lambda one: (one.created_at, one.id),
    )
    return NotificationPage(items=items, next_cursor=next_cursor)


def find(session: Session, user: User, notification_id: UUID) -> Notification | None:
    statement = _of(user, *_COLUMNS)
    row = session.execute(statement.where(NotificationRow.id == notification_id)).one_or_none()
    return _to_notification(row) if row else None


def take(session: Session, user: User) -> tuple[Notification, ...]:
    """Return a user's undelivered notifications, oldest first, and mark them delivered.

    Of two concurrent calls, the second waits for the first and gets nothing.
    """
    taken = session.execute(
        update(NotificationRow)
        .where(_is_shown(user), NotificationRow.delivered_at.is_(None))
        .values(delivered_at=func.now())
        .returning(*_COLUMNS)
        .execution_options(synchronize_session=False)
    )
    found = (_to_notification(row) for row in taken)
    return tuple(sorted(found, key=lambda one: (one.created_at, one.id)))


def mark_read(
    session: Session,
    user: User,
    ids: Sequence[UUID] | None = None,
    *,
    until: datetime | None = None,
) -> None:
    """Mark these notifications of a user read, or all, or all `until` a moment.

    Other users' notifications are left as they are.
    """
    statement = update(NotificationRow).where(
        NotificationRow.user_id == user.id,
        NotificationRow.read_at.is_(None),
        _is_for_device(user),
    )
    if ids is not None:
        statement = statement.where(NotificationRow.id.in_(ids))
    if until is not None:
        statement = statement.where(NotificationRow.created_at <= until)
    # A notification that was read needs no delivery.
    told = func.coalesce(NotificationRow.delivered_at, func.now())
    session.execute(statement.values(read_at=func.now(), delivered_at=told))


def delete_old(session: Session, *, before: datetime, max_per_user: int) -> None:
    """Delete old notifications.

    Removes those from before a moment, and all but the latest `max_per_user` of each user.
    """
    first_beyond = (
        select(NotificationRow.created_at)
        .where(NotificationRow.user_id == UserRow.id)
        .order_by(NotificationRow.created_at.desc())
        .offset(max_per_user)
        .limit(1)
        .correlate(UserRow)
        .scalar_subquery()
    )
    old = select(UserRow.id, func.greatest(before, first_beyond).label("until")).subquery()
    session.execute(
        delete(NotificationRow).where(
            NotificationRow.user_id == old.c.id, NotificationRow.created_at <= old.c.until
        ),
        execution_options={"synchronize_session": False},
    )


def _of(user: User, *columns: Any) -> Select[Any]:
    return select(*columns).where(_is_shown(user))


def _is_shown(user: User) -> ColumnElement[bool]:
    shown_document = (
        select(literal(1))
        .where(
            DocumentRow.id == NotificationRow.document_id,
            DocumentRow.deleted_at.is_(None),
            visible_to(user),
        )
        .correlate(NotificationRow)
        .exists()
    )
    is_of_account = NotificationRow.kind.in_([kind.value for kind in OF_ACCOUNT])
    return and_(
        NotificationRow.user_id == user.id,
        or_(is_of_account, shown_document),
        _is_for_device(user),
    )


def _is_for_device(user: User) -> ColumnElement[bool]:
    """Hide new-device notices that are from before this device was known."""
    if user.device_known_since is None:
        return true()
    return or_(
        NotificationRow.kind != NotificationKind.NEW_DEVICE.value,
        NotificationRow.created_at > user.device_known_since,
    )


def _to_notification(row: Any) -> Notification:
    return Notification(
        id=row.id,
        kind=NotificationKind(row.kind),
        document_id=row.document_id,
        job_id=row.job_id,
        title=row.title,
        failure=Failure.stored(row.payload.get("error")),
        beside=Beside(beside) if (beside := row.payload.get("beside")) else None,
        warnings=tuple(map(Message.stored, row.payload.get("warnings", ()))),
        created_at=row.created_at,
        read_at=row.read_at,
        details=row.payload.get("device") or row.payload.get("details", {}),
    )
