"""Databases of a server: how to address them, and temporary ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from sqlalchemy.engine import make_url


def plain(url: str, **parts: Any) -> str:
    """Return an address of SQLAlchemy in the form of libpq, with some of its parts replaced."""
    changed = make_url(url).set(drivername="postgresql", **parts)
    return changed.render_as_string(hide_password=False)


def named(url: str, name: str) -> str:
    """Return the address of another database of the same server."""
    return make_url(url).set(database=name).render_as_string(hide_password=False)


def execute(url: str, statement: str) -> list[tuple[Any, ...]]:
    """Run a statement outside of a transaction."""
    with psycopg.connect(plain(url), autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def exists(server_url: str, name: str) -> bool:
    """Return whether the server has a database of this name."""
    return bool(execute(server_url, f"SELECT 1 FROM pg_database WHERE datname = '{name}'"))


@contextmanager
def temporary(server_url: str, name: str, options: str = "") -> Iterator[str]:
    """Yield the address of a new database, which is dropped at the end."""
    execute(server_url, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
    execute(server_url, f"CREATE DATABASE {name} {options}")
    try:
        yield named(server_url, name)
    finally:
        execute(server_url, f"DROP DATABASE {name} WITH (FORCE)")
