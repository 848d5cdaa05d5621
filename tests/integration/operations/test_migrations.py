"""Migrations run in both directions and match the models."""

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


def test_migrating_down_to_base_and_up_again_matches_the_models(database_url: str) -> None:
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


def test_migration_that_fails_leaves_nothing_and_runs_again(database_url: str) -> None:
    migrations.migrate(database_url, "base")
    engine = create_engine(database_url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE chunk_embeddings (id int)"))
    with pytest.raises(ProgrammingError, match="chunk_embeddings"):
        migrations.migrate(database_url)
    with engine.begin() as connection:
        assert migrations.current_revision(connection) is None
        connection.execute(text("DROP TABLE chunk_embeddings"))
        assert connection.execute(text(LEFT)).scalars().all() == []
    migrations.migrate(database_url)
    with engine.connect() as connection:
        assert migrations.differences(connection) == []
    engine.dispose()


def test_unknown_revisions_are_refused(database_url: str) -> None:
    newest, before = migrations.newest_revision(), migrations.known_revisions()[0]
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
