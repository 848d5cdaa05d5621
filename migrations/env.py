"""Alembic's entry: runs on the connection that portal.store.migrations hands over."""

from __future__ import annotations

from alembic import context
from sqlalchemy import Connection, create_engine, text

from portal.settings import load_settings
from portal.store.migrations import is_ours
from portal.store.models import metadata
from portal.store.session import normalise_url


def run(connection: Connection) -> None:
    # A migration that waits for a lock makes everyone behind it wait as well: better to give up.
    connection.execute(text("SET lock_timeout = '10s'"))
    connection.commit()
    context.configure(
        connection=connection,
        target_metadata=metadata,
        compare_type=True,
        # The locks of one are not held while the next works; after a crash the rest is still to do.
        transaction_per_migration=True,
        include_object=lambda _object, name, kind, _reflected, _to: is_ours(name, kind),
    )
    with context.begin_transaction():
        context.run_migrations()
    connection.commit()


connection = context.config.attributes.get("connection")
if connection is not None:
    run(connection)
else:
    url = load_settings().database_url
    if not url:
        raise SystemExit("Set DATABASE_URL, or use `portal migrate`.")
    with create_engine(normalise_url(url)).connect() as own_connection:
        run(own_connection)
