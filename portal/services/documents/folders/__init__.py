"""Folders: read and change the tree."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from portal.domain.documents import DocumentFilter, Visibility
from portal.domain.documents.bulk import BulkTarget
from portal.domain.documents.folders import (
    MAX_DEPTH,
    MAX_FOLDER_NAME_CHARACTERS,
    Folder,
    FolderVisibility,
    OpenedFolder,
    RemovedFolder,
    default_visibility,
)
from portal.domain.people import User
from portal.errors import Conflict, Forbidden, InvalidInput, NameTaken, existing
from portal.services import Services, audit
from portal.services.audit import AuditEvent, Subject, SubjectKind
from portal.services.documents import shared_words
from portal.services.documents.library import find_editable
from portal.services.transactions import in_transaction
from portal.store.documents import bulk as bulk_store
from portal.store.documents import folders as folder_store
from portal.store.models import FolderRow
from portal.store.session import Session
from portal.text.titles import check_description, one_line

count_documents = in_transaction(folder_store.count_documents)
list_children = in_transaction(folder_store.list_children)
list_paths = in_transaction(folder_store.list_paths)
list_paths_to_add = in_transaction(folder_store.list_paths_to_add)


def get_folder(services: Services, user: User, folder_id: UUID) -> OpenedFolder:
    """Return a folder and the folders above it. Raises NotFound, also if it is not visible."""
    with services.database.begin() as session:
        return OpenedFolder(
            existing(folder_store.find_folder(session, user, folder_id)),
            folder_store.list_above(session, user, folder_id),
        )


def create_folder(
    services: Services,
    user: User,
    *,
    name: str,
    parent_id: UUID | None = None,
    description: str = "",
    visibility: FolderVisibility | None = None,
) -> UUID:
    """Create a folder and return its id. A folder in a private one is private by default. Raises
    NotFound for the parent, InvalidInput, NameTaken, Conflict when it would be too deep."""
    name, description = _check_name(name), check_description(description)
    with services.database.begin() as session:
        folder_store.lock_tree(session)
        parent = find_open_for(session, user, parent_id)
        if parent_id and folder_store.depth_of(session, parent_id) >= MAX_DEPTH:
            raise Conflict("folders can be nested %(max)s deep", max=MAX_DEPTH)
        wanted = visibility or default_visibility(parent)
        if wanted is FolderVisibility.MEMBERS and parent is not None and parent.gate_id:
            _require(parent.can_share)
        owner_id = _owner_below(session, user, parent_id, wanted)
        row = FolderRow(
            parent_id=parent_id, owner_id=owner_id, name=name, description=description,
            visibility=wanted.value,
        )  # fmt: skip
        _refuse_taken(session, user, row, parent_id)
        return folder_store.add_folder(session, row)


def change_folder(
    services: Services,
    user: User,
    folder_id: UUID,
    *,
    name: str | None = None,
    description: str | None = None,
    visibility: FolderVisibility | None = None,
) -> None:
    """Change the given fields. Raises NotFound, Forbidden, InvalidInput, NameTaken."""
    with shared_words.sharing(services) as session:
        folder_store.lock_tree(session)
        folder = find_editable_folder(session, user, folder_id)
        row = existing(folder_store.get_row(session, folder_id))
        if visibility is not None and visibility != folder.visibility:
            is_gate = FolderVisibility.MEMBERS in {visibility, folder.visibility}
            _require(folder.can_share or not is_gate)
            subject = Subject(SubjectKind.FOLDER, row.id, row.name)
            audit.record_visibility(session, user, subject, row.visibility, visibility.value)
        row.name = row.name if name is None else _check_name(name)
        row.visibility = visibility.value if visibility else row.visibility
        if description is not None:
            row.description = check_description(description)
        with session.no_autoflush:
            _refuse_taken(session, user, row, row.parent_id)


def move_folder(services: Services, user: User, folder_id: UUID, parent_id: UUID | None) -> None:
    """Move a folder with its contents into another, or to the top with None. Raises NotFound,
    Forbidden, NameTaken, Conflict when it would be in itself or too deep."""
    with shared_words.sharing(services) as session:
        folder_store.lock_tree(session)
        folder = find_editable_folder(session, user, folder_id)
        if folder.gate_id not in {None, folder_id}:
            parent = folder_store.get_row(session, parent_id) if parent_id else None
            _require(folder.can_share or (parent is not None and parent.gate_id == folder.gate_id))
        if parent_id is not None:
            find_open_for(session, user, parent_id)
            if folder_store.is_below(session, parent_id, folder_id):
                raise Conflict("a folder cannot be moved into itself")
            depth = folder_store.depth_of(session, parent_id)
            if depth + folder_store.height_of(session, folder_id) > MAX_DEPTH:
                raise Conflict("folders can be nested %(max)s deep", max=MAX_DEPTH)
        row = existing(folder_store.get_row(session, folder_id))
        _refuse_taken(session, user, row, parent_id)
        if folder.gate_id != folder_id:
            subject = Subject(SubjectKind.FOLDER, folder.id, folder.name)
            record_audience(session, user, subject, folder.gate_id, gate_of(session, parent_id))
        row.parent_id = parent_id


def delete_folder(
    services: Services, user: User, folder_id: UUID, *, trash_documents: bool
) -> RemovedFolder:
    """Delete a folder and the folders below it. With `trash_documents` documents that the user may
    change go to the trash. All others move to the folder above. Raises NotFound, Forbidden."""
    with shared_words.sharing(services) as session:
        folder_store.lock_tree(session)
        folder = find_editable_folder(session, user, folder_id)
        folder_store.lock_below(session, folder_id)
        row = existing(folder_store.get_row(session, folder_id))
        trashed = folder_store.trash_documents(session, user, folder.id) if trash_documents else 0
        moved = folder_store.count_documents(session, user, folder.id)
        parent_id = row.parent_id
        session.expunge(row)
        folder_store.keep_gates(session, user, folder.id, into=parent_id)
        for document_id, title in folder_store.close_trash(session, folder.id):
            subject = Subject(SubjectKind.DOCUMENT, document_id, title)
            before, after = Visibility.SHARED.value, Visibility.PRIVATE.value
            audit.record_visibility(session, user, subject, before, after)
        subject = Subject(SubjectKind.FOLDER, folder.id, folder.name)
        to = gate_of(session, parent_id)
        record_audience(session, user, subject, folder.gate_id, to)
        below = BulkTarget(None, DocumentFilter(folder_id=folder.id))
        gates = bulk_store.count_gates(session, user, below, with_others=True)
        del gates[folder.gate_id]
        record_moves(session, user, gates, to=to)
        folder_store.remove_folder(session, folder.id, into=parent_id)
    return RemovedFolder(trashed, moved)


def move_document(
    services: Services, user: User, document_id: UUID, folder_id: UUID | None
) -> None:
    """Move a document into a folder, or out of folders with None. Raises NotFound, Forbidden."""
    with shared_words.sharing(services) as session:
        # Lock the folder before it is checked, since its members may change until then.
        folder_store.hold(session, folder_id)
        document = find_editable(session, user, document_id, deleted=False)
        find_open_for(session, user, folder_id)
        if document.visibility == Visibility.SHARED:
            subject = Subject(SubjectKind.DOCUMENT, document.id, document.title)
            gate_id = gate_of(session, folder_id)
            record_audience(session, user, subject, document.gate_id, gate_id)
        document.folder_id = folder_id


def is_private(session: Session, folder_id: UUID | None) -> bool:
    """Return whether a folder is private to its owner."""
    row = folder_store.get_row(session, folder_id) if folder_id else None
    return row is not None and row.visibility == FolderVisibility.PRIVATE


def gate_of(session: Session, folder_id: UUID | None) -> UUID | None:
    """Return the gate that documents in a folder are behind, if any; None outside of folders."""
    row = folder_store.get_row(session, folder_id) if folder_id else None
    return row.gate_id if row else None


def record_audience(
    session: Session,
    user: User,
    subject: Subject,
    before: UUID | None,
    after: UUID | None,
    **details: Any,
) -> None:
    """Record that a document, or those in a folder, moved behind another gate or lost theirs."""
    if before != after:
        words = ["members" if gate_id else Visibility.SHARED.value for gate_id in (before, after)]
        details |= dict(zip(("before", "after"), words, strict=True))
        audit.record(session, AuditEvent.VISIBILITY_CHANGED, user, subject, **details)


def record_moves(
    session: Session, user: User, gates: Counter[UUID | None], *, to: UUID | None
) -> None:
    """Record how many documents leave the gates of folders for members, or move behind one."""
    for gate_id, count in gates.items():
        closed_by = gate_id or to
        folder = folder_store.get_row(session, closed_by) if closed_by else None
        if folder is not None:
            subject = Subject(SubjectKind.FOLDER, folder.id, folder.name)
            record_audience(session, user, subject, gate_id, to, document_count=count)


def find_place(
    session: Session,
    user: User,
    folder_id: UUID | None,
    names: Sequence[str],
    visibility: Visibility,
    *,
    must_fit: bool = False,
    is_locked: bool = False,
) -> UUID | None:
    """Return the folder at a path below another, creating those that are missing. Names are
    cleaned, and folders beyond the depth limit are left out, or refused with InvalidInput if the
    path `must_fit`. Raises NotFound and Forbidden. Pass `is_locked` if the tree is locked."""
    fit = (_clean(name.replace("/", " "))[:MAX_FOLDER_NAME_CHARACTERS].strip() for name in names)
    names = list(filter(None, fit))
    place = folder_id
    if names and place:
        _check_open_for(session, user, place)
    depth = folder_store.depth_of(session, place) if names and place else 0
    if must_fit and depth + len(names) > MAX_DEPTH:
        raise InvalidInput("folders can be nested %(max)s deep", max=MAX_DEPTH)
    wanted = FolderVisibility(visibility)
    if is_private(session, place):
        # Names of folders below a private one are private, too.
        wanted = FolderVisibility.PRIVATE
    for name in names[: MAX_DEPTH - depth]:
        owner_id = _owner_below(session, user, place, wanted)
        found = _find_named(session, user, place, name, visibility=wanted, owner_id=owner_id)
        if found is None and not is_locked:
            # No row is locked yet: everything that changes the tree locks it first.
            folder_store.lock_tree(session)
            session.expire_all()
            return find_place(session, user, folder_id, names, visibility, is_locked=True)
        if found is not None:
            _check_open_for(session, user, found)
        place = found or folder_store.add_folder(
            session,
            FolderRow(parent_id=place, owner_id=owner_id, name=name, visibility=wanted.value),
        )
    find_open_for(session, user, place)
    return place


def find_open_for(session: Session, user: User, folder_id: UUID | None) -> Folder | None:
    """Return the folder that a user adds to, locked until the transaction ends; None for the top.
    Raises NotFound, Forbidden."""
    if folder_id is None:
        return None
    folder_store.hold(session, folder_id)
    return _check_open_for(session, user, folder_id)


def _check_open_for(session: Session, user: User, folder_id: UUID) -> Folder:
    folder = existing(folder_store.find_folder(session, user, folder_id))
    _require(folder.can_add)
    return folder


def _require(is_allowed: bool) -> None:
    if not is_allowed:
        raise Forbidden


def _owner_below(
    session: Session, user: User, parent_id: UUID | None, visibility: FolderVisibility
) -> UUID | None:
    """Return the owner of a new folder: the user; for a private folder inside a private one, the
    owner of the outer one, who could not see it otherwise."""
    parent = folder_store.get_row(session, parent_id) if parent_id else None
    is_inside = parent is not None and parent.visibility == visibility == FolderVisibility.PRIVATE
    return parent.owner_id if parent is not None and is_inside else user.id


def _find_named(
    session: Session,
    user: User,
    parent_id: UUID | None,
    name: str,
    *,
    visibility: FolderVisibility,
    owner_id: UUID | None,
) -> UUID | None:
    for wanted in dict.fromkeys((visibility, FolderVisibility.SHARED)):
        found = folder_store.find_named(
            session, user, parent_id, name, visibility=wanted, owner_id=owner_id
        )
        if found is not None:
            return found
    return None


def path_names(path: str) -> list[str]:
    """Return the folder names in a path such as `contracts/2026`, without `.` and `..`."""
    return [name for name in path.replace("\\", "/").split("/") if name.strip(". ")]


def find_editable_folder(session: Session, user: User, folder_id: UUID) -> Folder:
    """Return a folder that the user may change. Raises NotFound, Forbidden."""
    folder = existing(folder_store.find_folder(session, user, folder_id))
    _require(folder.can_edit)
    return folder


def _refuse_taken(session: Session, user: User, row: FolderRow, parent_id: UUID | None) -> None:
    """Raise NameTaken if another folder in that parent has the same name."""
    taken = folder_store.find_named(
        session, user, parent_id, row.name,
        visibility=row.visibility, owner_id=row.owner_id, other_than=row.id,
    )  # fmt: skip
    if taken is not None:
        raise NameTaken(name=row.name)


def _clean(name: str) -> str:
    """Return a name on one line, in NFC: some systems decompose accented letters in file names, so
    the same name could be stored in two forms."""
    return one_line(unicodedata.normalize("NFC", name))


def _check_name(name: str) -> str:
    name = _clean(name)
    # The paths of uploads are read without `.` and `..`.
    if not name.strip(". ") or len(name) > MAX_FOLDER_NAME_CHARACTERS or "/" in name:
        raise InvalidInput(
            "the name of a folder has 1 to %(max)s characters, no slash, and not only dots",
            max=MAX_FOLDER_NAME_CHARACTERS,
        )
    return name
