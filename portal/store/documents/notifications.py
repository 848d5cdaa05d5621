"""Notifications, each delivered once.

Those about documents are hidden while the document is in the trash or the recipient may not see it.
Those about a new device are hidden on that device, which may be a thief's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Select,
    Uuid,
    and_,
    case,
    cast,
    delete,
    func,
    literal,
    or_,
    select,
    text,
    true,
    update,
)
from sqlalchemy.orm import Session

from portal.domain import locks
from portal.domain.documents import Failure
from portal.domain.documents.jobs import UNFINISHED
from portal.domain.documents.notifications import (
    MANY_IN_WORK,
    MAX_NAMED,
    MAX_UNREAD_COUNTED,
    OF_ACCOUNT,
    Batch,
    FailedUpdate,
    Notification,
    NotificationKind,
    NotificationState,
)
from portal.domain.paging import ListPage
from portal.domain.people import User
from portal.errors import Message
from portal.store.cursors import latest_first
from portal.store.documents.selection import MAX_COMPOSED, PORTAL_COLLECTION, visible_to
from portal.store.models import (
    ConversationReaderRow,
    ConversationRow,
    DocumentRow,
    JobRow,
    NotificationRow,
    UserRow,
)

# Users take turns, so any user with queued jobs has one among the first ones (`ingestion.queue`).
_MAX_JOBS_CHECKED = 500
_CONVERSATION = cast(NotificationRow.payload["details", "conversation"].as_string(), Uuid)
_COLUMNS = (
    *(NotificationRow.id, NotificationRow.kind, NotificationRow.document_id),
    NotificationRow.job_id,
    func.coalesce(
        select(DocumentRow.title)
        .where(DocumentRow.id == NotificationRow.document_id)
        .scalar_subquery(),
        select(ConversationRow.title).where(ConversationRow.id == _CONVERSATION).scalar_subquery(),
    ).label("title"),
    NotificationRow.payload,
    *(NotificationRow.created_at, NotificationRow.read_at, NotificationRow.batch_id),
)
_LOCK = select(func.pg_advisory_xact_lock(locks.NOTIFICATIONS))
# As text: composing it for each job took longer than all else that ends the job.
_ADD_ENDING = text(
    f"""
    INSERT INTO notifications (user_id, kind, document_id, job_id, attempt, payload, batch_id)
    SELECT u.id, :kind, d.id, j.id, j.attempts,
        jsonb_build_object(
            'error', CASE WHEN :kind = '{NotificationKind.FAILED}' THEN j.error END,
            -- The searchable text is from another job, and stays.
            'beside', CASE WHEN current.file_id = j.file_id THEN '{FailedUpdate.REREAD}'
                           WHEN current.id IS NOT NULL THEN '{FailedUpdate.VERSION}' END,
            'warnings', coalesce(r.warnings, '[]')
        ),
        coalesce(unread.batch_id, gen_random_uuid())
    FROM jobs j
    JOIN documents d ON d.id = j.document_id
    JOIN collections c ON c.id = d.collection_id
    LEFT JOIN stored_files f ON f.id = j.file_id
    JOIN users u ON u.id IN (d.owner_id, f.uploaded_by)
    LEFT JOIN document_revisions r ON r.id = j.revision_id
    LEFT JOIN jobs current ON current.id = d.current_job_id AND current.id <> j.id
    -- The user's unread batch of jobs that were unfinished at the same time as this one, or ended
    -- at most a minute before it was queued: files of one upload may come one after the other.
    LEFT JOIN LATERAL (
        SELECT latest.batch_id FROM notifications latest
        WHERE latest.user_id = u.id
          AND latest.kind IN ('{NotificationKind.READY}', '{NotificationKind.FAILED}')
          AND latest.read_at IS NULL
          AND latest.created_at >= j.created_at - interval '1 minute'
          -- The end of another attempt at the same document has its own batch.
          AND NOT EXISTS (
              SELECT FROM notifications other
              WHERE other.batch_id = latest.batch_id AND other.document_id = d.id
          )
        ORDER BY latest.created_at DESC LIMIT 1
    ) unread ON true
    WHERE j.id = :job_id AND d.deleted_at IS NULL AND c.name = '{PORTAL_COLLECTION}'
    ON CONFLICT DO NOTHING
    """
)


def add_ending(session: Session, job_id: UUID, kind: NotificationKind) -> None:
    """Notify the owner of a document, and the user who uploaded the file, how a job ended.

    Runs in the transaction that ends the job, once for each end. Nothing is sent for documents in
    the trash or owned by a program. Jobs that were unfinished at the same time share a batch, until
    the user has read it.
    """
    # Two jobs that end at once would not see each other, and begin a batch each.
    session.execute(_LOCK)
    session.execute(_ADD_ENDING, {"job_id": job_id, "kind": kind.value})


def add_new_device(session: Session, user_id: UUID, device: Mapping[str, str | None]) -> None:
    """Notify a user of a sign-in with a device that they have not used before."""
    _add(session, user_id, NotificationKind.NEW_DEVICE, device=dict(device))


def add_recovery_code(session: Session, user_id: UUID, *, left: int) -> None:
    """Notify a user that a recovery code was used to sign in."""
    _add(session, user_id, NotificationKind.RECOVERY_CODE, details={"left": str(left)})


def add_shared(session: Session, user_id: UUID, conversation_id: UUID, *, owner: str) -> None:
    """Notify a user that another one shares a conversation with them, in place of an earlier notice
    of the same."""
    details = {"conversation": str(conversation_id), "owner": owner}
    session.execute(
        delete(NotificationRow).where(
            NotificationRow.user_id == user_id,
            NotificationRow.kind == NotificationKind.SHARED.value,
            NotificationRow.payload.contains({"details": details}),
        ),
        execution_options={"synchronize_session": False},
    )
    _add(session, user_id, NotificationKind.SHARED, details=details)


def _add(session: Session, user_id: UUID, kind: NotificationKind, **payload: Any) -> None:
    session.add(NotificationRow(user_id=user_id, kind=kind.value, payload=payload))


def state(session: Session, user: User) -> NotificationState:
    """Return the state of a user's notifications, in one statement that reads a few rows."""
    unread_count, row_count, in_work_count, waiting_s = session.execute(
        _state(user, user.device_known_since)
    ).one()
    return NotificationState(
        unread=int(unread_count),
        unread_rows=int(row_count),
        in_work=in_work_count,
        waiting_s=None if waiting_s is None else float(waiting_s),
    )


@lru_cache(maxsize=MAX_COMPOSED)
def _state(user: User, _device_known_since: datetime | None) -> Select[Any]:
    """Compose the statement. The cache needs the device's date because `User` does not compare
    it."""
    unread = (
        _of(user, NotificationRow.batch_id)
        .where(NotificationRow.read_at.is_(None))
        .limit(MAX_UNREAD_COUNTED)
        .subquery()
    )
    size = func.count()
    batches = (
        select(
            size.label("size"), case((size > MAX_NAMED, literal(1)), else_=size).label("row_count")
        )
        .select_from(unread)
        .group_by(unread.c.batch_id)
        .subquery()
    )
    undelivered = _of(user, NotificationRow.created_at).where(
        NotificationRow.delivered_at.is_(None)
    )
    oldest = undelivered.order_by(NotificationRow.created_at).limit(1).scalar_subquery()
    return select(
        func.coalesce(func.sum(batches.c.size), 0),
        func.coalesce(func.sum(batches.c.row_count), 0),
        _count(_jobs_in_work(user), MANY_IN_WORK),
        func.extract("epoch", func.clock_timestamp() - oldest),
    ).select_from(batches)


def _jobs_in_work(user: User) -> Select[Any]:
    """Select a row for each of the user's jobs among the next in the queue."""
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
    return select(literal(1)).select_from(nearest).where(nearest.c.owner_id == user.id)


def _count(statement: Select[Any], max_count: int) -> Any:
    return select(func.count()).select_from(statement.limit(max_count).subquery()).scalar_subquery()


def list_notifications(
    session: Session,
    user: User,
    *,
    unread_only: bool = False,
    cursor: str | None = None,
    limit: int = 50,
) -> ListPage[Notification]:
    """Return a user's notifications, newest first. Raises MalformedRequest on a bad cursor."""
    statement = _of(user, *_COLUMNS)
    if unread_only:
        statement = statement.where(NotificationRow.read_at.is_(None))
    return latest_first(
        session,
        statement,
        NotificationRow.created_at,
        NotificationRow.id,
        cursor=cursor,
        limit=limit,
        to_item=_to_notification,
        place=lambda one: (one.created_at, one.id),
    )


def list_batches(
    session: Session, user: User, *, cursor: str | None = None, limit: int = 50
) -> ListPage[Batch]:
    """Return a user's notifications, newest first, those of a large batch as one. Raises
    MalformedRequest on a bad cursor."""
    shown = _of(user, *_COLUMNS).subquery()
    batch_id = shown.c.batch_id

    def count(kind: NotificationKind) -> ColumnElement[int]:
        return func.count().filter(shown.c.kind == kind.value).over(partition_by=batch_id)

    numbered = select(
        shown,
        count(NotificationKind.READY).label("ready"),
        count(NotificationKind.FAILED).label("failed"),
        func.bool_or(shown.c.read_at.is_(None)).over(partition_by=batch_id).label("is_unread"),
        func.row_number()
        .over(partition_by=batch_id, order_by=(shown.c.created_at.desc(), shown.c.id.desc()))
        .label("place"),
    ).subquery()
    return latest_first(
        session,
        select(numbered).where(
            or_(numbered.c.place == 1, numbered.c.ready + numbered.c.failed <= MAX_NAMED)
        ),
        numbered.c.created_at,
        numbered.c.id,
        cursor=cursor,
        limit=limit,
        to_item=lambda row: Batch(_to_notification(row), row.ready, row.failed, row.is_unread),
        place=lambda one: (one.latest.created_at, one.latest.id),
    )


def list_batch(session: Session, user: User, batch_id: UUID) -> tuple[Notification, ...]:
    """Return a user's notifications of a batch, failures first, then by title."""
    statement = _of(user, *_COLUMNS).where(NotificationRow.batch_id == batch_id)
    found = map(_to_notification, session.execute(statement))
    return tuple(
        sorted(found, key=lambda one: (one.kind is not NotificationKind.FAILED, one.title or ""))
    )


def find(session: Session, user: User, notification_id: UUID) -> Notification | None:
    statement = _of(user, *_COLUMNS)
    row = session.execute(statement.where(NotificationRow.id == notification_id)).one_or_none()
    return _to_notification(row) if row else None


def take(session: Session, user: User) -> tuple[Notification, ...]:
    """Return a user's undelivered notifications, oldest first, and mark them delivered. Of two
    concurrent calls, the second waits for the first and gets nothing."""
    delivered = session.execute(
        update(NotificationRow)
        .where(_is_shown(user), NotificationRow.delivered_at.is_(None))
        .values(delivered_at=func.now())
        .returning(*_COLUMNS)
        .execution_options(synchronize_session=False)
    )
    found = (_to_notification(row) for row in delivered)
    return tuple(sorted(found, key=lambda one: (one.created_at, one.id)))


def mark_read(
    session: Session,
    user: User,
    ids: Sequence[UUID] | None = None,
    *,
    until: datetime | None = None,
) -> None:
    """Mark a user's notifications read: all, those with `ids`, or those `until` a moment, so that
    later ones stay unread."""
    statement = update(NotificationRow).where(
        NotificationRow.user_id == user.id, NotificationRow.read_at.is_(None), _is_for_device(user)
    )
    if ids is not None:
        statement = statement.where(NotificationRow.id.in_(ids))
    if until is not None:
        statement = statement.where(NotificationRow.created_at <= until)
    # A notification that was read needs no delivery.
    delivered_at = func.coalesce(NotificationRow.delivered_at, func.now())
    session.execute(statement.values(read_at=func.now(), delivered_at=delivered_at))


def delete_old(session: Session, *, before: datetime, max_per_user: int) -> None:
    """Delete notifications from before a moment, and all but the latest `max_per_user` of each
    user. Those about the account, which others could push out, are only deleted by age."""
    is_of_account = NotificationRow.kind.in_([kind.value for kind in OF_ACCOUNT])
    first_beyond = (
        select(NotificationRow.created_at)
        .where(NotificationRow.user_id == UserRow.id, ~is_of_account)
        .order_by(NotificationRow.created_at.desc())
        .offset(max_per_user)
        .limit(1)
        .correlate(UserRow)
        .scalar_subquery()
    )
    # Evaluated once per user, not once per notification.
    beyond = select(UserRow.id, first_beyond.label("until")).cte("beyond")
    beyond = beyond.prefix_with("MATERIALIZED")
    is_beyond = and_(
        NotificationRow.user_id == beyond.c.id,
        ~is_of_account,
        NotificationRow.created_at <= beyond.c.until,
    )
    for is_deleted in (NotificationRow.created_at <= before, is_beyond):
        session.execute(
            delete(NotificationRow).where(is_deleted),
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
        or_(is_of_account, shown_document, _is_still_shared()),
        _is_for_device(user),
    )


def _is_still_shared() -> ColumnElement[bool]:
    """Return the condition that a notification is about a conversation that is still shared."""
    reader, conversation = ConversationReaderRow, ConversationRow
    return and_(
        NotificationRow.kind == NotificationKind.SHARED.value,
        select(literal(1))
        .where(
            conversation.id == _CONVERSATION,
            conversation.deleted_at.is_(None),
            reader.conversation_id == conversation.id,
            reader.user_id == NotificationRow.user_id,
        )
        .correlate(NotificationRow)
        .exists(),
    )


def _is_for_device(user: User) -> ColumnElement[bool]:
    """Return the condition that a notification is not about a new device from before this one was
    known."""
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
        beside=FailedUpdate(beside) if (beside := row.payload.get("beside")) else None,
        warnings=tuple(map(Message.stored, row.payload.get("warnings", ()))),
        created_at=row.created_at,
        read_at=row.read_at,
        batch_id=row.batch_id,
        details=row.payload.get("device") or row.payload.get("details", {}),
    )
