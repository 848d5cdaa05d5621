"""What a process logs of search when it starts: what the server has, not what was asked for."""

from __future__ import annotations

import structlog

from portal.domain.search import KeywordBackend
from portal.domain.semantic import HybridStatus
from portal.errors import DatabaseUnavailable
from portal.services import Services
from portal.services.search import semantic
from portal.services.search.portal_semantic import BACKEND
from portal.services.search.semantic import NO_KEYWORD_INDEX
from portal.store.embedding_models import builds, registry
from portal.store.embedding_models.builds import IndexState
from portal.store.migrations import newest_revision
from portal.store.operations import health
from portal.store.search import keyword_index
from portal.store.search.keyword_index import KeywordState
from portal.store.session import Session

# A process starts without a database that does not answer.
_PATIENCE_S = 1.0

log = structlog.get_logger(__name__)


def announce(services: Services) -> None:
    """Log what searches use, with one warning where hybrid search is semantic only and one where
    the vector index differs from the settings. Of a database that does not answer the first search
    tells."""
    settings = services.settings

    def read(session: Session) -> tuple[KeywordState, IndexState] | None:
        if health.read_revision(session) != newest_revision():
            return None
        model = registry.find_active(session)
        return (
            keyword_index.read_state(session, wanted=settings.search.keyword_backend),
            builds.index_state(session, model, settings.search) if model else IndexState("ok"),
        )

    try:
        found = services.database.probe(read, timeout_s=_PATIENCE_S)
    except DatabaseUnavailable:
        return
    if found is None:
        return
    keywords, index = found
    is_hybrid = keywords.backend is not KeywordBackend.OFF
    is_requested = settings.hybrid_semantic_search
    semantic.announce(
        HybridStatus(
            BACKEND,
            is_requested,
            is_requested and is_hybrid,
            NO_KEYWORD_INDEX if is_requested and not is_hybrid else None,
        ),
        is_told=keywords.alone is not KeywordBackend.OFF,
    )
    log.info(
        "search_configured",
        method="hybrid" if is_hybrid else "semantic",
        keyword_backend=keywords.alone.value,
        keyword_backend_setting=settings.search.keyword_backend,
        vector_index=index.has or index.state,
    )
    if index.state == "differs":
        log.warning(
            "vector index differs from settings",
            has=index.has,
            wanted=index.wanted,
            remedy="a running worker replaces it while searches go on; at once: portal reindex",
        )
