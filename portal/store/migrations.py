"""Migrations of the database to the newest schema, and back."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path

from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, text

from portal.domain import locks
from portal.errors import ServerSetup
from portal.store.models import metadata
from portal.store.session import normalise_url

MIGRATIONS_DIR = Path(__file__).resolve().parents[2] / "migrations"
_ASK_AGAIN_S = 0.1


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS_DIR).replace("%", "%%"))
    return config


def _configure(connection: Connection) -> Config:
    config = _config()
    config.attributes["connection"] = connection
    return config


def migrate(url: str, revision: str = "head") -> None:
    """Bring the schema to `revision`, forward or back; "base" drops everything. Each migration is
    committed separately: after an interruption, running it again continues. Processes that start
    together wait for one another.

    Raises ServerSetup if there is no such revision, or the database is at one that only a newer
    portal knows.
    """
    engine = create_engine(normalise_url(url))
    with engine.connect() as connection:
        _await_turn(connection)
        try:
            is_back = _leads_back(current_revision(connection), revision)
            connection.rollback()
            step = command.downgrade if is_back else command.upgrade
            step(_configure(connection), revision)
        finally:
            connection.rollback()
            connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": locks.MIGRATION})
            connection.commit()
    engine.dispose()


def _await_turn(connection: Connection) -> None:
    """Take the migration lock for the lifetime of the connection."""
    # Polls, because a session that waits for a lock holds a snapshot, and a concurrent index build
    # waits for all snapshots: a deadlock.
    statement = text("SELECT pg_try_advisory_lock(:key)")
    while not connection.scalar(statement, {"key": locks.MIGRATION}):
        connection.commit()
        time.sleep(_ASK_AGAIN_S)
    connection.commit()


def _leads_back(current: str | None, revision: str) -> bool:
    """Return whether `revision` comes before the `current` one."""
    known = known_revisions()
    if current is not None and current not in known:
        raise ServerSetup(
            f"The database's schema ({current}) was made by a newer portal; this one knows "
            f"it up to {known[-1]}. Install that portal again, or migrate back with it first."
        )
    if revision not in {"head", "base", *known}:
        raise ServerSetup(
            f"There is no revision {revision}; there are {known[0]} to {known[-1]}, "
            "`head` and `base`."
        )
    if revision in {"head", "base"} or current is None:
        return revision == "base"
    return known.index(revision) < known.index(current)


def current_revision(connection: Connection) -> str | None:
    """Return the revision the database is at, None before the first migration."""
    return MigrationContext.configure(connection).get_current_revision()


def known_revisions() -> list[str]:
    """Return all revisions that this code knows, from the first to the newest."""
    return [script.revision for script in _scripts().walk_revisions()][::-1]


@cache
def newest_revision() -> str | None:
    """Return the revision this code needs."""
    return _scripts().get_current_head()


@cache
def serves_schema(revision: str | None) -> bool:
    """Return whether this code can serve a database at `revision`: its own, or that of a newer
    portal, whose migrations remove nothing that the previous portal uses. So old processes keep
    running while new ones start. An older schema has to be migrated first."""
    return revision is not None and (
        revision == newest_revision() or revision not in known_revisions()
    )


def _scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(_config())


def is_portal_relation(name: str) -> bool:
    """Return whether a table or a type is the portal's or its job queue's."""
    ours = ("procrastinate_", "chunk_embeddings_")
    return name in metadata.tables or name == "alembic_version" or name.startswith(ours)


def is_ours(name: str | None, kind: str) -> bool:
    """Return whether Alembic should compare this object. The job queue's tables belong to
    procrastinate; partitions and the typed indexes on them are created with a model, not by a
    migration."""
    name = name or ""
    if name.startswith("procrastinate"):
        return False
    if kind == "index":
        return not name.startswith(
            ("ix_document_chunks_bm25", "ix_shared_chunks_bm25", "ix_vocabulary_word_trgm")
        )
    return not (kind == "table" and name.startswith("chunk_embeddings_"))


def differences(connection: Connection) -> list[object]:
    """Return what autogenerate would change: empty when models and migrations agree."""
    context = MigrationContext.configure(
        connection,
        opts={
            "compare_type": True,
            "include_object": lambda _object, name, kind, _reflected, _to: is_ours(name, kind),
        },
    )
    return list(compare_metadata(context, metadata))
