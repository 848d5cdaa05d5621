"""Backups and restores that fail change nothing."""

from __future__ import annotations

import io
import json
import resource
import signal
import tarfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from psycopg import sql

from portal.container import read_secret_key
from portal.database import refilling
from portal.database.lock import DataDirLock
from portal.database.server import client_programs
from portal.errors import BackupRefused
from portal.processes.backups import archive, restoring, writing
from portal.processes.backups.archive import DATABASE, MANIFEST, Writer
from portal.services.operations import setup
from portal.store import migrations
from portal.store.session import Database
from tests.conftest import Portal, make_settings
from tests.integration.operations.backups.dumps.conftest import KEY, everything_seen, services_on


def forge(file: Path, forged: Path, *, change: Callable[[dict[str, Any]], None]) -> None:
    """Write the same backup with a changed manifest and valid checksums."""
    with tarfile.open(file) as tar, forged.open("wb") as target:
        told = json.loads(tar.extractfile(MANIFEST).read())
        change(told)
        writer = Writer(target)
        for name in told["members"]:
            writer.add(name, tar.extractfile(name))
        writer.add(MANIFEST, io.BytesIO(json.dumps(told).encode()))


def one_document_more(told: dict[str, Any]) -> None:
    told["rows"]["documents"] += 1


def newer_schema(told: dict[str, Any]) -> None:
    told |= {"schema_revision": "9999", "portal_version": "7.0"}


def half_of_the_dump(file: Path, broken: Path) -> None:
    with tarfile.open(file) as tar, broken.open("wb") as stream:
        told = json.loads(tar.extractfile(MANIFEST).read())
        dump = tar.extractfile(DATABASE).read()
        writer = Writer(stream)
        writer.add(DATABASE, io.BytesIO(dump[: len(dump) // 2]))
        told["members"] = {DATABASE: asdict(writer.members[DATABASE])}
        writer.add(MANIFEST, io.BytesIO(json.dumps(told).encode()))


def stopped_at_the_last_moment(monkeypatch: pytest.MonkeyPatch, raised: signal.Signals) -> None:
    """Stop a restore after everything is written and the key replaced, before the commit."""
    write_key = restoring._write_key

    def stop(path: Path, key: bytes) -> None:
        write_key(path, key)
        if key == KEY.encode():
            signal.raise_signal(raised)

    monkeypatch.setattr(restoring, "_write_key", stop)


@pytest.mark.usefixtures("interruptible")
def test_failed_restore_changes_nothing(
    full: Portal, run, tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, bad = tmp_path / "portal.tar", tmp_path / "bad.tar"
    assert run("backup", file).exit_code == 0
    full.add("Younger than the backup.", name="young.txt")
    full.services.database.dispose()
    younger = "a younger key of this portal, of good length"
    (tmp_path / "secret_key").write_text(younger, encoding="ascii")
    monkeypatch.setattr(refilling, "_TIMEOUT_S", 0.2)
    with services_on(database_url, tmp_path) as here:
        before = everything_seen(here)

    def refused(backup: Path, status: int = 1) -> str:
        """Expect a restore to fail; return the last line of its output."""
        done = run("restore", backup, "--replace")
        assert done.exit_code == status, done.stderr
        with services_on(database_url, tmp_path) as here:
            setup.repair_keyword_index(here)  # As every start does, and workers regularly.
            assert everything_seen(here) == before
            assert read_secret_key(here.settings) == younger
        return str(done.stderr.splitlines()[-1])

    # Detected at the very end, when the new tables have replaced the old ones.
    forge(file, bad, change=one_document_more)
    assert "documents (6 of 7)" in refused(bad)
    forge(file, bad, change=newer_schema)
    words = refused(bad)
    assert "portal 7.0 with the schema 9999" in words
    assert str(migrations.newest_revision()) in words
    half_of_the_dump(file, bad)
    assert refused(bad).startswith("portal: ")
    bad.write_bytes(file.read_bytes()[:-4096])
    assert "cut off" in refused(bad)

    with psycopg.connect(Database(database_url).conninfo, application_name="a worker"):
        assert "1 other connections (a worker)" in refused(file)
    with DataDirLock(tmp_path) as lock:
        lock.announce("http://127.0.0.1:8000")
        assert "A portal already runs" in refused(file)
    for raised in (signal.SIGINT, signal.SIGTERM):
        with monkeypatch.context() as patch:
            stopped_at_the_last_moment(patch, raised)
            assert refused(file, 128 + raised) == "portal: stopped"
    (tmp_path / "file").touch()
    nowhere = run("restore", file, data_dir=tmp_path / "file")
    assert (nowhere.exit_code, "cannot be written" in nowhere.stderr) == (1, True)


def files(directory: Path) -> set[str]:
    return {each.name for each in directory.iterdir()}


@pytest.mark.usefixtures("interruptible")
def test_failed_backup_leaves_the_previous_one(
    full: Portal, run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = tmp_path / "backups"
    room.mkdir()
    file = room / "portal.tar"
    assert run("backup", file).exit_code == 0
    good = file.read_bytes()
    there = run("backup", file)
    assert (there.exit_code, "--force" in there.stderr) == (1, True)

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, hard))  # Room for half of the backup.
    try:
        no_room = run("backup", file, "--force")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert no_room.exit_code == 1
    assert "There is no room for the backup" in no_room.stderr

    add = archive.Writer.add
    for raised in (signal.SIGINT, signal.SIGTERM):
        with monkeypatch.context() as patch:
            patch.setattr(
                archive.Writer,
                "add",
                lambda *given, raised=raised, **named: (
                    add(*given, **named),
                    signal.raise_signal(raised),
                ),
            )
            stopped = run("backup", file, "--force")
        assert (stopped.exit_code, stopped.stderr) == (128 + raised, "portal: stopped\n")

    with monkeypatch.context() as patch:
        elsewhere = SimpleNamespace(Identifier=lambda _schema: sql.Identifier("no_such_schema"))
        patch.setattr(client_programs, "sql", elsewhere)
        failed = run("backup", file, "--force")
    assert failed.exit_code == 1
    assert failed.stderr.startswith("portal: pg_dump did not succeed: ")
    assert files(room) == {"portal.tar"}
    assert file.read_bytes() == good

    full.add("One more.", name="more.txt")
    assert run("backup", file, "--force").exit_code == 0
    assert files(room) == {"portal.tar"}
    assert file.read_bytes() != good


def test_backup_does_not_create_a_missing_portal(
    run, tmp_path: Path, blank_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = run("backup", tmp_path / "portal.tar", url=blank_url)
    assert (empty.exit_code, "no portal in this database" in empty.stderr) == (1, True)
    monkeypatch.delenv("DATABASE_URL")
    settings = make_settings(tmp_path / "nowhere", "", database_url=None)
    with pytest.raises(BackupRefused, match="no portal in"):
        writing.write(settings, tmp_path / "portal.tar", force=False)
    assert not (tmp_path / "nowhere").exists()
    assert not (tmp_path / "portal.tar").exists()


def test_newer_server_names_the_pg_dump_to_install() -> None:
    path, version = client_programs.find_program("pg_dump", major=18)
    assert path.name == "pg_dump"
    assert version.startswith("18")
    with pytest.raises(BackupRefused, match="pg_dump of PostgreSQL 99"):
        client_programs.find_program("pg_dump", major=99)


def test_a_connection_with_tls_is_not_dumped_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, _ = client_programs.find_program("pg_dump", major=18)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BackupRefused, match="with TLS"):
        client_programs.find_program("pg_dump", major=18, over_tls=True)
    (tmp_path / "pg_dump").symlink_to(own)  # Replaces PostgreSQL's own.
    found, _ = client_programs.find_program("pg_dump", major=18, over_tls=True)
    assert found == tmp_path / "pg_dump"


def test_database_passwords_are_not_in_the_process_list() -> None:
    where, secrets = client_programs._connection("host=db user=portal password='a b' dbname=p")
    assert "a b" not in where
    assert secrets == {"PGPASSWORD": "a b"}
