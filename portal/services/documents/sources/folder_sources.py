"""The source of a folder: read, set and remove it. For users who may change the folder."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from portal.domain.documents.folders import Folder
from portal.domain.documents.sources import (
    MAX_EVERY_MINUTES,
    MIN_EVERY_MINUTES,
    FolderSource,
    ListedChange,
    PastRun,
)
from portal.domain.people import User
from portal.errors import InvalidInput, NotFound
from portal.services import Services, audit
from portal.services.audit import AuditEvent, Subject, SubjectKind
from portal.services.documents.folders import find_editable_folder
from portal.services.documents.sources.registry import find_kind, open_source
from portal.services.documents.sources.syncing import source_context
from portal.store.documents.folders import sources as source_store
from portal.store.session import Session

# The beginning of a list of pages is enough.
_MAX_RECORDED = 500


def find_source(services: Services, user: User, folder_id: UUID) -> FolderSource | None:
    """Return the source of a folder, if it has one. Raises NotFound, Forbidden."""
    with services.database.begin() as session:
        find_editable_folder(session, user, folder_id)
        source = source_store.find_source(session, folder_id)
    if source is None or source.last_run is None or user.is_admin or user.id == source.owner_id:
        return source
    listed = tuple(map(_without_title, source.last_run.listed))
    return replace(source, last_run=replace(source.last_run, listed=listed))


def _without_title(change: ListedChange) -> ListedChange:
    """Return a change without the title of the document that has the same file: that document is
    the owner's and may be private."""
    failure = change.failure
    if failure is None or "title" not in failure.params:
        return change
    return replace(change, failure=replace(failure, params=failure.params | {"title": "…"}))


def list_runs(services: Services, user: User, folder_id: UUID) -> list[PastRun]:
    """Return the last runs that changed something, the newest first. Raises NotFound, Forbidden."""
    with services.database.begin() as session:
        find_editable_folder(session, user, folder_id)
        return source_store.list_runs(session, folder_id)


def set_source(
    services: Services,
    user: User,
    folder_id: UUID,
    *,
    kind: str,
    address: str,
    every_minutes: int,
) -> None:
    """Tie a folder to a source, which is read at once and then on schedule. Its documents belong to
    the user; those of another user's source stay as they are. Raises NotFound, Forbidden,
    InvalidInput for an address that the operator does not allow."""
    if not MIN_EVERY_MINUTES <= every_minutes <= MAX_EVERY_MINUTES:
        raise InvalidInput(
            "a source can sync every %(min)s to %(max)s minutes",
            min=MIN_EVERY_MINUTES,
            max=MAX_EVERY_MINUTES,
        )
    address = address.strip()
    with services.database.begin() as session:
        folder = find_editable_folder(session, user, folder_id)
        open_source(source_context(services), kind, address)
        source_store.set_source(
            session,
            folder_id,
            owner_id=user.id,
            kind=kind,
            address=address,
            every_minutes=every_minutes,
            is_list=find_kind(kind).is_list,
            may_act_for_others=user.is_admin,
        )
        _record(session, user, folder, address)


def remove_source(services: Services, user: User, folder_id: UUID) -> None:
    """Untie a folder; its documents stay. Raises NotFound, Forbidden."""
    with services.database.begin() as session:
        folder = find_editable_folder(session, user, folder_id)
        if not source_store.remove_source(session, folder_id):
            raise NotFound
        _record(session, user, folder, "")


def request_run(services: Services, user: User, folder_id: UUID) -> None:
    """Let the next free worker read the source of a folder. Raises NotFound, Forbidden."""
    with services.database.begin() as session:
        find_editable_folder(session, user, folder_id)
        if not source_store.set_due(session, folder_id):
            raise NotFound


def _record(session: Session, user: User, folder: Folder, address: str) -> None:
    audit.record(
        session,
        AuditEvent.FOLDER_SOURCE_CHANGED,
        user,
        Subject(SubjectKind.FOLDER, folder.id, folder.name),
        address=address[:_MAX_RECORDED],
    )
