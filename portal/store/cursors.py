"""Where a page of a list ended, as an opaque word that goes into an address."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy import Row, Select, tuple_
from sqlalchemy.orm import InstrumentedAttribute, Session

from portal.errors import MalformedRequest

Key = TypeVar("Key")
Item = TypeVar("Item")


def make_cursor(key: str, row_id: UUID) -> str:
    """The place after the row with this sort key and id."""
    plain = json.dumps([key, str(row_id)], ensure_ascii=False)
    return base64.urlsafe_b64encode(plain.encode()).decode().rstrip("=")


def read_cursor(cursor: str, parse: Callable[[str], Key]) -> tuple[Key, UUID]:
    """The place that `make_cursor` noted. Raises MalformedRequest."""
    try:
        plain = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
        parts: Any = json.loads(plain)
        key, row_id = parts
        # Neither a NUL nor half a character can be sent to PostgreSQL.
        if b"\0" in str(key).encode():
            raise ValueError
        return parse(str(key)), UUID(row_id)
    except (ValueError, TypeError, AttributeError, RecursionError, binascii.Error) as error:
        raise MalformedRequest(reason="invalid cursor") from error


def latest_first(
    session: Session,
    statement: Select[Any],
    at: InstrumentedAttribute[datetime] | InstrumentedAttribute[datetime | None],
    row_id: InstrumentedAttribute[UUID],
    *,
    cursor: str | None,
    limit: int,
    to_item: Callable[[Row[Any]], Item],
    place: Callable[[Item], tuple[datetime, UUID]],
) -> tuple[tuple[Item, ...], str | None]:
    """A page of what a statement finds, by `at` and `row_id` from the latest on, and the cursor of
    the next one; `place` has an item's values of both. Raises MalformedRequest on a bad cursor."""
    if cursor:
        statement = statement.where(
            tuple_(at, row_id) < read_cursor(cursor, datetime.fromisoformat)
        )
    rows = session.execute(statement.order_by(at.desc(), row_id.desc()).limit(limit + 1)).all()
    items = tuple(to_item(row) for row in rows[:limit])
    if len(rows) <= limit:
        return items, None
    last_at, last_id = place(items[-1])
    return items, make_cursor(last_at.isoformat(), last_id)
