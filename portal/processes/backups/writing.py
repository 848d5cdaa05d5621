"""Taking a backup while the portal serves."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import psycopg

from portal.database import client_programs, refilling
from portal.database.embedded import EmbeddedPostgres
from portal.domain.audit import AuditEvent
from portal.errors import BackupRefused
from portal.processes.backups import recording
from portal.processes.backups.archive import DATABASE, SECRET_KEY, Writer, new_file
from portal.processes.backups.manifest import Manifest
from portal.settings import Settings
from portal.store.session import Database

Note = Callable[[int], None]


def write(
    settings: Settings, path: Path, *, force: bool, note: Note = lambda _bytes: None
) -> Manifest:
    """Write all of a portal into one file; what is in it. The portal may serve meanwhile: the file
    shows one moment, and what is added, changed or erased after it is not seen.

    Raises BackupRefused, and leaves no file then.
    """
    with new_file(path, force=force) as file, _database(settings) as url:
        writer, conninfo = Writer(file), _conninfo(url)
        with psycopg.connect(conninfo, application_name="portal backup") as connection:
            # One moment for the counts and for the dump, and it lasts until the dump has begun.
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.read_only = True
            manifest = _dump(connection, conninfo, writer, note)
        key = _kept_key(settings)
        if key is not None:
            writer.add(SECRET_KEY, io.BytesIO(key))
        writer.finish(manifest)
        recording.record(url, AuditEvent.BACKUP_TAKEN, path, manifest)
        return manifest


@contextmanager
def _database(settings: Settings) -> Iterator[str]:
    """Yield the URL of the portal's database, as it is: not brought up to date."""
    if settings.database_url:
        yield settings.database_url
        return
    server = EmbeddedPostgres(settings.data_dir)
    if not (server.cluster / "PG_VERSION").exists():
        raise BackupRefused(
            reason=f"There is no portal in {server.data_dir}. Name its data directory with "
            "--data-dir, or its database with DATABASE_URL."
        )
    try:
        yield server.start()
    finally:
        server.leave()


def _conninfo(url: str) -> str:
    database = Database(url)
    database.dispose()
    return database.conninfo


def _dump(connection: psycopg.Connection, conninfo: str, writer: Writer, note: Note) -> Manifest:
    schema = refilling.schema_of(connection)
    revision = refilling.revision_of(connection, schema)
    if revision is None:
        raise BackupRefused(
            reason="There is no portal in this database: it has none of a portal's tables."
        )
    row = connection.execute("SELECT pg_export_snapshot(), now()").fetchone()
    snapshot, taken_at = row or ("", datetime.now(UTC))
    major, minor = divmod(connection.info.server_version, 10_000)
    program, program_version = client_programs.find_program("pg_dump", major=major)
    rows = refilling.count_rows(connection, schema)
    with client_programs.dumped(program, conninfo, schema=schema, snapshot=snapshot) as stream:
        writer.add(DATABASE, stream, note=note)
    return Manifest(
        portal_version=version("knowledge-portal"),
        schema_revision=revision,
        schema=schema,
        postgresql_version=f"{major}.{minor}",
        pg_dump_version=program_version,
        taken_at=taken_at.astimezone(UTC).isoformat(timespec="seconds"),
        rows=rows,
        members=writer.members,
    )


def _kept_key(settings: Settings) -> bytes | None:
    """The key that the portal made and keeps; one that was set is kept where it was set."""
    if settings.secret_key is not None:
        return None
    try:
        return (settings.data_dir / "secret_key").read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BackupRefused(
            reason=f"{settings.data_dir / 'secret_key'} cannot be read ({error.strerror}). Take "
            "the backup as the user who runs the portal."
        ) from error
