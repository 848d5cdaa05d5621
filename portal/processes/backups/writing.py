"""Writing a backup while the portal serves."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import IO

import psycopg

from portal.database import refilling
from portal.database.embedded import EmbeddedPostgres
from portal.database.server import client_programs
from portal.domain.people.audit import AuditEvent
from portal.errors import BackupRefused
from portal.processes.backups import recording
from portal.processes.backups.archive import DATABASE, SECRET_KEY, Writer, new_file, read_archive
from portal.processes.backups.encryption import Lock, encrypting
from portal.processes.backups.manifest import Manifest
from portal.settings import Settings
from portal.store.session import Database

Note = Callable[[int], None]


def write(
    settings: Settings,
    path: Path,
    *,
    force: bool,
    lock: Lock | None = None,
    note: Note = lambda _bytes: None,
) -> Manifest:
    """Write a whole portal to one file, read it back, and return its contents. The portal may serve
    meanwhile: the file is a snapshot.

    Raises BackupRefused, and then leaves no file.
    """
    with new_file(path, force=force) as file, _database(settings) as url:
        conninfo = Database(url).conninfo
        with encrypting(file, lock) as target:
            writer = Writer(target, scratch_dir=path.parent)
            with psycopg.connect(conninfo, application_name="portal backup") as connection:
                # The counts and the dump use one snapshot, which is held until the dump is done.
                connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
                connection.read_only = True
                manifest = _dump(connection, conninfo, writer, note)
            key = _kept_key(settings)
            if key is not None:
                writer.add(SECRET_KEY, io.BytesIO(key))
            writer.finish(manifest)
        verify_written(file, path, lock)
        recording.record(url, AuditEvent.BACKUP_TAKEN, path, manifest)
        return manifest


def verify_written(file: IO[bytes], path: Path, lock: Lock | None) -> None:
    """Read a backup back from the disk and compare all checksums, before it is put in place. Raises
    BackupRefused if they differ."""
    file.flush()
    os.fsync(file.fileno())
    with suppress(OSError, AttributeError):  # Read from the disk if the system can drop its cache.
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    file.seek(0)
    with read_archive(file, lock.key if lock else None, path) as backup:
        backup.verify()
    file.seek(0, os.SEEK_END)


@contextmanager
def _database(settings: Settings) -> Iterator[str]:
    """Yield the URL of the portal's database, without migrating it."""
    if settings.database_url:
        yield settings.database_url
        return
    server = EmbeddedPostgres(settings.data_dir)
    if not (server.cluster / "PG_VERSION").exists():
        raise BackupRefused(
            f"There is no portal in {server.data_dir}. Name its data directory with "
            "--data-dir, or its database with DATABASE_URL."
        )
    try:
        yield server.start()
    finally:
        server.leave()


def _dump(connection: psycopg.Connection, conninfo: str, writer: Writer, note: Note) -> Manifest:
    schema = refilling.schema_of(connection)
    revision = refilling.revision_of(connection, schema)
    if revision is None:
        raise BackupRefused(
            "There is no portal in this database: it has none of a portal's tables."
        )
    row = connection.execute("SELECT pg_export_snapshot(), now()").fetchone()
    snapshot, taken_at = row or ("", datetime.now(UTC))
    major, minor = divmod(connection.info.server_version, 10_000)
    program, program_version = client_programs.find_program(
        "pg_dump", major=major, over_tls=connection.pgconn.ssl_in_use
    )
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
    """Return the key that the portal created; a key from the settings is not in the backup."""
    if settings.secret_key is not None:
        return None
    try:
        return (settings.data_dir / "secret_key").read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BackupRefused(
            f"{settings.data_dir / 'secret_key'} cannot be read ({error.strerror}). Take "
            "the backup as the user who runs the portal."
        ) from error
