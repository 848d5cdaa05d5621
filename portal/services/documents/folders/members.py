"""Members of folders, and previews of who gains or loses access by a move."""

from __future__ import annotations

from collections import Counter
from uuid import UUID

from portal.domain.documents import DocumentFilter
from portal.domain.documents.bulk import BulkTarget
from portal.domain.documents.folder_members import AccessChange, FolderMember, MemberKind
from portal.domain.documents.folders import Folder, FolderRole
from portal.domain.people import User
from portal.errors import Forbidden, NotFound, existing
from portal.services import Services, audit
from portal.services.audit import AuditEvent, Subject, SubjectKind
from portal.services.people.accounts import normalise_name
from portal.store.documents import bulk as bulk_store
from portal.store.documents import folders as folder_store
from portal.store.documents.folders import members as member_store
from portal.store.people import accounts as account_store
from portal.store.people import groups as group_store
from portal.store.session import Session


def list_members(services: Services, user: User, folder_id: UUID) -> list[FolderMember]:
    """Return the members of a folder, groups first; none if the folder is not limited to them,
    unless the user may limit it again. Raises NotFound."""
    with services.database.begin() as session:
        folder = existing(folder_store.find_folder(session, user, folder_id))
        if folder.gate_id != folder_id and not folder.can_share:
            return []
        return member_store.list_members(session, folder_id)


def set_member(
    services: Services, user: User, folder_id: UUID,
    *, kind: MemberKind, name: str, role: FolderRole,
) -> None:  # fmt: skip
    """Add a user or a group by name, or change its role. Raises NotFound, also for the group;
    NoSuchAccount; Forbidden."""
    with services.database.begin() as session:
        folder_store.lock_tree(session)
        folder = _find_shareable(session, user, folder_id)
        if kind is MemberKind.USER:
            member_id = account_store.get_user_by_name(session, normalise_name(name)).id
        else:
            member_id = existing(group_store.find_id(session, name.strip()))
        member_store.set_member(session, folder_id, kind, member_id, role)
        _record(session, user, folder, member=name, role=role.value)


def remove_member(services: Services, user: User, folder_id: UUID, member_id: UUID) -> None:
    """Remove a user or a group. Raises NotFound, also if it is not a member; Forbidden."""
    with services.database.begin() as session:
        folder_store.lock_tree(session)
        folder = _find_shareable(session, user, folder_id)
        members = {
            member.id: member.name for member in member_store.list_members(session, folder_id)
        }
        if not member_store.remove_member(session, folder_id, member_id):
            raise NotFound
        _record(session, user, folder, member=members.get(member_id, ""), role="")


def preview_move(
    services: Services, user: User, target: BulkTarget, folder_id: UUID | None
) -> AccessChange:
    """Return who gains and loses access to the shared documents of a target that move to a folder.
    Raises NotFound for the folder."""
    with services.database.begin() as session:
        to = _find_gate(session, user, folder_id)
        return _compare_audiences(session, user, bulk_store.count_gates(session, user, target), to)


def preview_folder_move(
    services: Services, user: User, folder_id: UUID, parent_id: UUID | None
) -> AccessChange:
    """Return who gains and loses access to the shared documents in a folder that moves into
    another, as far as the user sees them. Raises NotFound for either."""
    with services.database.begin() as session:
        folder = existing(folder_store.find_folder(session, user, folder_id))
        to = _find_gate(session, user, parent_id)
        if folder.gate_id == folder_id:
            return AccessChange(0)  # Its own members go with it.
        gates = _count_gates_below(session, user, folder_id)
        moved = +Counter({folder.gate_id: gates[folder.gate_id]})
        return _compare_audiences(session, user, moved, to)


def preview_access(services: Services, user: User, folder_id: UUID) -> AccessChange:
    """Return who gains access if a folder is no longer limited to members, or who loses it if it
    becomes so. Raises NotFound, Forbidden."""
    with services.database.begin() as session:
        folder = _find_shareable(session, user, folder_id)
        gate_above = _find_gate(session, user, folder.parent_id)
        count = _count_gates_below(session, user, folder_id)[folder.gate_id]
        to = gate_above if folder.gate_id == folder_id else folder_id
        moved = Counter({folder.gate_id: count})
        return _compare_audiences(session, user, moved, to, shareable=folder_id)


def preview_removal(services: Services, user: User, folder_id: UUID) -> AccessChange:
    """Return who gains and loses access to the shared documents of a folder if it is deleted and
    they move to the folder above. Raises NotFound."""
    with services.database.begin() as session:
        folder = existing(folder_store.find_folder(session, user, folder_id))
        to = _find_gate(session, user, folder.parent_id)
        return _compare_audiences(session, user, _count_gates_below(session, user, folder_id), to)


def _find_gate(session: Session, user: User, folder_id: UUID | None) -> UUID | None:
    """Return the gate that documents in a folder are behind, if any; None outside of folders.
    Raises NotFound."""
    if folder_id is None:
        return None
    return existing(folder_store.find_folder(session, user, folder_id)).gate_id


def _count_gates_below(session: Session, user: User, folder_id: UUID) -> Counter[UUID | None]:
    """Return how many of the shared documents in a folder are behind each gate."""
    target = BulkTarget(None, DocumentFilter(folder_id=folder_id))
    return bulk_store.count_gates(session, user, target, with_others=True)


def _compare_audiences(
    session: Session,
    user: User,
    gates: Counter[UUID | None],
    to: UUID | None,
    *,
    shareable: UUID | None = None,
) -> AccessChange:
    moved = Counter({gate: count for gate, count in gates.items() if gate != to})
    if not moved:
        return AccessChange(0)
    known = member_store.audience(
        session, user, [gate for gate in {*moved, to} if gate], shareable=shareable
    )
    before = [known.get(gate, set()) for gate in moved if gate]
    after = known.get(to, set()) if to else set()
    # Users who see only some of the documents now gain the others.
    seeing_all = set.intersection(*map(_ids, before), _ids(after))
    return AccessChange(
        document_count=moved.total(),
        opens=to is None,
        closes=to is not None and None in moved,
        gains=_names(after, seeing_all) if None not in moved else (),
        loses=_names(set.union(set(), *before), _ids(after)) if to is not None else (),
        keeps=_names(after, set()) if None in moved else (),
    )


def _ids(passing: set[tuple[str, UUID]]) -> set[UUID]:
    return {user_id for _, user_id in passing}


def _names(passing: set[tuple[str, UUID]], others: set[UUID]) -> tuple[str, ...]:
    """Return the names of users and groups that have a user who is not among `others`."""
    return tuple(sorted({name for name, user_id in passing if user_id not in others}))


def _find_shareable(session: Session, user: User, folder_id: UUID) -> Folder:
    folder = existing(folder_store.find_folder(session, user, folder_id))
    if not folder.can_share:
        raise Forbidden
    return folder


def _record(session: Session, user: User, folder: Folder, **details: str) -> None:
    audit.record(
        session,
        AuditEvent.FOLDER_MEMBER_CHANGED,
        user,
        Subject(SubjectKind.FOLDER, folder.id, folder.name),
        **details,
    )
