"""Members of folders, read and written."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from sqlalchemy import delete, func, literal, or_, select, true, union_all
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from portal.domain.documents.folder_members import FolderMember, MemberKind
from portal.domain.documents.folders import FolderRole
from portal.domain.people import User
from portal.store.documents.selection import gates_of
from portal.store.models import FolderMemberRow, FolderRow, GroupMemberRow, GroupRow, UserRow

# Administrators pass every gate.
_IS_COUNTED = UserRow.disabled_at.is_(None), UserRow.is_admin.is_(False)


def list_members(session: Session, folder_id: UUID) -> list[FolderMember]:
    """Return the members of a folder, groups first, by name. Its owner is not among them."""
    member = FolderMemberRow
    count = (
        select(func.count())
        .select_from(GroupMemberRow)
        .where(GroupMemberRow.group_id == GroupRow.id)
        .correlate(GroupRow)
        .scalar_subquery()
    )
    groups = (
        select(
            literal(MemberKind.GROUP.value).label("kind"),
            *(GroupRow.id, GroupRow.name, member.role, count.label("user_count")),
        )
        .join(member, member.group_id == GroupRow.id)
        .where(member.folder_id == folder_id)
    )
    users = (
        select(literal(MemberKind.USER.value), UserRow.id, UserRow.name, member.role, literal(1))
        .join(member, member.user_id == UserRow.id)
        .where(member.folder_id == folder_id)
    )
    both = union_all(groups, users).subquery()
    rows = session.execute(select(both).order_by(both.c.kind, func.lower(both.c.name), both.c.id))
    return [
        FolderMember(MemberKind(kind), member_id, name, FolderRole(role), count)
        for kind, member_id, name, role, count in rows
    ]


def audience(
    session: Session, user: User, gate_ids: Collection[UUID], *, shareable: UUID | None
) -> dict[UUID, set[tuple[str, UUID]]]:
    """Return who passes each gate: the ids of users, each with their own name or that of the group
    through which they pass. Leaves out administrators, who pass every gate, closed accounts, and
    gates that the user does not pass, whose members they may not know. The folder `shareable` is
    included, whether or not it is a gate: the user may share it."""
    is_known = or_(FolderRow.id == shareable, FolderRow.id.in_(gates_of(user)))
    if user.is_admin:
        is_known = true()
    member, folder = FolderMemberRow, FolderRow
    owners = select(folder.id, UserRow.name, UserRow.id).join(
        UserRow, UserRow.id == folder.owner_id
    )
    users = (
        select(folder.id, UserRow.name, UserRow.id)
        .join(member, member.folder_id == folder.id)
        .join(UserRow, UserRow.id == member.user_id)
    )
    groups = (
        select(folder.id, GroupRow.name, UserRow.id)
        .join(member, member.folder_id == folder.id)
        .join(GroupRow, GroupRow.id == member.group_id)
        .join(GroupMemberRow, GroupMemberRow.group_id == GroupRow.id)
        .join(UserRow, UserRow.id == GroupMemberRow.user_id)
    )
    found: dict[UUID, set[tuple[str, UUID]]] = {}
    passing = (
        one.where(folder.id.in_(gate_ids), is_known, *_IS_COUNTED)
        for one in (owners, users, groups)
    )
    for gate_id, name, user_id in session.execute(union_all(*passing)):
        found.setdefault(gate_id, set()).add((name, user_id))
    return found


def set_member(
    session: Session, folder_id: UUID, kind: MemberKind, member_id: UUID, role: FolderRole
) -> None:
    row = insert(FolderMemberRow).values(
        folder_id=folder_id, **{f"{kind.value}_id": member_id}, role=role.value
    )
    key = ["folder_id", "member_id"]
    session.execute(row.on_conflict_do_update(index_elements=key, set_={"role": role.value}))


def remove_member(session: Session, folder_id: UUID, member_id: UUID) -> bool:
    """Remove a member; return whether there was one."""
    removed = session.execute(
        delete(FolderMemberRow)
        .filter_by(folder_id=folder_id, member_id=member_id)
        .returning(FolderMemberRow.member_id)
    )
    return removed.one_or_none() is not None
