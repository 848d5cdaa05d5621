"""Rows of a store in the database."""

from __future__ import annotations

from typing import Any

from sqlalchemy import text

from portal.store.session import Database


def _rows(database: Database, statement: str, **binds: Any) -> list[Any]:
    with database.begin() as session:
        return list(session.execute(text(statement), binds))
