"""A restored portal is as it was at one moment."""

from __future__ import annotations

import stat
import tarfile
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from pyrage import x25519
from sqlalchemy import create_engine, text

from portal.container import read_secret_key
from portal.database import refilling
from portal.database.server import client_programs
from portal.domain.search import SearchMode, SearchRequest
from portal.processes.backups.archive import DATABASE, MANIFEST
from portal.processes.worker import work_until_empty
from portal.services import Services
from portal.services.documents import library
from portal.services.people import accounts, sessions, tokens
from portal.services.search import engine
from portal.store import migrations
from portal.store.session import Database
from tests.conftest import PASSWORD, Portal
from tests.factories.uploads import run_apart
from tests.integration.operations.backups.dumps.conftest import (
    KEY,
    OFFICE,
    SECRET,
    everything_seen,
    own,
    services_on,
)


def titles(services: Services, name: str, query: str, mode: SearchMode) -> list[str]:
    user = accounts.find_user(services, name)
    hits = engine.search(services, user, SearchRequest(query=query, mode=mode)).hits
    return [hit.title for hit in hits]


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


def test_portal_is_restored_on_another_server_as_of_one_moment(
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

    now = {document.title for document in library.list_documents(full.services, full.admin).items}
    assert ("new" in now, "handbook" in now, "scan" in now) == (True, False, False)
    known = versions(database_url)

    restored = run("restore", file, url=blank_url, data_dir=elsewhere)
    assert restored.exit_code == 0, restored.stderr
    assert "restored 6 documents" in restored.stdout
    renewed = versions(blank_url)
    assert renewed.isdisjoint(known)
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


def test_encrypted_backup_opens_only_with_its_identity(
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


def versions(url: str) -> set[int]:
    """Return the versions that caches use as keys."""
    query = "SELECT documents_version, corpus_version FROM collections WHERE name = 'portal'"
    with psycopg.connect(Database(url).conninfo) as connection:
        return set(connection.execute(query).fetchone() or ())


def test_each_restore_gives_new_versions(full: Portal, database_url: str) -> None:
    """Two restores into new servers would otherwise get the same transaction ids."""
    query = "SELECT documents_version FROM collections WHERE name = 'portal'"
    with psycopg.connect(Database(database_url).conninfo) as connection:
        given = set()
        for _ in range(2):
            refilling.renew_versions(connection, "public")
            given |= set(connection.execute(query).fetchone() or ())
        connection.rollback()
    assert len(given) == 2


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
