"""Groups of users, managed by administrators. Only `list_groups` is open to all."""

from __future__ import annotations

from uuid import UUID

from portal.domain.people import User, require_admin
from portal.domain.people.groups import MAX_GROUP_NAME_CHARACTERS, OpenedGroup
from portal.errors import NotFound, existing
from portal.services import Services, audit
from portal.services.audit import AuditEvent, Subject, SubjectKind
from portal.services.people.accounts import normalise_name
from portal.services.transactions import in_transaction
from portal.store.models import GroupRow
from portal.store.people import accounts as account_store
from portal.store.people import groups as group_store
from portal.store.session import Session
from portal.text.titles import check_description, check_name

list_groups = in_transaction(group_store.list_groups)


def get_group(services: Services, user: User, group_id: UUID) -> OpenedGroup:
    """Return a group with its members and folders. Raises NotFound."""
    require_admin(user)
    with services.database.begin() as session:
        return OpenedGroup(
            existing(group_store.find_group(session, group_id)),
            tuple(group_store.list_members(session, group_id)),
            tuple(group_store.list_folders(session, group_id)),
        )


def create_group(services: Services, user: User, *, name: str, description: str = "") -> UUID:
    """Create a group without members. Raises InvalidInput, NameTaken."""
    require_admin(user)
    name = check_name(name, max_characters=MAX_GROUP_NAME_CHARACTERS)
    description = check_description(description)
    with services.database.begin() as session:
        group_id = group_store.write_group(session, GroupRow(), name=name, description=description)
        _record(session, AuditEvent.GROUP_CREATED, user, group_id, name)
        return group_id


def change_group(
    services: Services,
    user: User,
    group_id: UUID,
    *,
    name: str | None = None,
    description: str | None = None,
) -> None:
    """Change the given fields. Raises NotFound, InvalidInput, NameTaken."""
    require_admin(user)
    with services.database.begin() as session:
        row = existing(group_store.lock_group(session, group_id))
        name = row.name if name is None else name
        group_store.write_group(
            session,
            row,
            name=check_name(name, max_characters=MAX_GROUP_NAME_CHARACTERS),
            description=row.description if description is None else check_description(description),
        )


def delete_group(services: Services, user: User, group_id: UUID) -> None:
    """Delete a group; its members lose the access that it gave them. Raises NotFound."""
    require_admin(user)
    with services.database.begin() as session:
        row = existing(group_store.lock_group(session, group_id))
        _record(session, AuditEvent.GROUP_DELETED, user, group_id, row.name)
        session.expunge(row)
        group_store.delete_group(session, group_id)


def add_member(services: Services, user: User, group_id: UUID, name: str) -> None:
    """Add a user by name. Raises NotFound, NoSuchAccount."""
    require_admin(user)
    with services.database.begin() as session:
        row = existing(group_store.lock_group(session, group_id))
        member = account_store.get_user_by_name(session, normalise_name(name))
        group_store.add_member(session, group_id, member.id)
        _record(session, AuditEvent.GROUP_CHANGED, user, group_id, row.name, added=member.name)


def remove_member(services: Services, user: User, group_id: UUID, user_id: UUID) -> None:
    """Remove a user. Raises NotFound, also if the user is not a member."""
    require_admin(user)
    with services.database.begin() as session:
        row = existing(group_store.lock_group(session, group_id))
        if not group_store.remove_member(session, group_id, user_id):
            raise NotFound
        member = account_store.get_user(session, user_id)
        removed = member.name if member else ""
        _record(session, AuditEvent.GROUP_CHANGED, user, group_id, row.name, removed=removed)


def _record(
    session: Session, event: AuditEvent, actor: User, group_id: UUID, name: str, **details: str
) -> None:
    subject = Subject(SubjectKind.GROUP, group_id, name)
    audit.record(session, event, actor, subject, **details)
