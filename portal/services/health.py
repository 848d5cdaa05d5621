"""How the portal is: alive, ready, and what its search is made of."""

from __future__ import annotations

from typing import Any

from portal.embeddings.cached import has_failed
from portal.services import Services
from portal.store import embedding_models, keyword_index, model_builds
from portal.store import health as health_store
from portal.store.migrations import newest_revision


def check(services: Services) -> dict[str, Any]:
    """``status`` is ok when the database answers and its schema is the one of this code."""
    database = services.database.answers()
    revision = None
    if database:
        with services.database.begin() as session:
            revision = health_store.read_revision(session)
    migrated = revision is not None and revision == newest_revision()
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
    """Extensions, the keyword index, models and counts. No names and no text of documents."""
    if not services.database.answers():
        return {"status": "unavailable", "reason": "the database does not answer"}
    wanted = services.settings.search.keyword_backend
    with services.database.begin() as session:
        extensions = health_store.read_extensions(session)
        keywords = keyword_index.read_state(session, wanted=wanted)
        counts = health_store.read_counts(session)
        models = health_store.read_models(session)
        serving = embedding_models.find_active(session)
        has_index = serving is None or not model_builds.lacks_index(session, serving)
        index_state = health_store.read_bm25_state(session)
    enabled = services.settings.vector_store_enabled
    missing = counts["missing_embeddings"]
    model_failed = has_failed(services.embedder)
    return {
        "status": _status(enabled=enabled, is_whole=not missing and not model_failed and has_index),
        "enabled": enabled,
        "extensions": extensions,
        "keyword_backend": keywords.backend.value,
        "keyword_index": index_state,
        "vector_index": "ok" if has_index else "missing",
        "embedding_model": _serving(models) or services.embedder.name,
        "embedder": "unavailable" if model_failed else "ok",
        "reranker": services.reranker.name if services.reranker else None,
        "models": models,
        "counts": counts,
    }


def _status(*, enabled: bool, is_whole: bool) -> str:
    if not enabled:
        return "disabled"
    return "ok" if is_whole else "degraded"


def _serving(models: list[dict[str, Any]]) -> str | None:
    return next((model["name"] for model in models if model["status"] == "active"), None)
