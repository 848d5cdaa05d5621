"""Open the database for a program's store."""

from __future__ import annotations

import atexit
import os
from functools import lru_cache
from pathlib import Path
from threading import Lock

from portal.answering import create_chat_model
from portal.database import bm25, extensions
from portal.database.embedded import EmbeddedPostgres
from portal.domain.embedding import Embedder
from portal.domain.search.bm25 import Bm25Parameters
from portal.embeddings import create_embedder
from portal.embeddings.calibration.eventual import EventualCalibration
from portal.errors import ServerSetup
from portal.reranking import create_reranker
from portal.services import Services
from portal.settings import EmbeddingSettings, Settings, load_settings
from portal.store import migrations
from portal.store.session import Database, normalise_url

Connection = str | Settings | Database

_lock = Lock()
# Also by process: connections must not be shared across a fork.
_databases: dict[tuple[int, str], Database] = {}
_servers: dict[tuple[int, str], EmbeddedPostgres] = {}
_services: dict[int, Services] = {}


def connect(connection: Connection | None) -> tuple[Database, Settings]:
    """Return the database and settings for a URL, settings, or a Database; None means this
    machine's settings, and without DATABASE_URL the embedded server.

    Stores in one process share the connections to a database. Raises ServerSetup.
    """
    settings = connection if isinstance(connection, Settings) else load_settings()
    if isinstance(connection, Database):
        return connection, settings
    url = connection if isinstance(connection, str) else settings.database_url
    with _lock:
        url = normalise_url(url) if url else _start_embedded(settings)
        key = os.getpid(), url
        if key not in _databases:
            _databases[key] = _open(url, settings)
        return _databases[key], settings


def open_services(connection: Connection | Services | None) -> Services:
    """Return services for searching the portal's documents, on the database of `connect`.

    Programs sign no tokens, so the portal's secret key is neither read nor created, and Redis is
    not used. Readers in one process share the models and caches of a database. Raises ServerSetup.
    """
    if isinstance(connection, Services):
        return connection
    database, settings = connect(connection)
    with _lock:
        known = _services.get(id(database))
        if known is None or known.database is not database or known.settings != settings:
            embedder = portal_model(settings)
            known = _services[id(database)] = Services(
                settings=settings,
                database=database,
                embedder=embedder,
                calibration=EventualCalibration(embedder, settings.data_dir / "cache"),
                chat=create_chat_model(settings.chat, embedder),
                secret_key="",
                reranker=create_reranker(settings.rerank),
            )
        return known


def portal_model(settings: Settings) -> Embedder:
    """Return the portal's own model. The stores of a process share it, since older callers open a
    store for each request, and loading takes seconds."""
    cache_dir = settings.data_dir / "cache"
    return _model(settings.embedding, cache_dir if cache_dir.is_dir() else None)


@lru_cache(maxsize=4)
def _model(settings: EmbeddingSettings, cache_dir: Path | None) -> Embedder:
    return create_embedder(settings, cache_dir=cache_dir)


def _open(url: str, settings: Settings) -> Database:
    database = Database(url, pool_size=settings.database_pool_size)
    with database.begin() as session:
        revision = migrations.current_revision(session.connection())
    if revision is None:
        database.dispose()
        raise ServerSetup(
            "the database has none of the portal's tables; make them by `portal migrate`"
        )
    return database


def _start_embedded(settings: Settings) -> str:
    """Join the embedded server, or start it for the life of this process."""
    key = os.getpid(), str(settings.data_dir)
    server = _servers.get(key)
    if server is not None and server.is_running():
        return normalise_url(server.url())
    server = EmbeddedPostgres(settings.data_dir)
    was_running = server.is_running()
    url = normalise_url(server.start())
    if not _servers:
        atexit.register(disconnect)
    _servers[key] = server
    if not was_running:
        _prepare(url, settings)
    return url


def disconnect() -> None:
    """Close this process's connections, and stop embedded servers that no other process uses."""
    with _lock:
        _services.clear()
        for databases in [key for key in _databases if key[0] == os.getpid()]:
            _databases.pop(databases).dispose()
        for servers in [key for key in _servers if key[0] == os.getpid()]:
            _servers.pop(servers).leave()


def _prepare(url: str, settings: Settings) -> None:
    """Prepare a database as the portal does at its start, without loading a model."""
    database = Database(url, pool_size=1)
    with database.engine.connect() as connection:
        extensions.ensure_extensions(connection)
    migrations.migrate(url)
    parameters = Bm25Parameters(k1=settings.search.bm25_k1, b=settings.search.bm25_b)
    if settings.search.keyword_backend in {"auto", "pg_textsearch"}:
        with database.engine.begin() as connection:
            has_index = bm25.ensure_index(connection, parameters)
        if has_index:
            bm25.rebuild_after_start(database.engine, parameters)
    database.dispose()
