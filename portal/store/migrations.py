"""Brings a database to the newest schema, and back."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, text

from portal.domain import locks
from portal.store.models import metadata
from portal.store.session import normalise_url

MIGRATIONS_DIR = Path(__file__).resolve().parents[2] / "migrations"


def _configured(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS_DIR).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def migrate(url: str, revision: str = "head") -> None:
    """Upgrade to `revision`. Processes that start together wait for one another."""
    _run(url, revision, forward=True)


def downgrade(url: str, revision: str) -> None:
    """Go back to `revision`; "base" drops everything."""
    _run(url, revision, forward=False)


def _run(url: str, revision: str, *, forward: bool) -> None:
    engine = create_engine(normalise_url(url))
    with engine.connect() as connection:
        connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": locks.MIGRATION})
        connection.commit()
        try:
            step = command.upgrade if forward else command.downgrade
            step(_configured(connection), revision)
        finally:
            connection.rollback()
            connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": locks.MIGRATION})
            connection.commit()
    engine.dispose()


def current_revision(connection: Connection) -> str | None:
    """The revision the database is at, None before the first migration."""
    return MigrationContext.configure(connection).get_current_revision()


def newest_revision() -> str | None:
    """The revision this code wants."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS_DIR).replace("%", "%%"))
    return ScriptDirectory.from_config(config).get_current_head()


def is_ours(name: str | None, kind: str) -> bool:
    """Whether Alembic should compare this object. The job queue's tables belong to procrastinate;
    partitions and the typed indexes on them are made a model, not a migration."""
    name = name or ""
    if name.startswith("procrastinate"):
        return False
    if kind == "index":
        return not name.startswith(("ix_document_chunks_bm25", "ix_vocabulary_word_trgm"))
    return not (kind == "table" and name.startswith("chunk_embeddings_"))


def differences(connection: Connection) -> list[object]:
    """What autogenerate would change: empty when models and migrations are in step."""
    context = MigrationContext.configure(
        connection,
        opts={
            "compare_type": True,
            "include_object": lambda _object, name, kind, _reflected, _to: is_ours(name, kind),
        },
    )
    return list(compare_metadata(context, metadata))
