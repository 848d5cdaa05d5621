"""Lists of documents: sorted, filtered, and in keyset pages."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, Select, and_, case, func, literal, or_, select, tuple_
from sqlalchemy.orm import InstrumentedAttribute, Session

from portal.domain.documents import DocumentFilter, DocumentSort, DocumentSummary, MediaType
from portal.domain.paging import CountedPage
from portal.domain.people import User
from portal.store.cursors import latest_first, make_sorted_cursor, read_sorted_cursor
from portal.store.documents.folders import ids_below, ids_filed_for
from portal.store.documents.rows import shown_to, to_summary
from portal.store.documents.selection import listed_for
from portal.store.models import DocumentRow, UserRow


class _Key(NamedTuple):
    """The sort key of a list, and how to read it from the text in a cursor."""

    column: ColumnElement[Any] | InstrumentedAttribute[Any]
    read: Callable[[str], ColumnElement[Any]] = literal


def _number(text: str) -> ColumnElement[int]:
    fits = text.isascii() and text.isdecimal() and len(text) < 19  # noqa: PLR2004 - into 64 bits
    return literal(int(text) if fits else 0)


_KEYS: Mapping[str, _Key] = {
    "title": _Key(DocumentRow.title_order, func.natural_order),
    "size": _Key(DocumentRow.size_bytes, _number),
    "type": _Key(
        case(
            {media_type.value: media_type.short for media_type in MediaType},
            value=DocumentRow.media_type,
        )
    ),
    "status": _Key(DocumentRow.status),
    "owner": _Key(func.lower(func.coalesce(UserRow.name, ""))),
}
_UNSORTED = _Key(literal(""))


def list_documents(
    session: Session,
    user: User,
    *,
    filters: DocumentFilter,
    sort: DocumentSort = DocumentSort.NEWEST,
    cursor: str | None,
    limit: int,
) -> CountedPage[DocumentSummary]:
    """Return documents visible to the user; equal ones newest first. Raises MalformedRequest on a
    bad cursor."""
    key = _KEYS.get(sort.key, _UNSORTED)
    # Sorted without the columns that are shown: without an index in this order, all matches are.
    columns = (DocumentRow.id, DocumentRow.created_at, key.column.label("sort_key"))
    found = _filter(select(*columns).where(listed_for(user)), user, filters)
    if sort.key == "owner":
        found = found.outerjoin(UserRow, UserRow.id == DocumentRow.owner_id)
    total = session.scalar(select(func.count()).select_from(found.subquery())) or 0
    if cursor:
        found = _begin_after(found, sort, key, read_sorted_cursor(sort, cursor))
    page = found.order_by(*_order(sort, *columns)).limit(limit + 1).cte("page")
    rows = session.execute(
        shown_to(user)
        .add_columns(page.c.sort_key)
        .where(DocumentRow.id == page.c.id)
        .order_by(*_order(sort, *page.c))
    ).all()
    items = tuple(to_summary(row) for row in rows[:limit])
    next_cursor = None
    if len(rows) > limit:
        last = items[-1]
        # The sort key of a title can be too long for a cursor.
        last_key = last.title if sort.key == "title" else str(rows[limit - 1].sort_key)
        next_cursor = make_sorted_cursor(sort, last_key, last.created_at, last.id)
    return CountedPage(items=items, next_cursor=next_cursor, total_count=total)


def _order(
    sort: DocumentSort, document_id: Any, created_at: Any, sort_key: Any
) -> tuple[ColumnElement[Any], ...]:
    if sort.key in _KEYS:
        key = sort_key.desc() if sort.is_descending else sort_key.asc()
        return (key, created_at.desc(), document_id.desc())
    newest = (created_at, document_id)
    return tuple(one.desc() if sort.is_descending else one.asc() for one in newest)


def _begin_after(
    statement: Select[Any], sort: DocumentSort, key: _Key, place: tuple[str, datetime, Any]
) -> Select[Any]:
    """Begin after a place in the order."""
    newest = tuple_(DocumentRow.created_at, DocumentRow.id)
    at_place = tuple_(literal(place[1]), literal(place[2]))
    if key is _UNSORTED:
        return statement.where(newest < at_place if sort.is_descending else newest > at_place)
    at = key.read(place[0])
    # The first condition is implied by the second, and can be answered by an index.
    is_at_or_after, is_after = (
        (key.column <= at, key.column < at)
        if sort.is_descending
        else (key.column >= at, key.column > at)
    )
    return statement.where(is_at_or_after, or_(is_after, and_(key.column == at, newest < at_place)))


def list_trash(
    session: Session,
    user: User,
    *,
    filters: DocumentFilter | None = None,
    cursor: str | None = None,
    limit: int = 50,
) -> CountedPage[DocumentSummary]:
    """Return documents in the user's trash, which the user may restore, last deleted first. Raises
    MalformedRequest on a bad cursor."""
    statement = _filter(shown_to(user, deleted=True), user, filters or DocumentFilter())
    total = session.scalar(select(func.count()).select_from(statement.subquery())) or 0
    page = latest_first(
        session,
        statement,
        DocumentRow.deleted_at,
        DocumentRow.id,
        cursor=cursor,
        limit=limit,
        to_item=to_summary,
        place=lambda one: (one.deleted_at or one.created_at, one.id),
    )
    return CountedPage(page.items, page.next_cursor, total)


def matching(
    user: User, filters: DocumentFilter, *, ids: Collection[UUID] | None, deleted: bool = False
) -> Select[Any]:
    """Select visible documents with these ids, or, without ids, all that match the filters. With
    `deleted`, select from the user's trash."""
    statement = shown_to(user, deleted=deleted)
    if ids is not None:
        return statement.where(DocumentRow.id.in_(ids))
    return _filter(statement, user, filters)


def _filter(statement: Select[Any], user: User, filters: DocumentFilter) -> Select[Any]:
    for column, value in (
        (DocumentRow.status, filters.status),
        (DocumentRow.media_type, filters.media_type),
        (DocumentRow.domain, filters.domain),
        (DocumentRow.visibility, filters.visibility),
        (DocumentRow.owner_id, filters.owner_id),
    ):
        if value:
            statement = statement.where(column == value)
    if filters.tag:
        statement = statement.where(DocumentRow.tags.contains([filters.tag]))
    if filters.folder_id:
        below = ids_below(filters.folder_id)
        statement = statement.where(DocumentRow.folder_id.in_(select(below.c.id)))
    if filters.is_unfiled:
        filed = ids_filed_for(user)
        is_filed = select(filed.c.id).where(filed.c.id == DocumentRow.folder_id)
        statement = statement.where(~is_filed.correlate(DocumentRow).exists())
    if filters.title_contains:
        statement = statement.where(
            DocumentRow.title.icontains(filters.title_contains, autoescape=True)
        )
    if filters.has_text:
        statement = statement.where(DocumentRow.current_job_id.is_not(None))
    return statement


def list_types(session: Session, user: User) -> set[MediaType]:
    """Return the types of documents visible to the user."""
    of_type = DocumentRow.media_type
    # From each type to the next in the index: grouping would read all documents.
    one = select(of_type.label("value")).where(listed_for(user)).order_by(of_type).limit(1)
    found = one.cte("found", recursive=True)
    following = one.where(of_type > found.c.value).correlate(found).scalar_subquery()
    found = found.union_all(select(following).where(found.c.value.is_not(None)))
    values = session.scalars(select(found.c.value).where(found.c.value.is_not(None)))
    return {MediaType(value) for value in values}


def list_domains(session: Session, user: User) -> list[str]:
    """Return the domains of documents visible to the user, sorted."""
    used = select(DocumentRow.domain).where(listed_for(user), DocumentRow.domain.is_not(None))
    return list(session.scalars(used.distinct().order_by(DocumentRow.domain)))


def list_owners(session: Session, user: User) -> list[tuple[Any, str]]:
    """Return id and name of the owners of documents visible to the user, by name."""
    owners = select(DocumentRow.owner_id).where(listed_for(user)).distinct()
    statement = select(UserRow.id, UserRow.name).where(UserRow.id.in_(owners))
    return [(row.id, row.name) for row in session.execute(statement.order_by(UserRow.name))]


def list_tags(session: Session, user: User) -> list[tuple[str, int]]:
    """Return the tags of documents visible to the user, each with its number of documents, by
    name."""
    used = (
        select(func.unnest(DocumentRow.tags).label("tag"))
        .where(listed_for(user), DocumentRow.tags != [])
        .subquery()
    )
    statement = select(used.c.tag, func.count()).group_by(used.c.tag)
    rows = session.execute(statement.order_by(func.lower(used.c.tag), used.c.tag))
    return [(row[0], row[1]) for row in rows]
