"""Rows of accounts, as tests look at them."""

from __future__ import annotations

from sqlalchemy import text

from tests.conftest import Portal


def rows(portal: Portal, statement: str, **values: object) -> list[tuple[object, ...]]:
    with portal.services.database.begin() as session:
        return [tuple(row) for row in session.execute(text(statement), values)]
