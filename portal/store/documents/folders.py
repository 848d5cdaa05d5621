"""Folders: a tree in which documents lie, of which each user sees a part.

A folder is shown to all if it is shared, else to its owner and administrators, whatever lies in
it. What hangs below a folder that a user may not see hangs, for that user, at the top. Writers
take one lock, so that no two moves make a cycle.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from portal.domain.documents.folders import MAX_DEPTH, Folder, FolderPath
from portal.domain.people import User
from portal.store.documents.selection import listed_for
from portal.store.models import CollectionRow, DocumentRow, FolderRow, UserRow

MAX_LISTED = 2000


def folder_visible_to(user: User, folder: Any = FolderRow) -> ColumnElement[bool]:
    """Return the condition that a user may know that a folder exists."""
    if user.is_admin:
        return true()
    return or_(folder.visibility == Visibility.SHARED.value, folder.owner_id == user.id)


def ids_below(*folder_ids: UUID) -> CTE:
    """Return the ids of these folders and of all below them, seen or not."""
    tree = select(FolderRow.id).where(FolderRow.id.in_(folder_ids)).cte("below", recursive=True)
    return tree.union(select(FolderRow.id).where(FolderRow.parent_id == tree.c.id))


def ids_filed_for(user: User) -> CTE:
    """Return the ids of folders that are visible or lie below a visible one."""
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
    # The limit ends the walk whatever stands in the table.
    return chain.union_all(
        up.where(FolderRow.id == chain.c.parent_id, chain.c.distance <= MAX_DEPTH)
    )


def _folders(user: User) -> Select[Any]:
    parent, child = aliased(FolderRow), aliased(FolderRow)
    has_folders = (
        select(child.id)
        .where(child.parent_id == FolderRow.id, folder_visible_to(user, child))
        .correlate(FolderRow)
        .exists()
    )
    columns: tuple[Any, ...] = (FolderRow, parent.id, func.coalesce(UserRow.name, ""), has_folders)
    return (
        select(*columns)
        .outerjoin(parent, and_(parent.id == FolderRow.parent_id, folder_visible_to(user, parent)))
        .outerjoin(UserRow, UserRow.id == FolderRow.owner_id)
        .where(folder_visible_to(user))
    )


def _to_folder(row: Any, *, can_edit: bool) -> Folder:
    folder, parent_id, owner_name, has_folders = row
    return Folder(
        id=folder.id,
        parent_id=parent_id,
        name=folder.name,
        description=folder.description,
        visibility=Visibility(folder.visibility),
        owner_name=owner_name,
        can_edit=can_edit,
        has_folders=has_folders,
    )


def find_folder(session: Session, user: User, folder_id: UUID) -> Folder | None:
    """Return a folder visible to the user; owners of a folder above may change it too."""
    row = session.execute(_folders(user).where(FolderRow.id == folder_id)).one_or_none()
    if row is None:
        return None
    chain = _ids_above(folder_id)
    owned = select(FolderRow.id).where(
        FolderRow.id.in_(select(chain.c.id)), FolderRow.owner_id == user.id
    )
    can_edit = user.is_admin or session.scalar(owned.limit(1)) is not None
    return _to_folder(row, can_edit=can_edit)


def list_above(session: Session, user: User, folder_id: UUID) -> tuple[Folder, ...]:
    """Return the folders above one as far as the user sees them without a gap, from the top."""
    chain = _ids_above(folder_id)
    rows = session.execute(
        _folders(user)
        .add_columns(chain.c.distance)
        .join(chain, chain.c.id == FolderRow.id)
        .where(chain.c.distance > 0)
        .order_by(chain.c.distance)
    ).all()
    seen = [row for place, row in enumerate(rows, 1) if row.distance == place]
    return tuple(_to_folder(row[:4], can_edit=False) for row in reversed(seen))


def list_children(session: Session, user: User, parent_ids: Sequence[UUID | None]) -> list[Folder]:
    """Return the folders right below some, None for the top, by name."""
    parent = aliased(FolderRow)
    is_top = ~(
        select(parent.id)
        .where(parent.id == FolderRow.parent_id, folder_visible_to(user, parent))
        .correlate(FolderRow)
        .exists()
    )
    named = FolderRow.parent_id.in_([one for one in parent_ids if one is not None])
    statement = _folders(user).where(or_(named, is_top) if None in parent_ids else named)
    ordered = statement.order_by(func.lower(FolderRow.name), FolderRow.id).limit(MAX_LISTED)
    return [_to_folder(row, can_edit=False) for row in session.execute(ordered)]


def list_paths(session: Session, user: User) -> list[FolderPath]:
    """Return the folders visible to the user with the names above them, by path."""
    parent = aliased(FolderRow)
    seen_parent = (
        select(parent.id)
        .where(parent.id == FolderRow.parent_id, folder_visible_to(user, parent))
        .correlate(FolderRow)
        .exists()
    )
    names = ARRAY(TEXT)
    tree = (
        select(FolderRow.id, func.array_append(literal([], names), FolderRow.name).label("names"))
        .where(folder_visible_to(user), ~seen_parent)
        .cte("paths", recursive=True)
    )
    tree = tree.union_all(
        select(FolderRow.id, func.array_append(tree.c.names, FolderRow.name)).where(
            FolderRow.parent_id == tree.c.id, folder_visible_to(user)
        )
    )
    rows = session.execute(
        select(tree.c.id, tree.c.names)
        .order_by(func.lower(func.array_to_string(tree.c.names, "\x1f")), tree.c.id)
        .limit(MAX_LISTED)
    )
    return [FolderPath(row.id, tuple(row.names)) for row in rows]


def count_documents(session: Session, user: User, folder_id: UUID) -> int:
    """Return how many documents visible to the user lie in a folder or below it."""
    below = ids_below(folder_id)
    return (
        session.scalar(
            select(func.count())
            .select_from(DocumentRow)
            .join(CollectionRow, CollectionRow.id == DocumentRow.collection_id)
            .where(listed_for(user), DocumentRow.folder_id.in_(select(below.c.id)))
        )
        or 0
    )


# --- writing --------------------------------------------------------------------------------------


def lock_tree(session: Session) -> None:
    """Let one transaction at a time change the tree."""
    session.execute(select(func.pg_advisory_xact_lock(locks.FOLDERS)))


def hold(session: Session, folder_id: UUID | None) -> UUID | None:
    """Keep a folder from being deleted until the transaction ends; None if it was deleted.

    Before documents are locked: deleting a folder locks folders first, too.
    """
    if folder_id is None:
        return None
    held = select(FolderRow.id).where(FolderRow.id == folder_id)
    return session.scalar(held.with_for_update(read=True, key_share=True))


def lock_below(session: Session, folder_id: UUID) -> None:
    """Lock a folder and all below it against documents that would be moved there."""
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
    """Tell whether a folder is `other_id` or lies below it."""
    chain = _ids_above(folder_id)
    return session.scalar(select(chain.c.id).where(chain.c.id == other_id)) is not None


def find_named(
    session: Session,
    parent_id: UUID | None,
    name: str,
    *,
    visibility: Visibility,
    owner_id: UUID | None,
    other_than: UUID | None = None,
) -> UUID | None:
    """Return the folder of this name at a place, among the shared ones or the owner's private ones.

    Names of others' private folders are not taken: that they are would tell that they exist.
    """
    is_alike = FolderRow.visibility == visibility.value
    if visibility is Visibility.PRIVATE:
        is_alike = and_(is_alike, FolderRow.owner_id == owner_id)
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


def add_folder(
    session: Session,
    *,
    parent_id: UUID | None,
    owner_id: UUID | None,
    name: str,
    description: str = "",
    visibility: Visibility,
) -> UUID:
    row = FolderRow(
        parent_id=parent_id,
        owner_id=owner_id,
        name=name,
        description=description,
        visibility=visibility.value,
    )
    session.add(row)
    session.flush()
    return row.id


def trash_documents(session: Session, user: User, folder_id: UUID) -> int:
    """Move the documents in a folder and below that the user may change to the trash."""
    below = ids_below(folder_id)
    is_own = true() if user.is_admin else DocumentRow.owner_id == user.id
    trashed = session.execute(
        update(DocumentRow)
        .where(
            DocumentRow.folder_id.in_(select(below.c.id)), DocumentRow.deleted_at.is_(None), is_own
        )
        .values(deleted_at=func.now(), updated_at=func.now())
        .returning(DocumentRow.id)
        .execution_options(synchronize_session=False)
    )
    return len(trashed.all())


def remove_folder(session: Session, folder_id: UUID, *, into: UUID | None) -> None:
    """Delete a folder and all below it; their documents move `into` another or out of folders."""
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


def hand_over(session: Session, owner_id: UUID, heir_id: UUID) -> None:
    """Give a user's folders to another."""
    session.execute(
        update(FolderRow).where(FolderRow.owner_id == owner_id).values(owner_id=heir_id)
    )


# What lies in a private folder of the user moves to the nearest folder above that stays.
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
