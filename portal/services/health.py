"""How the portal is: alive, ready, and what its search is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from portal.embeddings.cached import has_failed
from portal.errors import DatabaseUnavailable
from portal.services import Services
from portal.store import embedding_models, keyword_index, model_builds
from portal.store import health as health_store
from portal.store.keyword_index import KeywordState
from portal.store.migrations import newest_revision
from portal.store.session import Session

# Whoever asks has been told to wait for a second (a load balancer, a container's health check).
_PATIENCE_S = 0.5
_COUNTING_PATIENCE_S = 0.35


def check(services: Services) -> dict[str, Any]:
    """``status`` is ok when the database answers and its schema is the one of this code. Comes
    back within a second, also when the database is frozen."""
    try:
        revision = services.database.probe(health_store.read_revision, timeout_s=_PATIENCE_S)
    except DatabaseUnavailable:
        database, migrated = False, False
    else:
        database, migrated = True, revision is not None and revision == newest_revision()
    return {
        "status": "ok" if database and migrated else "unavailable",
        "live": True,
        "ready": database and migrated,
        "checks": {
            "database": "ok" if database else "unavailable",
            "schema": "ok" if migrated else "behind",
        },
    }


def check_vector_store(services: Services) -> dict[str, Any]:
    """Extensions, the keyword index, models and counts. No names and no text of documents.

    Comes back within a second; ``counts`` is None where counting takes longer than that. However
    many ask at once, the database is asked once: /health, which others rely on, goes first.
    """
    return services.vector_store_looks.ask(lambda: _look_at_vector_store(services))


def _look_at_vector_store(services: Services) -> dict[str, Any]:
    wanted = services.settings.search.keyword_backend
    try:
        state = services.database.probe(
            lambda session: _read_index_state(session, wanted), timeout_s=_PATIENCE_S
        )
    except DatabaseUnavailable:
        return {"status": "unavailable", "reason": "the database does not answer"}
    counts = count(services)
    enabled, model_failed = services.settings.vector_store_enabled, has_failed(services.embedder)
    is_whole = state.has_vector_index and not model_failed
    return {
        "status": _status(
            enabled=enabled, is_whole=is_whole and not (counts and counts["missing_embeddings"])
        ),
        "enabled": enabled,
        "extensions": state.extensions,
        "keyword_backend": state.keywords.backend.value,
        "keyword_index": state.keyword_index,
        "vector_index": "ok" if state.has_vector_index else "missing",
        "embedding_model": _serving(state.models) or services.embedder.name,
        "embedder": "unavailable" if model_failed else "ok",
        "reranker": services.reranker.name if services.reranker else None,
        "models": state.models,
        "counts": counts,
    }


def count(services: Services) -> dict[str, int] | None:
    """Documents, passages, and passages without a vector; None where that takes too long."""
    try:
        return services.database.probe(health_store.read_counts, timeout_s=_COUNTING_PATIENCE_S)
    except DatabaseUnavailable:
        return None


@dataclass(frozen=True, slots=True)
class _IndexState:
    extensions: dict[str, str]
    keywords: KeywordState
    keyword_index: dict[str, Any] | None
    models: list[dict[str, Any]]
    has_vector_index: bool


def _read_index_state(session: Session, wanted: str) -> _IndexState:
    serving = embedding_models.find_active(session)
    return _IndexState(
        extensions=health_store.read_extensions(session),
        keywords=keyword_index.read_state(session, wanted=wanted),
        keyword_index=health_store.read_bm25_state(session),
        models=health_store.read_models(session),
        has_vector_index=serving is None or not model_builds.lacks_index(session, serving),
    )


def _status(*, enabled: bool, is_whole: bool) -> str:
    if not enabled:
        return "disabled"
    return "ok" if is_whole else "degraded"


def _serving(models: list[dict[str, Any]]) -> str | None:
    return next((model["name"] for model in models if model["status"] == "active"), None)
