"""Synchronise folders with their sources, one run after the other in any worker.

Each file is stored by itself, so the next run continues where the last one was interrupted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from uuid import UUID

import structlog

from portal.domain import locks
from portal.domain.documents import Failure, Visibility
from portal.domain.documents.folders import FolderVisibility
from portal.domain.documents.sources import (
    MAX_LISTED,
    Change,
    FolderSource,
    ListedChange,
    Listing,
    Opened,
    Source,
    SourceItem,
    SyncRun,
)
from portal.domain.people import User
from portal.errors import (
    DatabaseUnavailable,
    Forbidden,
    KeptElsewhere,
    NotFound,
    PageGone,
    PortalError,
    SourceUnavailable,
    StorageFull,
    UnreadableFile,
    verbatim,
)
from portal.services import Services
from portal.services.documents import folders, library
from portal.services.documents.intake.uploads import (
    Upload,
    UploadReceipt,
    UploadTarget,
    store_upload,
)
from portal.services.documents.sources.kinds import SourceContext
from portal.services.documents.sources.registry import KINDS, open_source
from portal.services.documents.versions import revisions
from portal.services.documents.versions.revisions import VersionOutcome
from portal.store.documents import folders as folder_store
from portal.store.documents.folders import sources as source_store
from portal.store.documents.folders.sources import KnownItem
from portal.store.people import accounts as account_store

log = structlog.get_logger(__name__)


def sync_due(
    services: Services,
    *,
    is_web: bool | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> None:
    """Read the sources that are due: all, or with `is_web` only those on the web or only the
    others. Each is read by one worker at a time."""
    kinds = [kind.name for kind in KINDS.values() if is_web in (None, kind.is_web)]
    with services.database.begin() as session:
        due = source_store.list_due(session, kinds)
    for folder_id in due:
        if should_stop():
            return
        with services.database.hold(locks.SOURCE, str(folder_id)) as is_first:
            if is_first:
                _sync(services, folder_id, should_stop)


def _sync(services: Services, folder_id: UUID, should_stop: Callable[[], bool]) -> None:
    with services.database.begin() as session:
        tie = source_store.find_source(session, folder_id, is_due=True)
        if tie is None:  # Another worker was quicker.
            return
        known = source_store.list_items(session, folder_id)
        row = account_store.get_user(session, tie.owner_id)
        owner = account_store.to_user(row) if row and row.disabled_at is None else None
        folder = folder_store.find_folder(session, owner, folder_id) if owner else None
    run: _Run | None = None
    failure = None
    try:
        if owner is None or folder is None:
            raise Forbidden
        source = open_source(source_context(services, should_stop), tie.kind, tie.address)
        listing = source.list_items()
        if known and not listing.items:
            # A disk that is not mounted looks like this, and all documents would go to the trash.
            raise SourceUnavailable("it is empty, and was not before")
        is_private = folder.visibility is FolderVisibility.PRIVATE
        visibility = Visibility.PRIVATE if is_private else Visibility.SHARED
        run = _Run(services, tie, owner, visibility, source, listing, known)
        if not run.work(should_stop):
            return
    except DatabaseUnavailable:
        raise
    except PortalError as error:
        failure = Failure.of(error)
    except Exception:
        # Without an outcome it would stay due and fail first in each round, and the sources after
        # it would never be read.
        log.exception("source_failed", folder_id=str(folder_id))
        failure = Failure(PortalError.code)
    with services.database.begin() as session:
        outcome = run.outcome(failure) if run else SyncRun(failure=failure)
        source_store.finish(session, folder_id, outcome)


def source_context(
    services: Services, should_stop: Callable[[], bool] = lambda: False
) -> SourceContext:
    """Return what sources need from this portal."""

    def take_turn(host: str, delay_s: float) -> float:
        with services.database.begin() as session:
            return source_store.take_turn(session, host, delay_s)

    return SourceContext(services.settings, take_turn, should_stop)


@dataclass
class _Run:
    services: Services
    tie: FolderSource
    owner: User
    visibility: Visibility
    source: Source
    listing: Listing
    known: dict[str, KnownItem]
    counts: Counter[Change] = field(default_factory=Counter)
    listed: list[ListedChange] = field(default_factory=list)

    def work(self, should_stop: Callable[[], bool]) -> bool:
        """Store new and changed files, then remove missing ones; return False if stopped."""
        self.present = {item.path for item in self.listing.items}
        self.present.update(path for path, _ in self.listing.refused)
        for item in self.listing.items:
            if should_stop():
                return False
            known = self.known.get(item.path)
            self._attempt(item.path, partial(self._sync_item, item, known))
            if should_stop():  # The stop may have interrupted the file, which was not refused.
                return False
        for path in self.listing.unreadable:
            self._note(Change.REFUSED, path, UnreadableFile(verbatim(path)))
        for path, error in self.listing.refused:
            self._note(Change.REFUSED, path, error)
        for path, known in self.known.items() if self.listing.is_complete else ():
            if should_stop():
                return False
            if path not in self.present and not self._is_unknown(path):
                self._attempt(path, partial(self._remove, path, known))
        return True

    def outcome(self, failure: Failure | None) -> SyncRun:
        counts = {change.value: self.counts[change] for change in Change}
        return SyncRun(**counts, listed=tuple(self.listed), failure=failure)

    def _is_unknown(self, path: str) -> bool:
        return any(path == one or path.startswith(f"{one}/") for one in self.listing.unreadable)

    def _attempt(self, path: str, action: Callable[[], Change | None]) -> None:
        """Run an action for one file. Only a failure that would affect all files stops the run."""
        try:
            change = action()
        except (DatabaseUnavailable, StorageFull):
            raise
        except OSError as error:
            reason = verbatim(str(error.strerror or error))
            self._note(Change.REFUSED, path, UnreadableFile(reason))
        except PortalError as error:
            self._note(Change.REFUSED, path, error)
        else:
            if change is not None:
                self._note(change, path)

    def _note(self, change: Change, path: str, error: PortalError | None = None) -> None:
        self.counts[change] += 1
        if self.counts[change] <= MAX_LISTED:
            failure = Failure.of(error) if error else None
            self.listed.append(ListedChange(change, path, failure))

    def _sync_item(self, item: SourceItem, known: KnownItem | None) -> Change | None:
        try:
            with self.source.open(item, known.stamp if known else None) as found:
                if isinstance(found, Opened):
                    return self._store(item, known, found)
                if known is not None and found.stamp != known.stamp:
                    self._record_item(replace(item, stamp=found.stamp), known.document_id)
                return None
        except PageGone:
            if known is None:
                raise
            return self._remove(item.path, known)

    def _store(self, item: SourceItem, known: KnownItem | None, opened: Opened) -> Change | None:
        upload = Upload(opened.stream, opened.file_name)
        item = replace(item, stamp=opened.stamp)
        if known is not None and known.document_id is not None:
            try:
                version = revisions.add_version(
                    self.services, self.owner, known.document_id, upload
                )
            except NotFound:
                pass  # Deleted in the portal, but the file has changed since: add it again.
            else:
                self._record_item(item, known.document_id)
                return Change.CHANGED if version.taken is VersionOutcome.QUEUED else None
        receipt = self._upload(item, upload, opened.title)
        if receipt.is_duplicate:
            return self._adopt(item, receipt)
        self._record_item(item, receipt.document.id)
        return Change.ADDED

    def _upload(self, item: SourceItem, upload: Upload, title: str) -> UploadReceipt:
        return store_upload(
            self.services,
            self.owner,
            stream=upload.stream,
            file_name=upload.file_name,
            title=title or None,
            visibility=self.visibility,
            target=UploadTarget(self.tie.folder_id, item.below),
        )

    def _adopt(self, item: SourceItem, receipt: UploadReceipt) -> Change | None:
        """Continue with the document that has these bytes: one that an interrupted run stored, or
        one whose file was moved. Raises KeptElsewhere for any other."""
        document_id = receipt.document.id
        with self.services.database.begin() as session:
            claim = source_store.find_claim(session, document_id)
            is_left_over = claim is None and source_store.lies_below(
                session, document_id, self.tie.folder_id
            )
        if is_left_over:
            self._record_item(item, document_id)
            return Change.ADDED
        folder_id, path = claim or (None, "")
        is_moved = self.listing.is_complete and path not in self.present
        if folder_id != self.tie.folder_id or not is_moved:
            raise KeptElsewhere(title=receipt.document.title)
        with self.services.database.begin() as session:
            names = folders.path_names(item.below)
            place = folders.find_place(
                session, self.owner, self.tie.folder_id, names, self.visibility
            )
        folders.move_document(self.services, self.owner, document_id, place)
        self._record_item(item, document_id)
        self._forget(path)
        self.known = {name: one for name, one in self.known.items() if name != path}
        return Change.CHANGED

    def _remove(self, path: str, known: KnownItem) -> Change | None:
        change = None
        if known.document_id is not None:
            with suppress(NotFound):
                library.delete_document(self.services, self.owner, known.document_id)
                change = Change.REMOVED
        self._forget(path)
        return change

    def _record_item(self, item: SourceItem, document_id: UUID | None) -> None:
        with self.services.database.begin() as session:
            source_store.save_item(session, self.tie.folder_id, item, document_id)

    def _forget(self, path: str) -> None:
        with self.services.database.begin() as session:
            source_store.delete_item(session, self.tie.folder_id, path)
