"""When the result of a search may be used again: what it depends on, and what is not worth it."""

from __future__ import annotations

from collections.abc import Callable

import structlog

from portal.domain.people import User
from portal.domain.search import SearchMode, SearchOutcome, SearchRequest
from portal.errors import EmbedderUnavailable
from portal.services import Services
from portal.services.models import catalog
from portal.services.search.cache import key_of
from portal.store.search.context import SearchContext
from portal.text.analyser import analyser_version

log = structlog.get_logger(__name__)


def remembered(
    services: Services,
    user: User,
    request: SearchRequest,
    context: SearchContext,
    find: Callable[[], SearchOutcome],
) -> SearchOutcome:
    """The outcome that is kept for just this, else what `find` gives. `context` was read now, in
    this very search; an explanation is of a search that runs."""
    cache = services.search_cache
    if not cache.is_on or request.explain:
        return find()
    try:
        key = key_of(request, user, context, *_of_process(services))
    except TypeError as error:
        log.error("a search cannot be kept", reason=str(error))
        return find()
    kept = cache.get(key)
    if kept is not None:
        return kept
    # Asked before, or it might become so while a search goes on without.
    is_settled = _is_settled(services, request, context)
    outcome = find()
    if is_settled:
        cache.put(key, outcome)
    return outcome


def _of_process(services: Services) -> tuple[object, ...]:
    """What this process searches with. Another that shares the cache may have other settings."""
    settings = services.settings
    return (
        settings.search,
        settings.rerank,
        settings.embedding,
        services.embedder.name,
        services.reranker.name if services.reranker else None,
        analyser_version(),
    )


def _is_settled(services: Services, request: SearchRequest, context: SearchContext) -> bool:
    """Whether confidence is what it will stay: a model's background may not be known yet."""
    if request.mode is SearchMode.KEYWORD:
        return True
    if context.model is None:
        return False
    try:
        return catalog.loaded(services, context.model, is_urgent=True).calibration.ready
    except EmbedderUnavailable:
        return False
