"""Build the services from the settings."""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from portal.answering import create_chat_model
from portal.embeddings import create_embedder
from portal.embeddings.calibration.eventual import EventualCalibration
from portal.errors import ServerSetup
from portal.observability import tracing
from portal.observability.logs import configure_logs
from portal.reranking import create_reranker
from portal.services import Services
from portal.services.people.federation.issuer_keys import create_issuer_keys
from portal.services.people.federation.oidc_provider import create_oidc_provider
from portal.services.search.cache import SearchCache
from portal.settings import Settings, load_settings
from portal.settings.all_settings import MIN_SECRET_KEY_BYTES
from portal.store.session import Database
from portal.text.terms.analyser import analyse_in

if TYPE_CHECKING:
    from portal.store.redis_store import RedisStore

_SECRET_BYTES = 48
_NAME_CHARACTERS = 16


def build_services(
    settings: Settings | None = None,
    *,
    database_url: str | None = None,
    statement_timeout_s: float | None = None,
) -> Services:
    """Build what a process works with; `statement_timeout_s` bounds its statements. Raises
    ServerSetup without a database, InvalidSetting."""
    settings = settings or load_settings()
    configure_logs(settings)
    if settings.tracing.endpoint is not None:
        tracing.export_to(settings.tracing.endpoint)
    analyse_in(settings.search.text.language)
    url = database_url or settings.database_url
    if not url:
        raise ServerSetup("there is no database: set DATABASE_URL, or start everything with ./run")
    secret_key = read_secret_key(settings)
    old_secret_key = settings.secret_key_old.get_secret_value() if settings.secret_key_old else None
    # By the older key, so that processes find the same limits and caches while keys are rotated.
    redis = _connect_redis(settings, old_secret_key or secret_key)
    embedder = create_embedder(settings.embedding, redis, settings.data_dir / "cache")
    return Services(
        settings=settings,
        database=Database(
            url,
            pool_size=settings.database_pool_size,
            pool_timeout_s=settings.database_pool_timeout_s,
            statement_timeout_s=statement_timeout_s,
            shares_connections=settings.database_pooler == "transaction",
            replica_urls=settings.replica_urls,
            replica_wait_s=settings.database_replica_wait_s,
            outage_s=settings.database_outage_reads_s,
        ),
        embedder=embedder,
        calibration=EventualCalibration(embedder, settings.data_dir / "cache"),
        chat=create_chat_model(settings.chat, embedder),
        secret_key=secret_key,
        old_secret_key=old_secret_key,
        reranker=create_reranker(settings.rerank),
        issuer_keys=create_issuer_keys(settings.jwt.outside),
        oidc=create_oidc_provider(settings.oidc, leeway_s=settings.jwt.leeway_s),
        redis=redis,
        search_cache=SearchCache(redis, settings.search),
    )


@contextmanager
def opened_services(settings: Settings, url: str | None = None) -> Iterator[Services]:
    """Build services for a task, and close their connections at its end."""
    services = build_services(settings, database_url=url)
    try:
        yield services
    finally:
        services.database.dispose()


def _connect_redis(settings: Settings, secret_key: str) -> RedisStore | None:
    if settings.redis_url is None:
        return None
    from portal.store.redis_store import RedisStore

    return RedisStore(settings.redis_url, portal=portal_name(secret_key))


def portal_name(secret_key: str) -> str:
    """Return the prefix of this portal's keys in Redis, derived from its secret key."""
    digest = hmac.new(secret_key.encode(), b"the name of a portal", "sha256")
    return digest.hexdigest()[:_NAME_CHARACTERS]


def read_secret_key(settings: Settings) -> str:
    """Return the key that signs tokens: the setting, or one made once in the data directory."""
    if settings.secret_key is not None:
        return settings.secret_key.get_secret_value()
    path = settings.data_dir / "secret_key"
    try:
        settings.data_dir.mkdir(parents=True, exist_ok=True)
        _make_once(path)
        key = path.read_text(encoding="ascii").strip()
    except OSError as error:
        reason = f"cannot keep a secret key in {path}: {error.strerror}; set PORTAL_SECRET_KEY"
        raise ServerSetup(reason) from error
    if len(key) < MIN_SECRET_KEY_BYTES:
        raise ServerSetup(
            f"the secret key in {path} has fewer than {MIN_SECRET_KEY_BYTES} bytes. Delete "
            "the file to have a new one made; everyone then has to sign in again"
        )
    return key


def _make_once(path: Path) -> None:
    # Written aside and linked into place, so that of two processes that start together both
    # read the same whole key.
    if path.exists():
        return
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(secrets.token_urlsafe(_SECRET_BYTES))
    try:
        os.link(aside, path)
    except FileExistsError:
        pass
    finally:
        aside.unlink()
