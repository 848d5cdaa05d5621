"""The tree of folders, of which each user sees a part.

A shared folder is visible to all users, a members-only folder to its members, a private one to its
owner and administrators. Everything below a members-only folder is only for its members. A folder
whose parent is hidden from a user is at the top for that user. Writers share one lock, so that two
moves cannot make a cycle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any
from uuid import UUID

from sqlalchemy import (
    CTE,
    ColumnElement,
    Select,
    and_,
    delete,
    func,
    literal,
    or_,
    select,
    text,
    true,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, TEXT
from sqlalchemy.orm import Session, aliased

from portal.domain import locks
from portal.domain.documents import Visibility
from portal.domain.documents.folders import (
    MAX_DEPTH,
    Folder,
    FolderPath,
    FolderRole,
    FolderVisibility,
)
from portal.domain.people import User
from portal.store.documents.selection import (
    MAX_COMPOSED,
    editable_by,
    gates_of,
    listed_for,
    passes_gate,
)
from portal.store.models import DocumentRow, FolderMemberRow, FolderRow, UserRow

MAX_LISTED = 2000


def folder_visible_to(user: User, folder: Any = FolderRow) -> ColumnElement[bool]:
    """Return the condition that a user may know that a folder exists."""
    if user.is_admin:
        return true()
    is_open = and_(folder.visibility != Visibility.PRIVATE.value, passes_gate(user, folder))
    return or_(is_open, folder.owner_id == user.id)


def may_add(user: User) -> ColumnElement[bool]:
    """Return the condition that a user may add to a visible folder."""
    if user.is_admin:
        return true()
    gates = gates_of(user, FolderRole.CONTRIBUTOR, FolderRole.KEEPER)
    return or_(FolderRow.gate_id.is_(None), FolderRow.gate_id.in_(gates))


def ids_below(*folder_ids: UUID) -> CTE:
    """Return the ids of these folders and of all below them, visible or not."""
    tree = select(FolderRow.id).where(FolderRow.id.in_(folder_ids)).cte("below", recursive=True)
    return tree.union(select(FolderRow.id).where(FolderRow.parent_id == tree.c.id))


def ids_filed_for(user: User) -> CTE:
    """Return the ids of folders that are visible or below a visible one."""
    tree = select(FolderRow.id).where(folder_visible_to(user)).cte("filed", recursive=True)
    return tree.union(select(FolderRow.id).where(FolderRow.parent_id == tree.c.id))


def _ids_above(folder_id: UUID) -> CTE:
    """Return the ids of a folder and of those above it, with their distance."""
    chain = (
        select(FolderRow.id, FolderRow.parent_id, literal(0).label("distance"))
        .where(FolderRow.id == folder_id)
        .cte("above", recursive=True)
    )
    up = select(FolderRow.id, FolderRow.parent_id, chain.c.distance + 1)
    # Limited, so that even a cycle in the table would end.
    return chain.union_all(
        up.where(FolderRow.id == chain.c.parent_id, chain.c.distance <= MAX_DEPTH)
    )


@lru_cache(maxsize=MAX_COMPOSED)
def _folders(user: User) -> Select[Any]:
    parent, child = aliased(FolderRow), aliased(FolderRow)
    has_folders = (
        select(child.id)
        .where(child.parent_id == FolderRow.id, folder_visible_to(user, child))
        .correlate(FolderRow)
        .exists()
    )
    owner_name = func.coalesce(UserRow.name, "")
    columns: tuple[Any, ...] = (FolderRow, parent.id, owner_name, has_folders, may_add(user))
    return (
        select(*columns)
        .select_from(FolderRow)
        .outerjoin(parent, and_(parent.id == FolderRow.parent_id, folder_visible_to(user, parent)))
        .outerjoin(UserRow, UserRow.id == FolderRow.owner_id)
        .where(folder_visible_to(user))
    )


def _to_folder(row: Any, *, can_edit: bool = False, can_share: bool = False) -> Folder:
    folder, parent_id, owner_name, has_folders, can_add = row
    return Folder(
        id=folder.id,
        parent_id=parent_id,
        name=folder.name,
        description=folder.description,
        visibility=FolderVisibility(folder.visibility),
        gate_id=folder.gate_id,
        owner_name=owner_name,
        can_add=can_add,
        can_edit=can_edit,
        can_share=can_share,
        has_folders=has_folders,
    )


def find_folder(session: Session, user: User, folder_id: UUID) -> Folder | None:
    """Return a folder visible to the user, and what the user may do with it."""
    row = session.execute(_folders(user).where(FolderRow.id == folder_id)).one_or_none()
    if row is None:
        return None
    can_edit, can_share = _rights(session, user, row[0], row[4])
    return _to_folder(row, can_edit=can_edit, can_share=can_share)


def _rights(session: Session, user: User, folder: FolderRow, can_add: bool) -> tuple[bool, bool]:
    """Return whether a user may change a visible folder, and whether they may change who sees it.
    Owners of a folder above may change it too, unless there is a gate in between. Only keepers and
    administrators may change who passes a gate."""
    kept = literal(folder.gate_id).in_(gates_of(user, FolderRole.KEEPER))
    if user.is_admin or (folder.gate_id and session.scalar(select(kept))):
        return True, True
    chain = _ids_above(folder.id)
    owned = select(FolderRow.id).where(
        FolderRow.id.in_(select(chain.c.id)),
        FolderRow.owner_id == user.id,
        FolderRow.gate_id.is_not_distinct_from(folder.gate_id),
    )
    can_edit = can_add and session.scalar(owned.limit(1)) is not None
    return can_edit, can_edit and folder.gate_id is None


def list_above(session: Session, user: User, folder_id: UUID) -> tuple[Folder, ...]:
    """Return the folders above one, from the top, as far as the user sees them without a gap."""
    chain = _ids_above(folder_id)
    rows = session.execute(
        _folders(user)
        .add_columns(chain.c.distance)
        .join(chain, chain.c.id == FolderRow.id)
        .where(chain.c.distance > 0)
        .order_by(chain.c.distance)
    ).all()
    seen = [row for place, row in enumerate(rows, 1) if row.distance == place]
    return tuple(_to_folder(row[:5]) for row in reversed(seen))


def _is_at_top(user: User) -> ColumnElement[bool]:
    """Return the condition that the user does not see the parent of a folder."""
    parent = aliased(FolderRow)
    seen = select(parent.id).where(
        parent.id == FolderRow.parent_id, folder_visible_to(user, parent)
    )
    return ~seen.correlate(FolderRow).exists()


def list_children(session: Session, user: User, parent_ids: Sequence[UUID | None]) -> list[Folder]:
    """Return the direct children of folders, by name; None is the top."""
    named = FolderRow.parent_id.in_(
        [parent_id for parent_id in parent_ids if parent_id is not None]
    )
    is_in_one = or_(named, _is_at_top(user)) if None in parent_ids else named
    statement = _folders(user).where(is_in_one)
    ordered = statement.order_by(FolderRow.name_order, FolderRow.id).limit(MAX_LISTED)
    return [_to_folder(row) for row in session.execute(ordered)]


def list_paths(session: Session, user: User) -> list[FolderPath]:
    """Return the paths of folders visible to the user, in order."""
    return _list_paths(session, user, lambda _: true())


def list_paths_to_add(
    session: Session, user: User, *, also: UUID | None = None
) -> list[FolderPath]:
    """Return the paths of folders that the user may add to, in order, and that of the folder
    `also`."""
    return _list_paths(session, user, lambda tree: or_(tree.c.may_add, tree.c.id == also))


def _list_paths(
    session: Session, user: User, condition: Callable[[CTE], ColumnElement[bool]]
) -> list[FolderPath]:
    none = literal([], ARRAY(TEXT))
    names = func.array_append(none, FolderRow.name).label("names")
    place = func.array_append(none, FolderRow.name_order).label("place")
    tree = (
        select(FolderRow.id, names, place, may_add(user).label("may_add"))
        .where(folder_visible_to(user), _is_at_top(user))
        .cte("paths", recursive=True)
    )
    tree = tree.union_all(
        select(
            FolderRow.id,
            func.array_append(tree.c.names, FolderRow.name),
            func.array_append(tree.c.place, FolderRow.name_order),
            may_add(user),
        ).where(FolderRow.parent_id == tree.c.id, folder_visible_to(user))
    )
    rows = session.execute(
        select(tree.c.id, tree.c.names)
        .where(condition(tree))
        .order_by(tree.c.place, tree.c.id)
        .limit(MAX_LISTED)
    )
    return [FolderPath(row.id, tuple(row.names)) for row in rows]


def count_documents(session: Session, user: User, folder_id: UUID) -> int:
    """Return how many documents visible to the user are in a folder or below it."""
    below = select(ids_below(folder_id).c.id)
    listed = select(func.count()).where(listed_for(user), DocumentRow.folder_id.in_(below))
    return session.scalar(listed) or 0


# --- writing --------------------------------------------------------------------------------------


def lock_tree(session: Session) -> None:
    """Let one transaction at a time change the tree."""
    session.execute(select(func.pg_advisory_xact_lock(locks.FOLDERS)))


def hold(session: Session, folder_id: UUID | None) -> UUID | None:
    """Lock a folder against changes until the transaction ends; None if it was deleted. Call it
    before documents are locked, in the lock order of changes of folders."""
    if folder_id is None:
        return None
    held = select(FolderRow.id).where(FolderRow.id == folder_id)
    return session.scalar(held.with_for_update(read=True))


def lock_below(session: Session, folder_id: UUID) -> None:
    """Lock a folder and all below it, so that no documents are moved there."""
    ids = select(ids_below(folder_id).c.id)
    session.execute(
        select(FolderRow.id).where(FolderRow.id.in_(ids)).order_by(FolderRow.id).with_for_update()
    )


def get_row(session: Session, folder_id: UUID) -> FolderRow | None:
    return session.get(FolderRow, folder_id)


def depth_of(session: Session, folder_id: UUID) -> int:
    """Return how many folders there are from the top to this one, itself included."""
    return session.scalar(select(func.count()).select_from(_ids_above(folder_id))) or 0


def height_of(session: Session, folder_id: UUID) -> int:
    """Return how many levels a folder has, itself included."""
    tree = (
        select(FolderRow.id, literal(1).label("level"))
        .where(FolderRow.id == folder_id)
        .cte("levels", recursive=True)
    )
    tree = tree.union_all(
        select(FolderRow.id, tree.c.level + 1).where(FolderRow.parent_id == tree.c.id)
    )
    return session.scalar(select(func.max(tree.c.level))) or 0


def is_below(session: Session, folder_id: UUID, other_id: UUID) -> bool:
    """Return whether a folder is `other_id` or below it."""
    chain = _ids_above(folder_id)
    return session.scalar(select(chain.c.id).where(chain.c.id == other_id)) is not None


def find_named(
    session: Session,
    user: User,
    parent_id: UUID | None,
    name: str,
    *,
    visibility: str,
    owner_id: UUID | None,
    other_than: UUID | None = None,
) -> UUID | None:
    """Return the folder with this name in a parent, among the owner's private folders or, for other
    visibilities, the other folders that the user sees. Names of hidden folders count as free, since
    a refusal would reveal that they exist."""
    is_private = FolderRow.visibility == Visibility.PRIVATE.value
    if visibility == Visibility.PRIVATE:
        is_alike = and_(is_private, FolderRow.owner_id == owner_id)
    else:
        is_alike = and_(~is_private, folder_visible_to(user))
    return session.scalar(
        select(FolderRow.id)
        .where(
            FolderRow.parent_id.is_not_distinct_from(parent_id),
            func.lower(FolderRow.name) == func.lower(name),
            FolderRow.id.is_distinct_from(other_than),
            is_alike,
        )
        .order_by(FolderRow.created_at, FolderRow.id)
        .limit(1)
    )


def add_folder(session: Session, row: FolderRow) -> UUID:
    session.add(row)
    session.flush()
    return row.id


def trash_documents(session: Session, user: User, folder_id: UUID) -> int:
    """Move to the trash the documents in a folder and below that the user may change; return how
    many."""
    below = ids_below(folder_id)
    trashed = session.execute(
        update(DocumentRow)
        .where(
            DocumentRow.folder_id.in_(select(below.c.id)),
            DocumentRow.deleted_at.is_(None),
            editable_by(user),
        )
        .values(deleted_at=func.now(), updated_at=func.now())
        .returning(DocumentRow.id)
        .execution_options(synchronize_session=False)
    )
    return len(trashed.all())


def close_trash(session: Session, folder_id: UUID) -> list[tuple[UUID, str]]:
    """Make private the trashed documents behind a gate at or below a folder that will be deleted;
    return their ids and titles. Otherwise they would be open to more users once restored."""
    below = ids_below(folder_id)
    is_behind = DocumentRow.gate_id.in_(select(below.c.id))
    closed = session.execute(
        update(DocumentRow)
        .where(
            is_behind,
            DocumentRow.deleted_at.is_not(None),
            DocumentRow.visibility == Visibility.SHARED.value,
        )
        .values(visibility=Visibility.PRIVATE.value)
        .returning(DocumentRow.id, DocumentRow.title)
        .execution_options(synchronize_session=False)
    )
    return [(id_, title) for id_, title in closed]


def remove_folder(session: Session, folder_id: UUID, *, into: UUID | None) -> None:
    """Delete a folder and all below it; their documents move `into` another, or out of all
    folders."""
    below = ids_below(folder_id)
    session.execute(
        update(DocumentRow)
        .where(DocumentRow.folder_id.in_(select(below.c.id)))
        .values(folder_id=into)
        .execution_options(synchronize_session=False)
    )
    session.execute(
        delete(FolderRow)
        .where(FolderRow.id.in_(select(ids_below(folder_id).c.id)))
        .execution_options(synchronize_session=False)
    )


def keep_gates(session: Session, user: User, folder_id: UUID, *, into: UUID | None) -> None:
    """Move members-only folders below a folder out of it, unless the user is one of their keepers
    and so may open them to others."""
    if user.is_admin:
        return
    below = ids_below(folder_id)
    session.execute(
        update(FolderRow)
        .where(
            FolderRow.id.in_(select(below.c.id)),
            FolderRow.id != folder_id,
            FolderRow.visibility == FolderVisibility.MEMBERS.value,
            FolderRow.id.not_in(gates_of(user, FolderRole.KEEPER)),
        )
        .values(parent_id=into)
        .execution_options(synchronize_session=False)
    )


def hand_over(session: Session, owner_id: UUID, new_owner_id: UUID) -> None:
    """Give a user's folders to another user, who is removed from their members."""
    owned = select(FolderRow.id).where(FolderRow.owner_id == owner_id)
    session.execute(
        delete(FolderMemberRow).where(
            FolderMemberRow.user_id == new_owner_id, FolderMemberRow.folder_id.in_(owned)
        )
    )
    session.execute(
        update(FolderRow).where(FolderRow.owner_id == owner_id).values(owner_id=new_owner_id)
    )


# The contents of a user's private folders move to the nearest folder above that stays.
_GONE = """
    WITH RECURSIVE gone AS (
        SELECT id, parent_id FROM folders WHERE owner_id = :owner_id AND visibility = 'private'
    ), above AS (
        SELECT id, parent_id FROM gone
        UNION ALL
        SELECT above.id, gone.parent_id FROM above JOIN gone ON gone.id = above.parent_id
    ), place AS (
        SELECT id, parent_id FROM above
        WHERE parent_id IS NULL OR parent_id NOT IN (SELECT id FROM gone)
    )
"""
_REMOVE_PRIVATE = (
    text(
        f"""{_GONE} UPDATE folders f SET parent_id = place.parent_id FROM place
        WHERE f.parent_id = place.id AND f.id NOT IN (SELECT id FROM gone)"""
    ),
    text(
        f"""{_GONE} UPDATE documents d SET folder_id = place.parent_id FROM place
        WHERE d.folder_id = place.id"""
    ),
    text("DELETE FROM folders WHERE owner_id = :owner_id AND visibility = 'private'"),
)


def remove_private(session: Session, owner_id: UUID) -> None:
    """Delete a user's private folders; other folders and documents in them move up."""
    for statement in _REMOVE_PRIVATE:
        session.execute(statement, {"owner_id": owner_id})
