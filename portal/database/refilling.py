"""A schema emptied and filled from a dump in one transaction: seen whole, or not at all."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import IO

import psycopg
from psycopg import sql

from portal.database import bm25
from portal.domain import locks
from portal.errors import BackupRefused

_COPY = re.compile(rb"COPY .* FROM stdin;\n")
_END_OF_ROWS = b"\\.\n"
# Commands of psql's, with which a dump begins and ends.
_OF_PSQL = (b"\\restrict ", b"\\unrestrict ")
_ROWS_AT_ONCE_BYTES = 256 * 1024
_FIRST_WITH_TRANSACTION_TIMEOUT = 170_000
# A session that ends has to be forgotten by the server first.
_PATIENCE_S = 3.0
_ASK_AGAIN_S = 0.1
_LOCK_TIMEOUT = "20s"

# Versions by which caches are valid are numbers of transactions.
_VERSIONS = ("documents_version", "corpus_version", "selection_version")

# What no extension has brought.
_OURS = "NOT EXISTS (SELECT FROM pg_depend WHERE objid = {0}.oid AND deptype = 'e')"


def schema_of(connection: psycopg.Connection) -> str:
    """Where tables are made. Raises BackupRefused where the role has no such place."""
    row = connection.execute("SELECT current_schema()").fetchone()
    if row is None or row[0] is None:
        raise BackupRefused(
            reason="The database has no schema in which the portal may make tables. Create one "
            "that the role's search_path names, such as public."
        )
    return str(row[0])


def tables(connection: psycopg.Connection, schema: str) -> list[str]:
    """Tables with rows of their own, by name: partitions, not what they are partitions of."""
    return _names(connection, schema, "pg_class", "relkind = 'r'")


def count_rows(connection: psycopg.Connection, schema: str) -> dict[str, int]:
    """How many rows each table has."""
    return {name: _count(connection, schema, name) for name in tables(connection, schema)}


def count_some(connection: psycopg.Connection, schema: str, names: Sequence[str]) -> dict[str, int]:
    """As `count_rows`, of these tables; none where there is no such table."""
    there = set(tables(connection, schema))
    return {name: _count(connection, schema, name) if name in there else 0 for name in names}


def _count(connection: psycopg.Connection, schema: str, name: str) -> int:
    query = sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(schema, name))
    row = connection.execute(query).fetchone()
    return int(row[0]) if row else 0


def revision_of(connection: psycopg.Connection, schema: str) -> str | None:
    """The revision of the schema's tables; None before the first migration."""
    if "alembic_version" not in tables(connection, schema):
        return None
    query = sql.SQL("SELECT version_num FROM {}").format(sql.Identifier(schema, "alembic_version"))
    row = connection.execute(query).fetchone()
    return str(row[0]) if row else None


def refuse_others(connection: psycopg.Connection) -> None:
    """Raises BackupRefused where other programs use the database."""
    others = _other_sessions(connection)
    deadline = time.monotonic() + _PATIENCE_S
    while others and time.monotonic() < deadline:
        time.sleep(_ASK_AGAIN_S)
        others = _other_sessions(connection)
    if others:
        named = ", ".join(sorted(set(others)))
        raise BackupRefused(
            reason=f"The database is in use by {len(others)} other connections ({named}). Stop "
            "the portal's web processes and workers, and everything else that is connected, first."
        )


def begin(connection: psycopg.Connection, schema: str) -> None:
    """Begin the transaction. Raises BackupRefused where a migration runs."""
    if bm25.STATE_TABLE in tables(connection, schema):
        # pg_textsearch forgets what it knows of an index that is dropped, and a rollback does not
        # bring that back: scores would be wrong in silence. Stale, it is rebuilt before it is used.
        stale = sql.SQL("UPDATE {} SET state = 'stale'")
        connection.execute(stale.format(sql.Identifier(schema, bm25.STATE_TABLE)))
    connection.commit()
    connection.execute(f"SET LOCAL lock_timeout = '{_LOCK_TIMEOUT}'")
    row = connection.execute("SELECT pg_try_advisory_xact_lock(%s)", (locks.MIGRATION,)).fetchone()
    if not row or not row[0]:
        raise BackupRefused(reason="The database is being migrated. Wait for that to end.")


def _other_sessions(connection: psycopg.Connection) -> list[str]:
    """What others call themselves, and where they are."""
    query = """
        SELECT coalesce(nullif(application_name, ''), 'a program')
               || coalesce(' on ' || host(client_addr), '')
          FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid() AND usesysid IS NOT NULL
               AND coalesce(backend_type, 'client backend') = 'client backend'
    """
    others = [str(name) for (name,) in connection.execute(query)]
    connection.rollback()  # Each look at the list is a new one.
    return others


def drop_portal(
    connection: psycopg.Connection,
    schema: str,
    *,
    is_ours: Callable[[str], bool],
    functions: Collection[str],
) -> None:
    """Drop the portal's tables with all that belongs to them, and functions of these names. Other
    programs' tables are left alone."""
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
    """Of tables (pg_class) or types (pg_type) that no extension brought."""
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
    """What triggers of these tables call, the job queue's own and those of these names; each with
    its arguments, quoted."""
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
    """Run statements of pg_restore's that bring no rows."""
    text = b"".join(line for line in script if not line.startswith(_OF_PSQL))
    _execute(connection, text)


def load_rows(
    connection: psycopg.Connection, script: IO[bytes], *, note: Callable[[int], None]
) -> None:
    """Run pg_restore's section of rows. `note` is told how many bytes have come so far."""
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
        raise BackupRefused(reason="The database's part of the backup ends in the middle.")


def _execute(connection: psycopg.Connection, statements: bytes) -> None:
    if connection.info.server_version < _FIRST_WITH_TRANSACTION_TIMEOUT:
        statements = statements.replace(b"\nSET transaction_timeout = 0;\n", b"\n", 1)
    if statements.strip():
        connection.execute(statements)


def renew_versions(connection: psycopg.Connection, schema: str) -> None:
    """Make everything that is kept under a version of the data stale. The numbers are those of
    transactions, and another server starts at 1: the same ones would come up again."""
    query = f"""
        SELECT table_name, column_name FROM information_schema.columns
         WHERE table_schema = %s AND column_name IN {_VERSIONS}
    """
    for table, column in connection.execute(query, (schema,)).fetchall():
        update = sql.SQL("UPDATE {} SET {} = CAST(CAST(pg_current_xact_id() AS text) AS bigint)")
        connection.execute(update.format(sql.Identifier(schema, table), sql.Identifier(column)))


def differing_rows(
    connection: psycopg.Connection, schema: str, wanted: Mapping[str, int]
) -> list[str]:
    """Tables that do not have as many rows as they should, each with both numbers."""
    found = count_some(connection, schema, list(wanted))
    return [
        f"{name} ({found[name]} of {rows})" for name, rows in wanted.items() if found[name] != rows
    ]
