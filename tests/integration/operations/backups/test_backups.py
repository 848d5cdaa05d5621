"""Backup and restore: the same documents and users, all or nothing."""

from __future__ import annotations

import gc
import io
import json
import os
import resource
import signal
import stat
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from click.testing import CliRunner, Result
from psycopg import sql
from pyrage import x25519
from sqlalchemy import create_engine, text

from portal.container import build_services, read_secret_key
from portal.database import client_programs, refilling
from portal.database.lock import DataDirLock
from portal.domain.documents import Visibility
from portal.domain.search import SearchMode, SearchRequest
from portal.errors import BackupRefused
from portal.processes.backups import archive, restoring, writing
from portal.processes.backups.archive import DATABASE, MANIFEST, Writer
from portal.processes.cli import main
from portal.processes.worker import work_until_empty
from portal.services import Services
from portal.services.documents import library, selections
from portal.services.documents.intake import uploads
from portal.services.operations import setup
from portal.services.people import accounts, sessions, tokens
from portal.services.search import engine
from portal.store import migrations
from portal.store.session import Database
from tests.conftest import PASSWORD, Portal, _execute, _with_name, make_settings
from tests.factories.uploads import run_apart, upload

LEAVE = "员工每年有十五天带薪年假。病假需要医生证明。"
OFFICE = "The office closes at six. Visitors must sign in at the front desk."
SECRET = "The merger is called Kingfisher."
# Two full parts and a remainder; incompressible, and not a readable PDF.
LARGE = b"%PDF-1.7\n" + os.urandom(2_200_000)
KEY = "the key that this portal made and keeps, of good length"


@pytest.fixture
def blank_url(server_url: str) -> Iterator[str]:
    """Yield the address of an empty database, as `createdb` leaves it."""
    name = f"test_{uuid4().hex}"
    _execute(server_url, f"CREATE DATABASE {name} TEMPLATE template0")
    yield _with_name(server_url, name)
    _execute(server_url, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def run(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return a runner of commands, on this test's database and data directory by default."""
    monkeypatch.setenv("PORTAL_EMBEDDING__PROVIDER", "hashing")
    (tmp_path / "secret_key").write_text(KEY, encoding="ascii")

    def call(*arguments: str | Path, url: str = database_url, data_dir: Path = tmp_path) -> Result:
        monkeypatch.setenv("DATABASE_URL", url)
        monkeypatch.setenv("PORTAL_DATA_DIR", str(data_dir))
        result = CliRunner().invoke(main, [str(each) for each in arguments], catch_exceptions=False)
        gc.collect()  # Close the command's connections, which otherwise end with its process.
        return result

    return call


@pytest.fixture
def full(portal: Portal, tmp_path: Path) -> Portal:
    """Return a portal with data of every kind and no open connections."""
    ada = portal.user("ada")
    portal.user("bob")
    office = portal.add(OFFICE, name="handbook.md")
    portal.add(LEAVE, name="年假规定.txt")
    portal.add(SECRET, name="secret.txt", owner=ada, visibility=Visibility.PRIVATE)
    thrown = portal.add("Thrown away.", name="old.txt")
    library.delete_document(portal.services, portal.admin, thrown.id)
    selections.set_switch(portal.services, ada, None, office.id, False)
    for name, content in (("later.txt", "Read me later."), ("scan.pdf", LARGE)):
        uploads.store_upload(
            portal.services,
            ada,
            stream=upload(content),
            file_name=name,
            title=None,
            domain=None,
            visibility=Visibility.SHARED,
        )
    portal.services.database.dispose()
    return portal


@contextmanager
def services_on(url: str, data_dir: Path) -> Iterator[Services]:
    services = build_services(make_settings(data_dir, url, secret_key=None))
    yield services
    services.database.dispose()


def titles(services: Services, name: str, query: str, mode: SearchMode) -> list[str]:
    user = accounts.find_user(services, name)
    hits = engine.search(services, user, SearchRequest(query=query, mode=mode)).hits
    return [hit.title for hit in hits]


def everything_seen(services: Services) -> list[Any]:
    """Return the results of searches, and the originals byte for byte."""
    # An index counts deleted rows until it is rebuilt; a restored index is new.
    setup.repair_keyword_index(services)
    found: list[Any] = []
    for name in ("admin", "ada"):
        user = accounts.find_user(services, name)
        for query in ("年假有几天", "When does the office close?", "Kingfisher"):
            for mode in SearchMode:
                hits = engine.search(services, user, SearchRequest(query=query, mode=mode))
                # Confidence and the order of ties may differ until the model is calibrated.
                found += sorted(
                    (str(hit.chunk_id), hit.text_score, hit.vector_score) for hit in hits.hits
                )
        for document in library.list_documents(services, user).items:
            original = library.open_file(services, user, document.id)
            found.append((document.id, document.status, b"".join(original.parts)))
        found += [document.id for document in library.list_trash(services, user).items]
    return found


def all_rows(url: str) -> dict[str, int]:
    with psycopg.connect(Database(url).conninfo) as connection:
        return refilling.count_rows(connection, "public")


def work_while_it_is_dumped(portal: Portal, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change the portal after the backup's snapshot is taken, before its first row is read."""
    services, admin, dumped = portal.services, portal.admin, client_programs.dumped

    def meanwhile(*args: Any, **named: Any):
        shown = library.list_documents(services, admin).items
        for gone in [one.id for one in shown if one.title in ("handbook", "scan")]:
            library.delete_document(services, admin, gone)
            library.purge_document(services, admin, gone)
        portal.add("Came in while the backup was taken.", name="new.txt")
        portal.user("eve")
        return dumped(*args, **named)

    monkeypatch.setattr(client_programs, "dumped", meanwhile)


def test_the_same_portal_stands_on_another_server_as_of_one_moment(
    full: Portal,
    run,
    tmp_path: Path,
    database_url: str,
    blank_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file, elsewhere = tmp_path / "portal.tar", tmp_path / "elsewhere"
    work_while_it_is_dumped(full, monkeypatch)
    with services_on(database_url, tmp_path) as here:
        before = everything_seen(here)
        token = sessions.token_for(here, accounts.find_user(here, "ada"), ttl_s=600)
    taken = run("backup", file)
    assert taken.exit_code == 0, taken.stderr
    assert f"{file}: 6 documents, " in taken.stdout
    assert stat.S_IMODE(file.stat().st_mode) == 0o600

    now = {one.title for one in library.list_documents(full.services, full.admin).items}
    assert ("new" in now, "handbook" in now, "scan" in now) == (True, False, False)
    known = versions(database_url)

    restored = run("restore", file, url=blank_url, data_dir=elsewhere)
    assert restored.exit_code == 0, restored.stderr
    assert "restored 6 documents" in restored.stdout
    # Versions are ids of past transactions of this server, so that they cannot occur again.
    assert all(known[2] < version < versions(blank_url)[2] for version in versions(blank_url)[:2])
    assert stat.S_IMODE((elsewhere / "secret_key").stat().st_mode) == 0o600

    with services_on(blank_url, elsewhere) as there:
        assert everything_seen(there) == before
        assert sessions.sign_in(there, name="ada", password=PASSWORD)
        assert tokens.authenticate(there, token).user.name == "ada"
        assert titles(there, "ada", "Kingfisher", SearchMode.KEYWORD) == ["secret"]
        assert "secret" not in titles(there, "bob", SECRET, SearchMode.HYBRID)
        assert "handbook" not in titles(there, "ada", OFFICE, SearchMode.HYBRID)
        # Queued jobs are processed, and sequences continue after the restored rows.
        run_apart(work_until_empty, there)
        assert titles(there, "ada", "Read me later", SearchMode.KEYWORD) == ["later"]
    assert all_rows(blank_url).keys() == all_rows(database_url).keys()


def test_an_encrypted_portal_opens_with_its_identity_alone(
    full: Portal,
    run,
    tmp_path: Path,
    database_url: str,
    blank_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file, elsewhere = tmp_path / "portal.tar.age", tmp_path / "elsewhere"
    identity, other = x25519.Identity.generate(), x25519.Identity.generate()
    for name, each in (("identity", identity), ("other", other)):
        (tmp_path / name).write_text(f"# created: today\n{each}\n", encoding="ascii")
    with services_on(database_url, tmp_path) as here:
        before = originals(here)

    monkeypatch.setenv("PORTAL_BACKUP__RECIPIENTS", str(identity.to_public()))
    taken = run("backup", file)  # The setting alone is enough.
    assert taken.exit_code == 0, taken.stderr
    assert "encrypted and checked" in taken.stdout
    written = file.read_bytes()
    assert not any(word in written for word in (b"Kingfisher", b"PGDMP", KEY.encode()))
    assert run("backup", tmp_path / "plain.tar", "--no-encrypt").exit_code == 0
    assert (tmp_path / "plain.tar").read_bytes().startswith(DATABASE.encode())

    damaged = tmp_path / "damaged"
    damaged.write_bytes(written[:-100])
    for attempt in ((file,), (file, "--identity", tmp_path / "other"), (damaged, *own(tmp_path))):
        refused = run("restore", *attempt, url=blank_url, data_dir=elsewhere)
        assert refused.exit_code == 1
        assert "decrypted" in refused.stderr or "is encrypted" in refused.stderr
        assert "AGE-SECRET-KEY" not in refused.stderr
        assert all_rows(blank_url) == {}

    restored = run("restore", file, *own(tmp_path), url=blank_url, data_dir=elsewhere)
    assert restored.exit_code == 0, restored.stderr
    with services_on(blank_url, elsewhere) as there:
        assert originals(there) == before
        assert titles(there, "ada", "Kingfisher", SearchMode.KEYWORD) == ["secret"]
        assert read_secret_key(there.settings) == KEY


def originals(services: Services) -> dict[str, bytes]:
    admin = accounts.find_user(services, "admin")
    return {
        document.title: b"".join(library.open_file(services, admin, document.id).parts)
        for document in library.list_documents(services, admin).items
    }


def own(directory: Path) -> tuple[str, Path]:
    return "--identity", directory / "identity"


def versions(url: str) -> list[int]:
    """Return the versions that are keys of caches, and the server's transaction counter."""
    query = """
        SELECT documents_version, corpus_version, CAST(CAST(pg_current_xact_id() AS text) AS bigint)
          FROM collections WHERE name = 'portal'
    """
    with psycopg.connect(Database(url).conninfo) as connection:
        return list(connection.execute(query).fetchone() or ())


def test_restore_replaces_data_only_with_the_option(
    full: Portal, run, tmp_path: Path, database_url: str
) -> None:
    file = tmp_path / "portal.tar"
    with services_on(database_url, tmp_path) as here:
        before = everything_seen(here)
    assert run("backup", file).exit_code == 0
    full.add("Younger than the backup.", name="young.txt")
    full.user("eve")
    with full.services.database.engine.begin() as connection:
        connection.execute(text("CREATE TABLE of_another_program AS SELECT 42 AS answer"))
    full.services.database.dispose()
    rows = all_rows(database_url)
    (tmp_path / "secret_key").write_text("a younger key of this portal", encoding="ascii")

    refused = run("restore", file)
    assert refused.exit_code == 1
    assert "7 documents, 4 users" in refused.stderr
    assert "--replace" in refused.stderr
    assert all_rows(database_url) == rows

    assert run("restore", file, "--replace").exit_code == 0
    with services_on(database_url, tmp_path) as here:
        assert everything_seen(here) == before
        assert read_secret_key(here.settings) == KEY
        with here.database.engine.connect() as connection:
            assert connection.execute(text("SELECT answer FROM of_another_program")).scalar() == 42
            left = migrations.differences(connection)
            assert [one for one in left if "of_another_program" not in str(one)] == []


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
    monkeypatch.setattr(refilling, "_PATIENCE_S", 0.2)
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


def test_an_older_schema_is_brought_up_to_date(
    full: Portal, run, tmp_path: Path, blank_url: str
) -> None:
    assert run("migrate", "--to", migrations.known_revisions()[0]).exit_code == 0
    assert run("backup", tmp_path / "portal.tar").exit_code == 0
    restored = run("restore", tmp_path / "portal.tar", url=blank_url, data_dir=tmp_path / "new")
    assert restored.exit_code == 0, restored.stderr
    with services_on(blank_url, tmp_path / "new") as there:
        with there.database.engine.connect() as connection:
            assert migrations.current_revision(connection) == migrations.newest_revision()
            assert migrations.differences(connection) == []
        assert titles(there, "admin", "年假有几天", SearchMode.HYBRID)[0] == "年假规定"


def test_neither_superuser_nor_pg_textsearch_is_needed(
    full: Portal, run, tmp_path: Path, server_url: str, blank_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """A managed server, where only pgvector is installed."""
    run("backup", tmp_path / "portal.tar")
    role = f"plain_{uuid4().hex}"
    monkeypatch.setenv("PORTAL_SEARCH__KEYWORD_BACKEND", "tsvector")
    engine = create_engine(blank_url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text("CREATE EXTENSION vector"))
        connection.execute(text(f"CREATE ROLE {role}"))
        connection.execute(text(f"GRANT CREATE ON SCHEMA public TO {role}"))
    engine.dispose()
    plain_url = f"{blank_url}&options=-crole%3D{role}"
    restored = run("restore", tmp_path / "portal.tar", url=plain_url, data_dir=tmp_path / "plain")
    assert restored.exit_code == 0, restored.stderr
    with services_on(plain_url, tmp_path / "plain") as there:
        assert titles(there, "admin", "年假有几天", SearchMode.HYBRID)[0] == "年假规定"
        with there.database.engine.connect() as connection:
            owners = "SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'public'"
            assert connection.execute(text(owners)).scalars().all() == [role]
            absent = "SELECT count(*) FROM pg_extension WHERE extname = 'pg_textsearch'"
            assert connection.execute(text(absent)).scalar() == 0
    again = run("backup", tmp_path / "again.tar", url=plain_url, data_dir=tmp_path / "plain")
    assert again.exit_code == 0, again.stderr
    with engine.connect() as connection:
        connection.execute(text(f"DROP OWNED BY {role} CASCADE"))
        connection.execute(text(f"DROP ROLE {role}"))
    engine.dispose()


def test_a_fresh_portal_counts_as_empty_and_a_key_that_is_set_is_not_in_the_backup(
    full: Portal, run, tmp_path: Path, blank_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PORTAL_SECRET_KEY", KEY)
    run("backup", tmp_path / "portal.tar")
    with tarfile.open(tmp_path / "portal.tar") as tar:
        assert tar.getnames() == [DATABASE, MANIFEST]
    assert KEY.encode() not in (tmp_path / "portal.tar").read_bytes()
    monkeypatch.delenv("PORTAL_SECRET_KEY")
    fresh = tmp_path / "fresh"
    assert run("migrate", url=blank_url, data_dir=fresh).exit_code == 0
    assert all_rows(blank_url)["users"] == 1  # The administrator that every start creates.
    restored = run("restore", tmp_path / "portal.tar", url=blank_url, data_dir=fresh)
    assert restored.exit_code == 0, restored.stderr
    assert "set PORTAL_SECRET_KEY to what it was" in restored.stderr
    assert all_rows(blank_url)["users"] == 3


def files(directory: Path) -> set[str]:
    return {each.name for each in directory.iterdir()}


@pytest.mark.usefixtures("interruptible")
def test_a_backup_that_fails_leaves_what_was_there(
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


def test_where_there_is_no_portal_none_is_made_to_be_backed_up(
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


def test_passwords_of_the_database_are_not_in_a_list_of_processes() -> None:
    where, secrets = client_programs._connection("host=db user=portal password='a b' dbname=p")
    assert "a b" not in where
    assert secrets == {"PGPASSWORD": "a b"}
