from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import DataError

from portal.database import corruption
from portal.database.embedded import EmbeddedPostgres
from portal.database.extensions import (
    OPTIONAL,
    REQUIRED,
    Extension,
    ensure_extensions,
    require_pgvector,
    version_tuple,
)
from portal.database.health import ServerReport, report
from portal.errors import ServerSetup
from portal.services.operations import setup
from portal.store.session import Database
from tests.conftest import Portal


def look(server: EmbeddedPostgres, *before: str) -> ServerReport:
    engine = create_engine(server.url())
    try:
        with engine.connect() as connection:
            for statement in before:
                connection.execute(text(statement))
            return report(connection)
    finally:
        engine.dispose()


@pytest.fixture(scope="module", autouse=True)
def _extensions(server: EmbeddedPostgres) -> None:
    engine = create_engine(server.url())
    with engine.connect() as connection:
        ensure_extensions(connection)
    engine.dispose()


def test_the_embedded_server_is_fit(server: EmbeddedPostgres) -> None:
    found = look(server)
    assert found.is_fit
    # The test server is small and not durable; nothing else is reported.
    assert {lack.what.split()[0] for lack in found.lacks} <= {"fsync", "shared_buffers"}
    assert found.server_version.startswith("18.")
    assert found.extensions["vector"] == "0.8.6"


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("SET LOCAL jit = on", "jit is on"),
        ("SET LOCAL random_page_cost = 4", "random_page_cost is 4"),
        ("SET LOCAL maintenance_work_mem = '16MB'", "maintenance_work_mem is 16 MB"),
        ("DROP EXTENSION pg_trgm", "pg_trgm 1.6 is available, but not created"),
        ("DROP EXTENSION unaccent", "unaccent 1.1 is available, but not created"),
    ],
)
def test_each_lack_has_cost_and_remedy(server: EmbeddedPostgres, statement: str, what: str) -> None:
    found = look(server, statement)
    lack = next(lack for lack in found.lacks if lack.what == what)
    assert lack.cost
    assert lack.remedy
    assert found.is_fit


def test_a_server_without_pgvector_is_not_fit(
    server: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    absent = {name: Extension(name, None, None) for name in (*REQUIRED, *OPTIONAL)}
    monkeypatch.setattr("portal.database.health.read_extensions", lambda _: absent)
    found = look(server)
    assert not found.is_fit
    assert "pgvector" in next(lack.what for lack in found.lacks if lack.is_fatal)
    assert {"no pg_trgm", "no unaccent", "no pg_textsearch"} <= {lack.what for lack in found.lacks}


def test_extensions_of_a_new_database_are_left_to_migrate(server: EmbeddedPostgres) -> None:
    found = look(server, "DROP EXTENSION vector")
    assert found.is_fit
    lack = next(lack for lack in found.lacks if "vector" in lack.what)
    assert lack.what == "vector 0.8.6 is available, but not created"
    assert lack.remedy.startswith("run portal migrate")


def test_an_old_pgvector_is_refused_by_its_cve() -> None:
    with pytest.raises(ServerSetup, match="CVE-2026-3172"):
        require_pgvector(Extension("vector", "0.8.4", "0.8.6"))
    require_pgvector(Extension("vector", "0.8.5", "0.8.5"))
    require_pgvector(Extension("vector", "0.10.0", "0.10.0"))


@pytest.mark.parametrize(
    ("version", "parts"), [("0.8.5", (0, 8, 5)), ("1.4.0-dev", (1, 4, 0)), ("2", (2,))]
)
def test_versions_compare_as_numbers(version: str, parts: tuple[int, ...]) -> None:
    assert version_tuple(version) == parts


_PAGE_BYTES = 8192


def damage(database: Database, run_dir: Path, index: str) -> None:
    """Overwrite the last page of an index on the disk, as a failing disk does."""
    with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("CREATE EXTENSION IF NOT EXISTS pg_buffercache"))
        connection.execute(text("CHECKPOINT"))
        name = connection.scalar(text("SELECT pg_relation_filepath(:index)"), {"index": index})
        path = run_dir / "shared-server" / "postgres" / str(name)
        with path.open("r+b") as stream:
            stream.seek(-_PAGE_BYTES, 2)
            stream.write(b"\xa5" * _PAGE_BYTES)
        query = text("SELECT pg_buffercache_evict_relation(CAST(:index AS regclass))")
        connection.execute(query, {"index": index})


def test_a_damaged_page_of_an_index_is_found_and_the_index_rebuilt(
    portal: Portal, run_dir: Path
) -> None:
    portal.add("The heron keeps the lighthouse lamp.")
    database = portal.services.database
    checked = list(corruption.check(database.engine) or ())
    assert {one.kind for one in checked} == {"btree", "gin", "table"}
    assert [one for one in checked if one.is_damaged] == []
    damage(database, run_dir, "pk_document_chunks")
    lines = list(setup.check_deeply(portal.services))
    assert [line.text for line in lines if "pk_document_chunks" in line.text] == [
        "damaged and rebuilt: btree pk_document_chunks"
    ]
    assert all(line.is_well for line in lines)
    assert not any(one.is_damaged for one in corruption.check(database.engine) or ())


def test_check_errors_are_not_damage_and_dropped_indexes_are_skipped(
    portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = portal.services.database.engine
    monkeypatch.setitem(corruption._CHECKS, "btree", "SELECT 1 / (CAST(:oid AS bigint) * 0)")
    with pytest.raises(DataError):
        list(corruption.check(engine) or ())
    missing = "SELECT CAST(1 AS oid) AS oid, 'gone' AS name, 'btree' AS kind, CAST(1 AS oid)"
    monkeypatch.setattr(corruption, "_OBJECTS", missing)
    assert [one.is_damaged for one in corruption.check(engine) or ()] == [False]


def test_a_damaged_table_is_named_and_unchanged(portal: Portal, run_dir: Path) -> None:
    portal.add("The heron keeps the lighthouse lamp.")
    damage(portal.services.database, run_dir, "notifications")
    ill = [line for line in setup.check_deeply(portal.services) if not line.is_well]
    assert [line.text for line in ill] == [
        "DAMAGED: table notifications; restore the last backup (portal restore FILE)"
    ]
