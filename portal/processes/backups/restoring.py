"""Restoring a backup, completely or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg

from portal.container import opened_services
from portal.database import extensions, refilling
from portal.database.embedded import borrowed
from portal.database.lock import DataDirLock
from portal.database.server import client_programs
from portal.domain.people.audit import AuditEvent
from portal.domain.search.bm25 import INDEXES
from portal.errors import BackupRefused, ServerSetup
from portal.processes.backups import recording
from portal.processes.backups.archive import DATABASE, Backup, open_archive
from portal.processes.backups.encryption import Key
from portal.processes.backups.manifest import Manifest
from portal.services.operations import setup
from portal.settings import Settings
from portal.store import migrations
from portal.store.documents import vocabulary
from portal.store.session import Database

Report = Callable[[str], None]
Note = Callable[[int], None]

# Tables with data that users would miss. A single user does not count: every start creates the
# first administrator.
_PRECIOUS = ("documents", "document_chunks", "conversations", "invitations")
# Not restored, but created by the new server if it can: pg_textsearch or pg_trgm may be missing.
_CREATED_BY_SERVER = (*(index.name for index in INDEXES), vocabulary.TRIGRAM_INDEX)


def restore(
    settings: Settings,
    path: Path,
    *,
    replace: bool,
    key: Key | None = None,
    report: Report = lambda _line: None,
    note: Note = lambda _bytes: None,
) -> Manifest:
    """Restore the portal's state at the time of the backup, and return the backup's contents. With
    `replace`, the data of a portal that is not empty is lost. The file is checked completely before
    anything is changed, and the database changes in one transaction: after an interruption it is
    either unchanged or restored.

    Raises BackupRefused, and ServerSetup for a server that cannot serve a portal.
    """
    with open_archive(path, key) as backup, ExitStack() as stack:
        manifest = backup.manifest
        report("checking the backup")
        backup.verify(note=note)
        _refuse_unknown_schema(manifest)
        stack.enter_context(_lock_directory(settings.data_dir))
        url = settings.database_url
        if url is None:
            url = stack.enter_context(borrowed(settings.data_dir, report=report))
        database = Database(url)
        with database.engine.connect() as connection:
            extensions.ensure_extensions(connection)
        database.dispose()
        _refill(settings, database.conninfo, backup, replace=replace, report=report, note=note)
        for line in _prepare(settings, url):
            report(line)
        recording.record(url, AuditEvent.BACKUP_RESTORED, path, manifest)
        return manifest


def _refuse_unknown_schema(manifest: Manifest) -> None:
    known = migrations.known_revisions()
    if manifest.schema_revision not in known:
        raise BackupRefused(
            f"The backup was taken by portal {manifest.portal_version} with the schema "
            f"{manifest.schema_revision}, and this portal knows schemas up to {known[-1]}. "
            "Install the portal that took it, or a newer one, and restore with that."
        )


@contextmanager
def _lock_directory(data_dir: Path) -> Iterator[None]:
    """Hold the directory's lock. Raises ServerSetup if a portal serves from it."""
    directory = data_dir.expanduser().resolve()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = DataDirLock(directory)
        lock.acquire()
    except OSError as error:
        raise ServerSetup(
            f"The data directory {directory} cannot be written ({error.strerror})."
        ) from error
    try:
        yield
    finally:
        lock.release()


def _refill(
    settings: Settings, conninfo: str, backup: Backup, *, replace: bool, report: Report, note: Note
) -> None:
    """Restore everything up to the commit, with the signing key of the committed data."""
    manifest = backup.manifest
    major = int(manifest.pg_dump_version.split(".")[0])
    program, _ = client_programs.find_program("pg_restore", major=major)
    with psycopg.connect(conninfo, application_name="portal restore") as connection:
        refilling.refuse_others(connection)
        schema = refilling.schema_of(connection)
        _refuse_target(connection, schema, manifest, replace=replace)
        report("restoring the database")
        with backup.open(DATABASE) as dump:
            contents = client_programs.contents_of(program, dump, left_out=_CREATED_BY_SERVER)
        try:
            refilling.begin(connection, schema)
            refilling.drop_portal(
                connection,
                schema,
                is_ours=migrations.is_portal_relation,
                functions=client_programs.functions_in(contents, schema),
            )
            _run_dump(connection, program, backup, contents, report=report, note=note)
            _compare(connection, schema, manifest)
        except psycopg.Error as error:
            raise _failed(error, manifest, connection) from error
        # Before the commit: if interrupted here, existing tokens are void and everything else is
        # unchanged, and the restore can be repeated. Restored tokens without their key would be
        # void for good.
        with _key_in_place(settings, backup.secret_key(), report):
            connection.commit()


def _refuse_target(
    connection: psycopg.Connection, schema: str, manifest: Manifest, *, replace: bool
) -> None:
    if schema != manifest.schema:
        raise BackupRefused(
            f"The backup's tables are in the schema {manifest.schema}, and in this database "
            f"the portal's are made in {schema}. Set the role's search_path to that schema."
        )
    revision = refilling.revision_of(connection, schema)
    if revision is not None and revision not in migrations.known_revisions():
        raise BackupRefused(
            f"The portal that is in the database now has the schema {revision}, which only "
            "a newer portal knows. Restore with that, or into another database."
        )
    if replace:
        return
    found = refilling.count_some(connection, schema, [*_PRECIOUS, "users"])
    if any(found[name] for name in _PRECIOUS) or found["users"] > 1:
        raise BackupRefused(
            f"The portal is not empty: it has {found['documents']} documents, "
            f"{found['users']} users and {found['conversations']} conversations. With --replace "
            "all of that is lost, and the backup is put in its place."
        )


def _run_dump(
    connection: psycopg.Connection,
    program: Path,
    backup: Backup,
    contents: str,
    *,
    report: Report,
    note: Note,
) -> None:
    """Run the entries of a dump that are listed in `contents`."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".list") as chosen:
        chosen.write(contents)
        chosen.flush()
        for section in ("pre-data", "data", "post-data"):
            if section == "post-data":
                refilling.renew_versions(connection, backup.manifest.schema)
                report("building indexes")
            with (
                backup.open(DATABASE) as dump,
                client_programs.script_of(
                    program, dump, section=section, use_list=Path(chosen.name)
                ) as script,
            ):
                if section == "data":
                    refilling.load_rows(connection, script, note=note)
                else:
                    refilling.run_script(connection, script)


def _compare(connection: psycopg.Connection, schema: str, manifest: Manifest) -> None:
    differing = refilling.differing_rows(connection, schema, manifest.rows)
    if differing or refilling.revision_of(connection, schema) != manifest.schema_revision:
        raise BackupRefused(
            "The backup does not hold what its manifest says: "
            f"{', '.join(differing) or 'another schema'}. Nothing was changed."
        )


def _failed(
    error: psycopg.Error, manifest: Manifest, connection: psycopg.Connection
) -> BackupRefused:
    first_line = (str(error).strip() or type(error).__name__).splitlines()[0]
    major = manifest.postgresql_version.split(".")[0]
    here = connection.info.server_version // 10_000 if not connection.closed else int(major)
    older = (
        f" It was taken from PostgreSQL {major}, and this is {here}: use one as new."
        if here < int(major)
        else ""
    )
    return BackupRefused(
        f"The database did not take the backup, and is as it was: {first_line}.{older}"
    )


@contextmanager
def _key_in_place(settings: Settings, key: str | None, report: Report) -> Iterator[None]:
    """Put the backup's signing key in place, and restore the previous one if the block fails."""
    path = settings.data_dir / "secret_key"
    if key is None or settings.secret_key is not None:
        yield
        _report_unusable_tokens(settings, key, report)
        return
    before = path.read_bytes() if path.exists() else None
    try:
        _write_key(path, key.encode())
        yield
    except BaseException:
        if before is None:
            path.unlink(missing_ok=True)
        else:
            _write_key(path, before)
        raise


def _report_unusable_tokens(settings: Settings, key: str | None, report: Report) -> None:
    if settings.secret_key is None:
        report(
            "the backup has no signing key: set PORTAL_SECRET_KEY to what it was then, or users "
            "have to sign in again"
        )
    elif key is not None and key not in {
        kept.get_secret_value() for kept in (settings.secret_key, settings.secret_key_old) if kept
    }:
        report("PORTAL_SECRET_KEY is not the backup's key: users have to sign in again")


def _write_key(path: Path, key: bytes) -> None:
    descriptor, aside = tempfile.mkstemp(dir=path.parent, prefix=".secret_key.")
    with os.fdopen(descriptor, "wb") as file:
        file.write(key)
        file.flush()
        os.fsync(file.fileno())
    Path(aside).replace(path)


def _prepare(settings: Settings, url: str) -> Iterator[str]:
    """Prepare the database as a start does, so that the first start finds everything ready."""
    with opened_services(settings, url) as services:
        yield from setup.prepare_database(services)
