"""Migrations go forward and back, and say the same as the models."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import ProgrammingError

from portal.errors import ServerSetup
from portal.store import migrations

LEFT = """
    SELECT relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'public' AND relkind IN ('r', 'p') AND relname <> 'alembic_version'
    UNION ALL
    SELECT proname FROM pg_proc WHERE proname LIKE 'procrastinate%'
    UNION ALL
    SELECT typname FROM pg_type WHERE typname LIKE 'procrastinate%'
"""


def test_down_to_nothing_and_up_again_leaves_models_and_schema_in_step(database_url: str) -> None:
    migrations.migrate(database_url, "base")
    engine = create_engine(database_url)
    with engine.connect() as connection:
        assert connection.execute(text(LEFT)).scalars().all() == []
    migrations.migrate(database_url)
    with engine.connect() as connection:
        assert migrations.differences(connection) == []
        assert migrations.current_revision(connection) == migrations.newest_revision()
    engine.dispose()


def test_processes_that_migrate_together_wait_for_one_another(database_url: str) -> None:
    migrations.migrate(database_url, "base")
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(migrations.migrate, [database_url] * 3))
    engine = create_engine(database_url)
    with engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM collections")).scalar() == 1
    engine.dispose()


def test_migration_that_was_cut_off_goes_on(database_url: str) -> None:
    migrations.migrate(database_url, "0009")
    engine = create_engine(database_url)
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE stored_files ADD COLUMN file_name text"))
        # What a build leaves that dies: an index of that name.
        connection.execute(
            text("CREATE INDEX ix_document_chunks_content ON document_chunks (chunk_index)")
        )
    with pytest.raises(ProgrammingError, match="file_name"):
        migrations.migrate(database_url)
    with engine.connect() as connection:
        # Each is committed by itself.
        assert migrations.current_revision(connection) == "0010"
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE stored_files DROP COLUMN file_name"))
    migrations.migrate(database_url)
    with engine.connect() as connection:
        assert migrations.differences(connection) == []
        made = text(
            "SELECT indisvalid, pg_get_indexdef(indexrelid) FROM pg_index"
            " WHERE indexrelid = CAST('ix_document_chunks_content' AS regclass)"
        )
        is_valid, definition = connection.execute(made).one()
        assert is_valid
        assert "USING hash (content)" in definition
    engine.dispose()


def test_one_revision_back_and_what_cannot_be_gone_to(database_url: str) -> None:
    newest = migrations.newest_revision()
    before = f"{int(newest or 0) - 1:04}"
    engine = create_engine(database_url)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        migrations.migrate(database_url, before)
        assert migrations.current_revision(connection) == before
        with pytest.raises(ServerSetup, match="no revision 9999"):
            migrations.migrate(database_url, "9999")
        migrations.migrate(database_url)
        assert migrations.current_revision(connection) == newest
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
        for wanted in ("head", before):
            with pytest.raises(ServerSetup, match="newer portal"):
                migrations.migrate(database_url, wanted)
    engine.dispose()


def test_slow_files_that_wait_are_served_by_older_workers_after_a_downgrade(
    database_url: str,
) -> None:
    engine = create_engine(database_url)
    with engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO procrastinate_jobs (queue_name, task_name, status) "
                "SELECT 'ingest_slow', 'index_document', "
                "CAST(status AS procrastinate_job_status) "
                "FROM unnest(ARRAY['todo', 'doing', 'failed']) status"
            )
        )
    migrations.migrate(database_url, "0008")
    with engine.connect() as connection:
        waiting = "SELECT DISTINCT queue_name FROM procrastinate_jobs WHERE status <> 'failed'"
        assert connection.execute(text(waiting)).scalars().all() == ["ingest"]
    engine.dispose()
