"""`dynamic_config`: settings that administrators change at runtime."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import delete as delete_rows
from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from portal.store.models import DynamicConfigRow


def read_all(session: Session) -> dict[str, Any]:
    """Return every stored value; missing ones have their default in the code."""
    rows = session.execute(select(DynamicConfigRow.key, DynamicConfigRow.value))
    return {row.key: row.value for row in rows}


def write(session: Session, *, key: str, value: Any, updated_by: UUID | None) -> None:
    statement = insert(DynamicConfigRow).values(key=key, value=value, updated_by=updated_by)
    session.execute(
        statement.on_conflict_do_update(
            index_elements=[DynamicConfigRow.key],
            set_={"value": value, "updated_by": updated_by, "updated_at": func.now()},
        )
    )


def delete(session: Session, *, key: str) -> None:
    session.execute(delete_rows(DynamicConfigRow).where(DynamicConfigRow.key == key))
