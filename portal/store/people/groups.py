"""Groups of users, read and written."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import Select, delete, func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from portal.domain.people.groups import Group
from portal.errors import NameTaken
from portal.store.models import FolderMemberRow, FolderRow, GroupMemberRow, GroupRow, UserRow

_MEMBER_COUNT = (
    select(func.count())
    .select_from(GroupMemberRow)
    .where(GroupMemberRow.group_id == GroupRow.id)
    .correlate(GroupRow)
    .scalar_subquery()
)


def _groups() -> Select[Any]:
    return select(GroupRow.id, GroupRow.name, GroupRow.description, _MEMBER_COUNT)


def list_groups(session: Session) -> list[Group]:
    """Return all groups by name."""
    rows = session.execute(_groups().order_by(func.lower(GroupRow.name), GroupRow.id))
    return [Group(*row) for row in rows]


def find_group(session: Session, group_id: UUID) -> Group | None:
    row = session.execute(_groups().where(GroupRow.id == group_id)).one_or_none()
    return Group(*row) if row is not None else None


def find_id(session: Session, name: str) -> UUID | None:
    """Return the id of a group by name, ignoring case."""
    return session.scalar(select(GroupRow.id).where(func.lower(GroupRow.name) == func.lower(name)))


def list_members(session: Session, group_id: UUID) -> list[tuple[UUID, str]]:
    rows = session.execute(
        select(UserRow.id, UserRow.name)
        .join(GroupMemberRow, GroupMemberRow.user_id == UserRow.id)
        .where(GroupMemberRow.group_id == group_id)
        .order_by(func.lower(UserRow.name), UserRow.id)
    )
    return [(row.id, row.name) for row in rows]


def list_folders(session: Session, group_id: UUID) -> list[tuple[UUID, str]]:
    """Return the folders that a group is a member of, by name."""
    rows = session.execute(
        select(FolderRow.id, FolderRow.name)
        .join(FolderMemberRow, FolderMemberRow.folder_id == FolderRow.id)
        .where(FolderMemberRow.group_id == group_id)
        .order_by(func.lower(FolderRow.name), FolderRow.id)
    )
    return [(row.id, row.name) for row in rows]


# --- writing --------------------------------------------------------------------------------------


def lock_group(session: Session, group_id: UUID) -> GroupRow | None:
    return session.get(GroupRow, group_id, with_for_update=True, populate_existing=True)


def write_group(session: Session, row: GroupRow, *, name: str, description: str) -> UUID:
    """Add or change a group. Raises NameTaken; case is ignored."""
    try:
        with session.begin_nested():
            row.name, row.description = name, description
            session.add(row)
    except IntegrityError as error:
        raise NameTaken(name=name) from error
    return row.id


def delete_group(session: Session, group_id: UUID) -> None:
    session.execute(delete(GroupRow).where(GroupRow.id == group_id))


def add_member(session: Session, group_id: UUID, user_id: UUID) -> None:
    row = insert(GroupMemberRow).values(group_id=group_id, user_id=user_id)
    session.execute(row.on_conflict_do_nothing())


def remove_member(session: Session, group_id: UUID, user_id: UUID) -> bool:
    """Remove a member; return whether the user was one."""
    removed = session.execute(
        delete(GroupMemberRow)
        .filter_by(group_id=group_id, user_id=user_id)
        .returning(GroupMemberRow.user_id)
    )
    return removed.one_or_none() is not None
