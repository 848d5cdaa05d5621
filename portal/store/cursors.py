"""Pagination cursors: the place where a page of a list ended, as an opaque token for URLs."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy import ColumnElement as Column
from sqlalchemy import Select, tuple_
from sqlalchemy.orm import InstrumentedAttribute, Session

from portal.domain.paging import ListPage
from portal.errors import MalformedRequest

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIME_CURSOR = re.compile(r"([0-9]{1,17})[.]([0-9a-f]{32})")
_TEXT_CURSOR = re.compile(r"([A-Za-z0-9_-]{0,1900})[.]([0-9a-f]{32})")

Item = TypeVar("Item")


def make_time_cursor(at: datetime, row_id: UUID) -> str:
    """Return the cursor after the row with this time and id. Every text of this shape is a valid
    cursor."""
    return f"{(at - _EPOCH) // timedelta(microseconds=1)}.{row_id.hex}"


def make_text_cursor(key: str, row_id: UUID) -> str:
    """Return the cursor after the row with this sort key and id. Every text of this shape is a
    valid cursor."""
    return f"{base64.urlsafe_b64encode(key.encode()).decode().rstrip('=')}.{row_id.hex}"


def read_time_cursor(cursor: str) -> tuple[datetime, UUID]:
    """Return the time and id of a cursor of `make_time_cursor`. Raises MalformedRequest."""
    found = _TIME_CURSOR.fullmatch(cursor)
    if found is None:
        raise MalformedRequest("invalid cursor")
    return _EPOCH + timedelta(microseconds=int(found[1])), UUID(found[2])


def read_text_cursor(cursor: str) -> tuple[str, UUID]:
    """Return the sort key and id of a cursor of `make_text_cursor`. Raises MalformedRequest."""
    found = _TEXT_CURSOR.fullmatch(cursor)
    if found is None:
        raise MalformedRequest("invalid cursor")
    # A remainder of one base64 character encodes no whole byte.
    encoded = found[1] if len(found[1]) % 4 != 1 else found[1][:-1]
    key = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode(errors="replace")
    return key.replace("\0", ""), UUID(found[2])


_LATEST = (datetime(9999, 1, 1, tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)


def make_sorted_cursor(order: str, key: str, at: datetime, row_id: UUID) -> str:
    """Return the cursor after the row with this sort key, time and id in a list of this order."""
    microseconds = (at - _EPOCH) // timedelta(microseconds=1)
    return make_text_cursor(f"{order}\x1f{key}\x1f{microseconds}", row_id)


def read_sorted_cursor(order: str, cursor: str) -> tuple[str, datetime, UUID]:
    """Return sort key, time and id of a cursor of `make_sorted_cursor`. Raises MalformedRequest,
    also for a cursor of another order: the list would continue at a wrong place."""
    text, row_id = read_text_cursor(cursor)
    found, _, place = text.partition("\x1f")
    if found != order:
        raise MalformedRequest("invalid cursor")
    key, _, number = place.rpartition("\x1f")
    microseconds = int(number) if re.fullmatch("[0-9]{1,18}", number) else 0
    return key, _EPOCH + timedelta(microseconds=min(microseconds, _LATEST)), row_id


def latest_first(
    session: Session,
    statement: Select[Any],
    at: InstrumentedAttribute[datetime] | InstrumentedAttribute[datetime | None] | Column[Any],
    row_id: InstrumentedAttribute[UUID] | Column[Any],
    *,
    cursor: str | None,
    limit: int,
    to_item: Callable[[Any], Item],
    place: Callable[[Item], tuple[datetime, UUID]],
) -> ListPage[Item]:
    """Return a page of a statement's rows, in descending order of `at` and `row_id`; `place`
    returns both values of an item. Raises MalformedRequest on a bad cursor."""
    if cursor:
        statement = statement.where(tuple_(at, row_id) < read_time_cursor(cursor))
    rows = session.execute(statement.order_by(at.desc(), row_id.desc()).limit(limit + 1)).all()
    items = tuple(to_item(row) for row in rows[:limit])
    if len(rows) <= limit:
        return ListPage(items, None)
    last_at, last_id = place(items[-1])
    return ListPage(items, make_time_cursor(last_at, last_id))
