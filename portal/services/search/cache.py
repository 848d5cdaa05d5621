"""Search results, cached for some minutes and never stale.

An entry is keyed by everything it was computed from: the user, the request, and the context at the
time (`store.search.context`), which carries the versions of the corpus and of the user's selection.
Triggers bump those versions in the same transaction that changes the data, and every search reads
them, so a change leads to another key. The key covers every field of those values, so that none can
be forgotten. Values are stored as JSON: another writer to the cache could forge a result but not
run code.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from threading import Lock
from typing import TYPE_CHECKING, Any
from uuid import UUID

import structlog
from cachetools import TTLCache
from pydantic import BaseModel, TypeAdapter

from portal.domain.caching import SharedCache
from portal.domain.search import SearchMode, SearchOutcome, SearchRequest
from portal.errors import EmbedderUnavailable
from portal.observability import metrics
from portal.settings import SearchSettings
from portal.text.terms.analyser import analyser_version

if TYPE_CHECKING:
    from portal.domain.people import User
    from portal.services import Services
    from portal.store.search.context import SearchContext

_MEBIBYTE = 1024 * 1024
_MAX_BYTES = 256 * 1024
"""Longer results are not worth the space."""
_ENTRY_BYTES = 300
"""Overhead of an entry beside its result."""

_outcomes = TypeAdapter(SearchOutcome)

log = structlog.get_logger(__name__)


class SearchCache:
    """Search results cached in the process and in the cache that processes share. Thread-safe.

    Without settings, or with a lifetime of 0 seconds, nothing is cached.
    """

    def __init__(
        self, shared: SharedCache | None = None, settings: SearchSettings | None = None
    ) -> None:
        self._shared = shared
        self._ttl_s = settings.cache_ttl_s if settings else 0
        self._cache: TTLCache[str, bytes] = TTLCache(
            (settings.cache_mb if settings else 0) * _MEBIBYTE,
            self._ttl_s,
            getsizeof=lambda value: len(value) + _ENTRY_BYTES,
        )
        self._lock = Lock()

    @property
    def is_on(self) -> bool:
        return self._ttl_s > 0

    def get(self, key: str) -> SearchOutcome | None:
        """Return the entry for a key made by `key_of`."""
        with self._lock:
            found = self._cache.get(key)
        if found is None and self._shared is not None:
            found = self._shared.get(key)
        outcome = _read(found) if found is not None else None
        metrics.cache_asked("search_results", hit=outcome is not None)
        return outcome

    def put(self, key: str, outcome: SearchOutcome) -> None:
        """Cache an outcome, unless it is degraded or very long."""
        if outcome.degraded:
            return
        value = _outcomes.dump_json(outcome)
        if len(value) > _MAX_BYTES:
            return
        with self._lock:
            self._cache[key] = value
        if self._shared is not None:
            self._shared.put(key, value, ttl_s=self._ttl_s)


def _read(value: bytes) -> SearchOutcome | None:
    try:
        return _outcomes.validate_json(value)
    except ValueError:
        # Written by another release while a new version is rolled out.
        log.info("cached_search_unreadable")
        return None


def key_of_search(
    services: Services, user: User, request: SearchRequest, context: SearchContext
) -> str | None:
    """Return the cache key of a search, None if it is not cached: an explanation describes a search
    that ran. The key includes the settings, in which processes that share the cache may differ."""
    if not services.search_cache.is_on or request.explain:
        return None
    settings, reranker = services.settings, services.reranker
    try:
        return key_of(
            request,
            user,
            context,
            settings.search,
            settings.rerank,
            settings.embedding,
            services.embedder.name,
            reranker.name if reranker else None,
            analyser_version(),
        )
    except TypeError as error:
        log.error("search_not_cacheable", reason=str(error))
        return None


def is_settled(services: Services, request: SearchRequest, context: SearchContext) -> bool:
    """Return whether confidence is final, which it is not until a model's background is known."""
    if request.mode is SearchMode.KEYWORD:
        return True
    if context.model is None:
        return False
    from portal.services.models import catalog  # Imports the services that use this cache.

    try:
        return catalog.loaded(services, context.model, is_urgent=True).calibration.ready
    except EmbedderUnavailable:
        return False


def key_of(*parts: Any) -> str:
    """Return a key that differs whenever any field of any part does. Raises TypeError for a part,
    or a value in it, whose fields are unknown."""
    text = json.dumps([_plain(part) for part in parts], ensure_ascii=True, separators=(",", ":"))
    return f"search:{hashlib.sha256(text.encode()).hexdigest()}"


def _plain(value: Any) -> Any:
    """Convert a value to JSON types, tagged with its type where JSON would be ambiguous."""
    match value:
        case None | bool() | int() | float() | str() if not isinstance(value, Enum):
            return value
        case Enum() | UUID() | datetime():
            return [type(value).__name__, str(value)]
        case BaseModel():
            return [type(value).__name__, _plain(value.model_dump(mode="json"))]
        case Mapping():
            return [[str(key), _plain(value[key])] for key in sorted(value, key=str)]
        case list() | tuple():
            return [_plain(each) for each in value]
        case _ if is_dataclass(value):
            named = {field.name: getattr(value, field.name) for field in fields(value)}
            return [type(value).__name__, _plain(named)]
    raise TypeError(f"no field of a key: {type(value).__name__}")
