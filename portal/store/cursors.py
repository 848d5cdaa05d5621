"""Where a page of a list ended, as an opaque word that goes into an address."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable
from typing import Any, TypeVar
from uuid import UUID

from portal.errors import MalformedRequest

Key = TypeVar("Key")


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
        raise MalformedRequest(reason="the cursor is not one of ours") from error
