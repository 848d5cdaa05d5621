"""Log at start-up what search can do on this server, which may differ from the settings."""

from __future__ import annotations

import os

import structlog

from portal.domain.search import KeywordBackend
from portal.domain.search.degraded import KEYWORD_UNAVAILABLE
from portal.domain.search.semantic import HybridStatus
from portal.errors import DatabaseUnavailable
from portal.services import Services
from portal.services.search import dynamic_config
from portal.services.search.programs import semantic
from portal.services.search.programs.portal_semantic import BACKEND
from portal.settings import Settings
from portal.settings.unused import UnusedSetting, find_unknown, find_unused, given_fields
from portal.store.embedding_models import builds, registry
from portal.store.embedding_models.builds import IndexState
from portal.store.migrations import serves_schema
from portal.store.operations import health
from portal.store.search.keywords import index as keyword_index
from portal.store.search.keywords.index import KeywordState
from portal.store.session import Session

# A process starts even if the database does not answer.
_TIMEOUT_S = 1.0

log = structlog.get_logger(__name__)


def unused_settings(
    session: Session, settings: Settings, keywords: KeywordState
) -> list[UnusedSetting]:
    """Return the settings that were given and have no effect on this server."""
    config = dynamic_config.read(session, settings.search).model_dump()
    unset = dynamic_config.defaults(settings.search).model_dump()
    given = given_fields(settings, ("search", "hybrid"))
    overridden = [
        UnusedSetting(
            f"PORTAL_SEARCH__HYBRID__{name.upper()}",
            f"an administrator has set {key} to {config[key]} at /admin/search",
        )
        for name, key in dynamic_config.OF_HYBRID_SETTINGS.items()
        if name in given and config[key] != unset[key]
    ]
    is_bm25 = keywords.alone is KeywordBackend.PG_TEXTSEARCH
    return [
        *find_unknown(os.environ),
        *find_unused(settings, ranks_by_bm25=is_bm25),
        *overridden,
    ]


def announce(services: Services) -> None:
    """Log what searches use; warn if hybrid search is semantic only, if the vector index differs
    from the settings, and for each setting without effect. If the database does not answer, the
    first search reports it."""
    settings = services.settings

    def read(session: Session) -> tuple[KeywordState, IndexState, list[UnusedSetting]] | None:
        if not serves_schema(health.read_revision(session)):
            return None
        model = registry.find_active(session)
        keywords = keyword_index.read_state(session, wanted=settings.search.keyword_backend)
        return (
            keywords,
            builds.index_state(session, model, settings.search) if model else IndexState("ok"),
            unused_settings(session, settings, keywords),
        )

    try:
        found = services.database.probe(read, timeout_s=_TIMEOUT_S)
    except DatabaseUnavailable:
        return
    if found is None:
        return
    keywords, index, unused_ones = found
    for unused in unused_ones:
        log.warning("setting_without_effect", setting=unused.name, reason=unused.reason)
    _announce_keywords(settings, keywords, index)
    if index.state == "differs":
        log.warning(
            "vector index differs from settings",
            has=index.has,
            wanted=index.wanted,
            remedy="a running worker replaces it while searches go on; at once: portal reindex",
        )


def _announce_keywords(settings: Settings, keywords: KeywordState, index: IndexState) -> None:
    is_hybrid = keywords.backend is not KeywordBackend.OFF
    is_requested = settings.hybrid_semantic_search
    reason = KEYWORD_UNAVAILABLE if is_requested and not is_hybrid else None
    semantic.announce(
        HybridStatus(BACKEND, is_requested, is_requested and is_hybrid, reason),
        is_intended=keywords.alone is not KeywordBackend.OFF,
    )
    log.info(
        "search_configured",
        method="hybrid" if is_hybrid else "semantic",
        keyword_backend=keywords.alone.value,
        keyword_backend_setting=settings.search.keyword_backend,
        vector_index=index.has or index.state,
    )
