"""A damaged page of an index is found and repaired; what cannot be repaired is named."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import text

from portal.database import corruption
from portal.services.operations import setup
from portal.store.session import Database
from tests.conftest import Portal

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


def test_a_damaged_table_is_named_and_unchanged(portal: Portal, run_dir: Path) -> None:
    portal.add("The heron keeps the lighthouse lamp.")
    damage(portal.services.database, run_dir, "notifications")
    ill = [line for line in setup.check_deeply(portal.services) if not line.is_well]
    assert [line.text for line in ill] == [
        "DAMAGED: table notifications; restore the last backup (portal restore FILE)"
    ]
