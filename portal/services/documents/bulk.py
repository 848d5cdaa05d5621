"""Changes to many documents at once, and how to undo them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

from portal.domain.documents import Visibility
from portal.domain.documents.bulk import (
    BulkAction,
    BulkCounts,
    BulkReport,
    BulkResult,
    BulkTarget,
    SkippedDocument,
)
from portal.domain.people import User
from portal.errors import Conflict, Forbidden, InvalidInput, PortalError, UploadedAgain, existing
from portal.services import Services, audit
from portal.services.audit import AuditEvent, Subject, SubjectKind
from portal.services.documents import shared_words
from portal.services.documents.folders import find_open_for, gate_of, record_moves
from portal.services.documents.ingestion import rereading
from portal.services.transactions import in_transaction
from portal.store.documents import bulk as bulk_store
from portal.store.documents import bulk_reports as report_store
from portal.store.documents import bulk_undo as undo_store
from portal.store.documents import folders as folder_store
from portal.store.documents.ingestion import queue
from portal.store.session import Session
from portal.text.titles import check_domain, check_tags

# Each is checked in its own transaction, because another document may have its file by now.
MAX_FAILED_READ_AGAIN = 1000
_LIFE = timedelta(days=1)

add_report = in_transaction(report_store.add_report)


def apply(
    services: Services, user: User, target: BulkTarget, action: BulkAction, value: Any = None
) -> BulkResult:
    """Change all documents of a target that the user may change; the others are listed. `value` is
    the folder's id or None, a tag, a domain, a visibility, or the state of a switch. Raises
    NotFound for a folder that the user may not see, InvalidInput for the value."""
    if action is BulkAction.READ_AGAIN:
        return _read_again(services, user, target)
    with shared_words.sharing(services) as session:
        _check_place(session, user, target.filters.folder_id)
        value = _check_value(session, user, action, value)
        if action is BulkAction.SWITCH:
            done = bulk_store.set_switches(session, user, target, enabled=value)
            return BulkResult(
                done.change_id,
                done.changed_count,
                missing_count=_count_missing(target, done.found_count),
            )
        listed = partial(bulk_store.list_skipped, session, user, target, action, value)
        # Listed before the change: a keeper may have no right to documents that are moved out.
        is_listed_after = action in {BulkAction.RESTORE, BulkAction.ADD_TAG}
        skipped_before = None if is_listed_after else listed()
        if action is BulkAction.MOVE:
            gates = bulk_store.count_gates(session, user, target)
            record_moves(session, user, gates, to=gate_of(session, value))
        done = bulk_store.change(session, user, target, action, value)
        if action is BulkAction.VISIBILITY and done.change_id:
            changed = undo_store.list_of_change(session, done.change_id)
            _record_visibility(session, user, changed, after=value.value)
        rows, skipped_count = skipped_before or listed()
        own = UploadedAgain if action is BulkAction.RESTORE else InvalidInput
        skipped = tuple(
            SkippedDocument(row.id, row.title, (own if row.can_edit else Forbidden).code)
            for row in rows
        )
        missing = _count_missing(target, done.found_count)
        return BulkResult(done.change_id, done.changed_count, skipped, skipped_count, missing)


def count(services: Services, user: User, target: BulkTarget, action: BulkAction) -> BulkCounts:
    """Count the documents of a target before an action. Raises NotFound for its folder."""
    with services.database.begin() as session:
        _check_place(session, user, target.filters.folder_id)
        return bulk_store.count(session, user, target, action)


def undo(services: Services, user: User, change_id: UUID) -> int:
    """Undo a change of the user's own, except for documents that were changed again since; return
    the number of the others. Raises NotFound, also for a change that was undone, or deleted after a
    day."""
    with shared_words.sharing(services) as session:
        change = existing(undo_store.lock_change(session, user, change_id))
        action, value = change.action, change.value["value"]
        changed = undo_store.list_of_change(session, change_id)
        is_move = action == BulkAction.MOVE
        gates = bulk_store.gates_of(session, [one[0] for one in changed]) if is_move else {}
        undone = undo_store.undo(session, user, change)
        if action == BulkAction.VISIBILITY:
            of_undone = [one for one in changed if one[0] in undone]
            _record_visibility(session, user, of_undone, before=value)
        if is_move:
            for to, ids in _by_gate(bulk_store.gates_of(session, undone)).items():
                record_moves(session, user, Counter(gates[one] for one in ids), to=to)
        return len(undone)


def _by_gate(gates: Mapping[UUID, UUID | None]) -> dict[UUID | None, list[UUID]]:
    found: dict[UUID | None, list[UUID]] = {}
    for document_id, gate_id in gates.items():
        found.setdefault(gate_id, []).append(document_id)
    return found


def get_report(services: Services, user: User, report_id: UUID) -> BulkReport:
    """Return a result of the user's own. Raises NotFound."""
    with services.database.begin() as session:
        return existing(report_store.find_report(session, user, report_id))


def delete_expired(services: Services) -> None:
    """Delete changes that are too old to be undone, and reports of the same age."""
    with services.database.begin() as session:
        undo_store.delete_expired(session, life=_LIFE)
        report_store.delete_expired(session, life=_LIFE)


def _check_place(session: Session, user: User, folder_id: UUID | None) -> None:
    if folder_id is not None:
        existing(folder_store.find_folder(session, user, folder_id))


def _check_value(session: Session, user: User, action: BulkAction, value: Any) -> Any:
    match action:
        case BulkAction.MOVE:
            find_open_for(session, user, value)
        case BulkAction.ADD_TAG | BulkAction.REMOVE_TAG:
            tags = check_tags([value or ""])
            if not tags:
                raise InvalidInput("the tag is empty")
            return tags[0]
        case BulkAction.DOMAIN:
            return check_domain(value)
        case BulkAction.VISIBILITY:
            if value not in set(Visibility):
                raise InvalidInput("visibility must be shared or private")
            return Visibility(value)
    return value


def _count_missing(target: BulkTarget, found_count: int) -> int:
    return len(set(target.ids)) - found_count if target.ids is not None else 0


def _record_visibility(
    session: Session, user: User, documents: Iterable[tuple[UUID, str, Any]],
    *, before: str = "", after: str = "",
) -> None:  # fmt: skip
    """Record changes of visibility. The third value of each document is whichever of `before` and
    `after` is not given."""
    entries = [
        (
            Subject(SubjectKind.DOCUMENT, document_id, title),
            {"before": before or noted, "after": after or noted},
        )
        for document_id, title, noted in documents
    ]
    audit.record_each(session, AuditEvent.VISIBILITY_CHANGED, user, entries)


def _read_again(services: Services, user: User, target: BulkTarget) -> BulkResult:
    with services.database.begin() as session:
        _check_place(session, user, target.filters.folder_id)
        others, skipped_count = bulk_store.list_skipped(session, user, target)
        counts = bulk_store.count(session, user, target)
        missing = _count_missing(target, counts.total_count)
        rows = bulk_store.lock_to_read(session, user, target)
        files = {row.id: row.file_id for row in rows if row.is_held and not row.is_being_read}
        busy = [row for row in rows if row.is_being_read]
        failed = [row for row in rows if not (row.is_held or row.is_being_read)]
        if len(failed) > MAX_FAILED_READ_AGAIN:
            raise InvalidInput(
                "at most %(max)s documents that have failed can be read again at once",
                max=MAX_FAILED_READ_AGAIN,
            )
        queue.enqueue_new(session, files)
    skipped = [SkippedDocument(other.id, other.title, Forbidden.code) for other in others]
    skipped += [SkippedDocument(one.id, one.title, Conflict.code) for one in busy]
    skipped_count += len(busy)
    changed_count = len(files)
    for one in failed:
        try:
            rereading.reread(services, user, one.id)
        except PortalError as error:
            skipped.append(SkippedDocument(one.id, one.title, error.code))
            skipped_count += 1
        else:
            changed_count += 1
    kept = tuple(skipped[: bulk_store.MAX_SKIPPED_LISTED])
    return BulkResult(None, changed_count, kept, skipped_count, missing)
