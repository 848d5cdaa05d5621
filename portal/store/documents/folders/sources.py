"""Sources of folders, read and written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import delete, func, select, true, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from portal.domain.documents import Failure
from portal.domain.documents.sources import (
    MAX_RUNS_KEPT,
    Change,
    FolderSource,
    ListedChange,
    PastRun,
    SourceItem,
    SyncRun,
)
from portal.domain.people import User
from portal.store.documents import folders as folder_store
from portal.store.models import (
    DocumentRow,
    FolderRow,
    FolderSourceRow,
    SourceHostRow,
    SourceItemRow,
    SourceRunRow,
    UserRow,
)

MAX_WAIT_S = 120


class KnownItem(NamedTuple):
    """A file as the last run found it; without its document if that was purged."""

    stamp: str
    document_id: UUID | None


def find_source(session: Session, folder_id: UUID, *, is_due: bool = False) -> FolderSource | None:
    """Return the source of a folder, or with `is_due` only if it has to be read now."""
    condition = FolderSourceRow.due_at <= func.now() if is_due else true()
    found = session.execute(
        select(FolderSourceRow, UserRow.name)
        .join(UserRow, UserRow.id == FolderSourceRow.owner_id)
        .where(FolderSourceRow.folder_id == folder_id, condition)
    ).one_or_none()
    if found is None:
        return None
    row, owner_name = found
    return FolderSource(
        folder_id=row.folder_id,
        owner_id=row.owner_id,
        owner_name=owner_name,
        kind=row.kind,
        address=row.address,
        every_minutes=row.every_minutes,
        due_at=row.due_at,
        last_run_at=row.last_run_at,
        last_run=_run(row.last_run) if row.last_run else None,
    )


def list_due(session: Session, kinds: Sequence[str]) -> Sequence[UUID]:
    """Return the folders whose sources of these kinds have to be read now, longest due first."""
    due = select(FolderSourceRow.folder_id).where(
        FolderSourceRow.due_at <= func.now(), FolderSourceRow.kind.in_(kinds)
    )
    return session.scalars(due.order_by(FolderSourceRow.due_at, FolderSourceRow.folder_id)).all()


def take_turn(session: Session, host: str, delay_s: float) -> float:
    """Reserve the next request to a host, `delay_s` after the previous one; return the seconds to
    wait for it."""
    now = func.clock_timestamp()
    delay = func.make_interval(0, 0, 0, 0, 0, 0, delay_s)
    # Caps the wait, which would be too long after the clock was set back.
    latest = now + timedelta(seconds=MAX_WAIT_S)
    free_at = func.least(func.greatest(SourceHostRow.free_at, now), latest)
    row = insert(SourceHostRow).values(host=host, free_at=now + delay)
    taken = row.on_conflict_do_update(
        index_elements=["host"], set_={"free_at": free_at + delay}
    ).returning(func.extract("epoch", SourceHostRow.free_at - delay - now))
    return max(0.0, float(session.execute(taken).scalar_one()))


def set_source(
    session: Session,
    folder_id: UUID,
    *,
    owner_id: UUID,
    kind: str,
    address: str,
    every_minutes: int,
    is_list: bool = False,
    may_act_for_others: bool = False,
) -> None:
    """Give a folder a source that is due at once. Items of an earlier source are forgotten, unless
    it is the owner's same list with other entries: what is no longer listed then goes to its
    owner's trash. With `may_act_for_others` another user's list stays theirs."""
    row = session.get(FolderSourceRow, folder_id, with_for_update=True)
    is_own = row is not None and (row.owner_id == owner_id or may_act_for_others)
    if row is not None and row.kind == kind and is_list and is_own:
        row.address = address
    if row is not None and (row.kind, row.address) != (kind, address):
        remove_source(session, folder_id)
        session.expunge(row)
        row = None
    if row is None:
        row = FolderSourceRow(folder_id=folder_id, owner_id=owner_id, kind=kind, address=address)
        session.add(row)
    row.every_minutes = every_minutes
    row.due_at = datetime.now(UTC)
    session.flush()


def set_due(session: Session, folder_id: UUID) -> bool:
    """Make a source due now; return whether there is one."""
    changed = session.execute(
        update(FolderSourceRow)
        .where(FolderSourceRow.folder_id == folder_id)
        .values(due_at=func.now())
        .returning(FolderSourceRow.folder_id)
    )
    return changed.one_or_none() is not None


def remove_source(session: Session, folder_id: UUID) -> bool:
    """Remove the source of a folder; return whether it had one."""
    removed = session.execute(
        delete(FolderSourceRow)
        .where(FolderSourceRow.folder_id == folder_id)
        .returning(FolderSourceRow.folder_id)
    )
    return removed.one_or_none() is not None


def hand_over(session: Session, owner: User, new_owner_id: UUID) -> None:
    """Transfer a user's sources to a new owner, where the user may still add to the folder: a
    source that ended with the user's rights must not resume with the new owner's."""
    open_to = select(FolderRow.id).where(
        folder_store.folder_visible_to(owner), folder_store.may_add(owner)
    )
    session.execute(
        update(FolderSourceRow)
        .where(FolderSourceRow.owner_id == owner.id, FolderSourceRow.folder_id.in_(open_to))
        .values(owner_id=new_owner_id, due_at=func.now())
    )


def finish(session: Session, folder_id: UUID, run: SyncRun) -> None:
    """Store the outcome of a run, and set when the next one is due."""
    forgotten = func.now() - timedelta(days=1)
    session.execute(delete(SourceHostRow).where(SourceHostRow.free_at < forgotten))
    every = func.make_interval(0, 0, 0, 0, 0, FolderSourceRow.every_minutes)
    outcome = _as_json(run)
    ended = session.scalar(
        update(FolderSourceRow)
        .where(FolderSourceRow.folder_id == folder_id)
        .values(last_run_at=func.now(), last_run=outcome, due_at=func.now() + every)
        .returning(FolderSourceRow.last_run_at)
    )
    if ended is None or not run.has_changed:  # The source was removed, or nothing changed.
        return
    session.add(SourceRunRow(folder_id=folder_id, ran_at=ended, outcome=outcome))
    session.flush()
    runs = select(SourceRunRow.ran_at).filter_by(folder_id=folder_id)
    old = runs.order_by(SourceRunRow.ran_at.desc()).offset(MAX_RUNS_KEPT)
    session.execute(
        delete(SourceRunRow).where(
            SourceRunRow.folder_id == folder_id, SourceRunRow.ran_at.in_(old)
        )
    )


def list_runs(session: Session, folder_id: UUID) -> list[PastRun]:
    """Return the last runs that changed something, newest first, without the files they refused: a
    reason may name a document that has since been hidden or purged."""
    rows = session.execute(
        select(SourceRunRow.ran_at, SourceRunRow.outcome)
        .filter_by(folder_id=folder_id)
        .order_by(SourceRunRow.ran_at.desc())
    )
    return [PastRun(ran_at, _changes(_run(outcome))) for ran_at, outcome in rows]


def _changes(run: SyncRun) -> SyncRun:
    return replace(run, listed=tuple(one for one in run.listed if one.change is not Change.REFUSED))


def list_items(session: Session, folder_id: UUID) -> dict[str, KnownItem]:
    rows = session.execute(
        select(SourceItemRow.path, SourceItemRow.stamp, SourceItemRow.document_id)
        .where(SourceItemRow.folder_id == folder_id)
        .order_by(SourceItemRow.path)
    )
    return {path: KnownItem(stamp, document_id) for path, stamp, document_id in rows}


def save_item(
    session: Session, folder_id: UUID, item: SourceItem, document_id: UUID | None
) -> None:
    """Remember a file that is in the portal, or whose document was purged, unless the folder's
    source was removed meanwhile."""
    tied = select(FolderSourceRow.folder_id).where(FolderSourceRow.folder_id == folder_id)
    if session.scalar(tied.with_for_update(read=True)) is None:
        return
    values = {"stamp": item.stamp, "document_id": document_id}
    row = insert(SourceItemRow).values(folder_id=folder_id, path=item.path, **values)
    session.execute(row.on_conflict_do_update(index_elements=["folder_id", "path"], set_=values))


def delete_item(session: Session, folder_id: UUID, path: str) -> None:
    session.execute(delete(SourceItemRow).filter_by(folder_id=folder_id, path=path))


def find_claim(session: Session, document_id: UUID) -> tuple[UUID, str] | None:
    """Return the folder and the path of the file that a document comes from."""
    claim = select(SourceItemRow.folder_id, SourceItemRow.path).filter_by(document_id=document_id)
    found = session.execute(claim.limit(1)).one_or_none()
    return (found[0], found[1]) if found else None


def lies_below(session: Session, document_id: UUID, folder_id: UUID) -> bool:
    """Return whether a document lies in a folder or below it."""
    place = session.scalar(select(DocumentRow.folder_id).where(DocumentRow.id == document_id))
    return place is not None and folder_store.is_below(session, place, folder_id)


def _as_json(run: SyncRun) -> dict[str, Any]:
    return {
        **{change.value: getattr(run, change.value) for change in Change},
        "listed": [
            [one.change.value, one.path, one.failure.as_json() if one.failure else None]
            for one in run.listed
        ],
        "failure": run.failure.as_json() if run.failure else None,
    }


def _run(stored: dict[str, Any]) -> SyncRun:
    return SyncRun(
        **{change.value: stored[change.value] for change in Change},
        listed=tuple(
            ListedChange(Change(change), path, Failure.stored(failure))
            for change, path, failure in stored["listed"]
        ),
        failure=Failure.stored(stored["failure"]),
    )
