"""Damaged indexes and tables, found by amcheck of PostgreSQL's contrib, and the repair of indexes.

An index can be rebuilt from its table. The rows of a damaged table have to come from a backup.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError

# Each index is compared with its table: every row has its entry, every page its order.
_CHECKS = {
    "btree": "SELECT bt_index_check(CAST(:oid AS regclass), true)",
    "gin": "SELECT gin_index_check(CAST(:oid AS regclass))",
    "table": "SELECT count(*) FROM verify_heapam(CAST(:oid AS regclass))",
}
# SQLSTATEs of amcheck and the server: damaged data, a damaged index, a missing file, a file that
# cannot be read.
_DAMAGE = frozenset({"XX001", "XX002", "58P01", "58030"})
_OBJECTS = """
    SELECT c.oid, c.oid::regclass::text AS name,
           CASE c.relkind WHEN 'r' THEN 'table' ELSE am.amname END AS kind,
           coalesce(i.indrelid, c.oid) AS table_oid
      FROM pg_class c
      LEFT JOIN pg_index i ON i.indexrelid = c.oid
      LEFT JOIN pg_am am ON am.oid = c.relam
     WHERE c.relnamespace = current_schema()::regnamespace
           AND (c.relkind = 'r'
                OR (c.relkind = 'i' AND i.indisvalid AND am.amname IN ('btree', 'gin')))
     ORDER BY c.relkind DESC, name
"""


@dataclass(frozen=True)
class Checked:
    """An index or a table after its check; `is_rebuilt` if it was damaged, was rebuilt and passed
    another check."""

    name: str
    kind: str
    is_damaged: bool
    is_rebuilt: bool = False


def check(engine: Engine) -> Iterator[Checked] | None:
    """Check all indexes and tables while the portal serves, and rebuild damaged indexes. Return
    None if the server has no amcheck, or the role may not use it."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        try:
            connection.execute(text("CREATE EXTENSION IF NOT EXISTS amcheck"))
        except DBAPIError as error:
            if error.connection_invalidated:
                raise
            return None
    return _check_all(engine)


def _check_all(engine: Engine) -> Iterator[Checked]:
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        has_gin = connection.scalar(text("SELECT to_regproc('gin_index_check')")) is not None
        damaged = set()
        for oid, name, kind, table_oid in connection.execute(text(_OBJECTS)).all():
            # The indexes of a damaged table can be neither compared with it nor built from it.
            if table_oid in damaged or (kind == "gin" and not has_gin):
                continue
            is_damaged = not _is_sound(connection, oid, kind)
            if is_damaged and kind == "table":
                damaged.add(oid)
            is_rebuilt = is_damaged and kind != "table" and _rebuild(connection, name, kind)
            yield Checked(name, kind, is_damaged, is_rebuilt)


def _is_sound(connection: Connection, oid: int, kind: str) -> bool:
    try:
        found = connection.execute(text(_CHECKS[kind]), {"oid": oid}).scalar()
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) in _DAMAGE:
            return False
        # A model that was dropped meanwhile took its table with it.
        if not error.connection_invalidated and not _exists(connection, oid):
            return True
        raise
    return kind != "table" or not found


def _exists(connection: Connection, oid: int) -> bool:
    query = text("SELECT EXISTS (SELECT FROM pg_class WHERE oid = :oid)")
    return bool(connection.scalar(query, {"oid": oid}))


def _rebuild(connection: Connection, name: str, kind: str) -> bool:
    """Rebuild an index beside the old one; return whether the new one is sound."""
    try:
        # The name is quoted by the server.
        connection.execute(text(f"REINDEX INDEX CONCURRENTLY {name}"))
    except DBAPIError as error:
        if error.connection_invalidated:
            raise
        return False
    oid = connection.execute(
        text("SELECT CAST(:name AS regclass)::oid"), {"name": name}
    ).scalar_one()
    return _is_sound(connection, oid, kind)
