"""The version and extensions of a PostgreSQL server, compared with what the portal needs."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from portal.errors import ServerSetup

MIN_SERVER = (14,)
# Versions before this one read out of bounds in parallel index builds (CVE-2026-3172).
MIN_PGVECTOR = (0, 8, 5)
# Earlier versions lose their corpus statistics when the server stops; see
# `portal.database.bm25`.
FIRST_DURABLE_PG_TEXTSEARCH = (1, 4, 0)

REQUIRED = ("vector",)
OPTIONAL = ("pg_trgm", "unaccent", "pg_textsearch")


@dataclass(frozen=True)
class Extension:
    """An extension as one database sees it; its versions are None if it is not available."""

    name: str
    installed: str | None
    available: str | None


def version_tuple(version: str) -> tuple[int, ...]:
    """Parse `0.8.5` as (0, 8, 5), up to the first part that is not a number."""
    numbers = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, numbers[0].split("."))) if numbers else ()


def server_version(connection: Connection) -> tuple[int, ...]:
    """Return the server's version, such as (18, 6)."""
    number = int(connection.execute(text("SHOW server_version_num")).scalar_one())
    return number // 10_000, number % 10_000


def read_extensions(connection: Connection) -> dict[str, Extension]:
    """Return the portal's extensions by name, available or not."""
    rows = connection.execute(
        text(
            "SELECT name, installed_version, default_version FROM pg_available_extensions"
            " WHERE name = ANY(:names)"
        ),
        {"names": [*REQUIRED, *OPTIONAL]},
    )
    found = {row.name: Extension(row.name, row[1], row[2]) for row in rows}
    return {name: found.get(name, Extension(name, None, None)) for name in (*REQUIRED, *OPTIONAL)}


def pg_textsearch_version(connection: Connection) -> tuple[int, ...] | None:
    """Return the installed version; None if this database does not have it."""
    installed = read_extensions(connection)["pg_textsearch"].installed
    return version_tuple(installed) if installed else None


def ensure_extensions(connection: Connection) -> dict[str, Extension]:
    """Install or update what the server offers. Raises ServerSetup when pgvector is missing or too
    old, or the server is too old; optional extensions may be missing. Needs a connection with no
    transaction begun; commits."""
    version = server_version(connection)
    if version < MIN_SERVER:
        raise ServerSetup(
            f"The database server is PostgreSQL {version[0]}; the portal needs "
            f"{MIN_SERVER[0]} or newer. Upgrade it, or unset DATABASE_URL to use the embedded one."
        )
    for name, extension in read_extensions(connection).items():
        if extension.available is None:
            continue
        try:
            with connection.begin_nested():
                _install_or_update(connection, extension)
        except DBAPIError as error:
            if name in REQUIRED and extension.installed is None:
                raise ServerSetup(
                    f"The extension {name} could not be installed: "
                    f"{str(error.orig).splitlines()[0]}. Ask the database's administrator to run "
                    f"CREATE EXTENSION {name} in this database."
                ) from error
    connection.commit()
    extensions = read_extensions(connection)
    require_pgvector(extensions["vector"])
    return extensions


def _install_or_update(connection: Connection, extension: Extension) -> None:
    if extension.installed is None:
        connection.execute(text(f"CREATE EXTENSION IF NOT EXISTS {extension.name}"))
    elif extension.installed != extension.available:
        connection.execute(text(f"ALTER EXTENSION {extension.name} UPDATE"))


def require_pgvector(vector: Extension) -> None:
    """Raise ServerSetup unless pgvector is installed and recent enough."""
    wanted = ".".join(str(part) for part in MIN_PGVECTOR)
    if vector.installed is None:
        raise ServerSetup(
            f"The database server has no pgvector. Install pgvector {wanted} or newer on "
            "it, or unset DATABASE_URL to use the embedded PostgreSQL, which brings it."
        )
    if version_tuple(vector.installed) < MIN_PGVECTOR:
        raise ServerSetup(
            f"The database has pgvector {vector.installed}; the portal needs {wanted} or "
            "newer, because earlier ones can return other rows' data (CVE-2026-3172). Upgrade "
            "pgvector on the server, then run ALTER EXTENSION vector UPDATE."
        )
