"""Replace a schema's contents from a dump, in one transaction."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import IO

import psycopg
from psycopg import sql

from portal.database.bm25 import indexes
from portal.domain import locks
from portal.errors import BackupRefused

_COPY = re.compile(rb"COPY .* FROM stdin;\n")
_END_OF_ROWS = b"\\.\n"
# psql commands at the beginning and end of a dump.
_OF_PSQL = (b"\\restrict ", b"\\unrestrict ")
_ROWS_AT_ONCE_BYTES = 256 * 1024
_FIRST_WITH_TRANSACTION_TIMEOUT = 170_000
# The server takes a moment to remove a session that has ended.
_TIMEOUT_S = 3.0
_ASK_AGAIN_S = 0.1
_LOCK_TIMEOUT = "20s"

# The versions that invalidate caches.
_VERSIONS = ("documents_version", "corpus_version", "selection_version")

# Objects that do not belong to an extension.
_OURS = "NOT EXISTS (SELECT FROM pg_depend WHERE objid = {0}.oid AND deptype = 'e')"


def schema_of(connection: psycopg.Connection) -> str:
    """Return the schema in which tables are created. Raises BackupRefused if the role has none."""
    row = connection.execute("SELECT current_schema()").fetchone()
    if row is None or row[0] is None:
        raise BackupRefused(
            "The database has no schema in which the portal may make tables. Create one "
            "that the role's search_path names, such as public."
        )
    return str(row[0])


def tables(connection: psycopg.Connection, schema: str) -> list[str]:
    """Return the names of tables with their own rows: partitions, not their parents."""
    return _names(connection, schema, "pg_class", "relkind = 'r'")


def count_rows(connection: psycopg.Connection, schema: str) -> dict[str, int]:
    """Count the rows of each table."""
    return {name: _count(connection, schema, name) for name in tables(connection, schema)}


def count_some(connection: psycopg.Connection, schema: str, names: Sequence[str]) -> dict[str, int]:
    """Count the rows of these tables; 0 for tables that do not exist."""
    there = set(tables(connection, schema))
    return {name: _count(connection, schema, name) if name in there else 0 for name in names}


def _count(connection: psycopg.Connection, schema: str, name: str) -> int:
    query = sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(schema, name))
    row = connection.execute(query).fetchone()
    return int(row[0]) if row else 0


def revision_of(connection: psycopg.Connection, schema: str) -> str | None:
    """Return the revision of the schema's tables; None before the first migration."""
    if "alembic_version" not in tables(connection, schema):
        return None
    query = sql.SQL("SELECT version_num FROM {}").format(sql.Identifier(schema, "alembic_version"))
    row = connection.execute(query).fetchone()
    return str(row[0]) if row else None


def refuse_others(connection: psycopg.Connection) -> None:
    """Raise BackupRefused if other programs use the database."""
    others = _other_sessions(connection)
    deadline = time.monotonic() + _TIMEOUT_S
    while others and time.monotonic() < deadline:
        time.sleep(_ASK_AGAIN_S)
        others = _other_sessions(connection)
    if others:
        named = ", ".join(sorted(set(others)))
        raise BackupRefused(
            f"The database is in use by {len(others)} other connections ({named}). Stop "
            "the portal's web processes and workers, and everything else that is connected, first."
        )


def begin(connection: psycopg.Connection, schema: str) -> None:
    """Begin the transaction. Raises BackupRefused while a migration runs."""
    if indexes.STATE_TABLE in tables(connection, schema):
        # pg_textsearch discards the state of a dropped index, and a rollback does not restore it:
        # scores would be silently wrong. Marked as stale, the index is rebuilt before it is used.
        stale = sql.SQL("UPDATE {} SET state = 'stale'")
        connection.execute(stale.format(sql.Identifier(schema, indexes.STATE_TABLE)))
    connection.commit()
    connection.execute(f"SET LOCAL lock_timeout = '{_LOCK_TIMEOUT}'")
    row = connection.execute("SELECT pg_try_advisory_xact_lock(%s)", (locks.MIGRATION,)).fetchone()
    if not row or not row[0]:
        raise BackupRefused("The database is being migrated. Wait for that to end.")


def _other_sessions(connection: psycopg.Connection) -> list[str]:
    """Return the names and addresses of other sessions."""
    query = """
        SELECT coalesce(nullif(application_name, ''), 'a program')
               || coalesce(' on ' || host(client_addr), '')
          FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid() AND usesysid IS NOT NULL
               AND coalesce(backend_type, 'client backend') = 'client backend'
    """
    others = [str(name) for (name,) in connection.execute(query)]
    connection.rollback()  # A transaction would see the same list again.
    return others


def drop_portal(
    connection: psycopg.Connection,
    schema: str,
    *,
    is_ours: Callable[[str], bool],
    functions: Collection[str],
) -> None:
    """Drop the portal's tables with everything that belongs to them, and functions of these names.
    Other programs' tables are left alone."""
    owned = list(filter(is_ours, _names(connection, schema, "pg_class", "relkind IN ('r', 'p')")))
    doomed = _functions(connection, schema, owned, functions)
    for name in owned:
        drop = sql.SQL("DROP TABLE IF EXISTS {} CASCADE").format(sql.Identifier(schema, name))
        connection.execute(drop)
    for function in doomed:
        connection.execute(f"DROP FUNCTION IF EXISTS {function}")
    for name in filter(is_ours, _names(connection, schema, "pg_type", "typtype IN ('e', 'c')")):
        drop = sql.SQL("DROP TYPE {}").format(sql.Identifier(schema, name))
        connection.execute(drop)


def _names(connection: psycopg.Connection, schema: str, catalog: str, which: str) -> list[str]:
    """Return the names of tables (pg_class) or types (pg_type) that no extension owns."""
    prefix = {"pg_class": "rel", "pg_type": "typ"}[catalog]
    query = f"""
        SELECT {prefix}name FROM {catalog} AS c
         WHERE {which} AND {prefix}namespace = %s::regnamespace AND {_OURS.format("c")}
         ORDER BY {prefix}name
    """
    return [name for (name,) in connection.execute(query, (sql.Identifier(schema).as_string(),))]


def _functions(
    connection: psycopg.Connection, schema: str, owned: Sequence[str], named: Collection[str]
) -> list[str]:
    """Return the functions of the tables' triggers, of the job queue, and with these names, each
    with its argument types."""
    query = f"""
        SELECT oid::regprocedure::text FROM pg_proc AS p
         WHERE pronamespace = %(schema)s::regnamespace AND {_OURS.format("p")}
               AND (starts_with(proname, 'procrastinate_') OR proname = ANY(%(named)s)
                    OR oid IN (SELECT tgfoid FROM pg_trigger JOIN pg_class ON tgrelid = pg_class.oid
                                WHERE relnamespace = %(schema)s::regnamespace
                                      AND relname = ANY(%(owned)s)))
    """
    given = {
        "schema": sql.Identifier(schema).as_string(),
        "owned": list(owned),
        "named": list(named),
    }
    return [name for (name,) in connection.execute(query, given)]


def run_script(connection: psycopg.Connection, script: IO[bytes]) -> None:
    """Run statements of pg_restore that load no rows."""
    text = b"".join(line for line in script if not line.startswith(_OF_PSQL))
    _execute(connection, text)


def load_rows(
    connection: psycopg.Connection, script: IO[bytes], *, note: Callable[[int], None]
) -> None:
    """Run the part of pg_restore's output that loads rows. `note` is called with the number of
    bytes so far."""
    statements: list[bytes] = []
    done = 0
    for line in script:
        if _COPY.fullmatch(line):
            _execute(connection, b"".join(statements))
            statements = []
            done = _copy(connection, line, script, done, note)
        elif not line.startswith(_OF_PSQL):
            statements.append(line)
    _execute(connection, b"".join(statements))


def _copy(
    connection: psycopg.Connection,
    statement: bytes,
    script: IO[bytes],
    done: int,
    note: Callable[[int], None],
) -> int:
    with connection.cursor() as cursor, cursor.copy(statement.rstrip(b";\n")) as copy:
        batch = bytearray()
        for line in script:
            if line == _END_OF_ROWS:
                copy.write(bytes(batch))
                return done
            batch += line
            if len(batch) >= _ROWS_AT_ONCE_BYTES:
                copy.write(bytes(batch))
                done += len(batch)
                note(done)
                batch.clear()
        raise BackupRefused("The database's part of the backup ends in the middle.")


def _execute(connection: psycopg.Connection, statements: bytes) -> None:
    if connection.info.server_version < _FIRST_WITH_TRANSACTION_TIMEOUT:
        statements = statements.replace(b"\nSET transaction_timeout = 0;\n", b"\n", 1)
    if statements.strip():
        connection.execute(statements)


def renew_versions(connection: psycopg.Connection, schema: str) -> None:
    """Invalidate every cache that is keyed by a version of the data: entries from before the
    restore, here or on another server, are about other data."""
    version = secrets.randbits(62)
    query = f"""
        SELECT table_name, column_name FROM information_schema.columns
         WHERE table_schema = %s AND column_name IN {_VERSIONS}
    """
    for table, column in connection.execute(query, (schema,)).fetchall():
        update = sql.SQL("UPDATE {} SET {} = {}")
        names = sql.Identifier(schema, table), sql.Identifier(column)
        connection.execute(update.format(*names, sql.Literal(version)))
    if "selection_changes" in tables(connection, schema):
        # Each row links a version to the next; the other server's versions do not apply here.
        notes = sql.SQL("UPDATE {} SET version_before = -1, version = -1")
        connection.execute(notes.format(sql.Identifier(schema, "selection_changes")))


def differing_rows(
    connection: psycopg.Connection, schema: str, wanted: Mapping[str, int]
) -> list[str]:
    """Return the tables with an unexpected number of rows, each with both numbers."""
    found = count_some(connection, schema, list(wanted))
    return [
        f"{name} ({found[name]} of {rows})" for name, rows in wanted.items() if found[name] != rows
    ]
