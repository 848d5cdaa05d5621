"""The documents and chunks that users have switched on, cached until something changes.

Collecting them takes milliseconds at ten thousand documents, about as long as a search. The result
is therefore cached in the process under versions, which triggers update in the same transaction
that toggles, trashes, publishes or changes the visibility of a document: the next search of any
process reads other versions and computes the set again.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from threading import Lock

from cachetools import LRUCache

from portal.store.search.selection.chunk_vectors import ChunkVectors
from portal.store.search.selection.enabled import EnabledQuery, EnabledSet
from portal.store.search.selection.row_cache import RowCache
from portal.store.search.selection.scope import Versions
from portal.store.search.selection.term_postings import TermPostings, WeightsCache
from portal.store.search.selection.visible_corpus import VisibleCorpora

_CACHE_BYTES = 32 * 1024 * 1024
# The words of ten thousand chunks take half of it.
_WORDS_BYTES = 64 * 1024 * 1024


class EnabledSets:
    """A process's LRU caches of enabled sets, of the words and vectors of small ones, of what users
    may see, and of the weights of words. Thread-safe."""

    def __init__(self) -> None:
        self.postings = RowCache[TermPostings](_WORDS_BYTES)
        self.vectors = RowCache[ChunkVectors](_CACHE_BYTES)
        self.visible = VisibleCorpora()
        self.shared_weights = WeightsCache()
        self._lock = Lock()
        self._cache: LRUCache[Hashable, tuple[Versions, EnabledSet]] = LRUCache(
            _CACHE_BYTES, getsizeof=lambda entry: entry[1].size_bytes
        )

    def find(self, query: EnabledQuery) -> EnabledSet:
        """Return what is enabled in a scope, with ids if it has few enough chunks."""
        enabled = self.get(query)
        if not query.scope.narrowing.chunks or not enabled.document_count:
            return enabled
        # Conditions on chunks are evaluated chunk by chunk, and a query may have many.
        fitting = query.list_chunks()
        # Too many to list: conditions on chunks are then evaluated in the legs, except in a leg
        # that compares all of a listed set.
        return fitting if fitting.ids is not None else replace(enabled, ids=None)

    def get(self, query: EnabledQuery) -> EnabledSet:
        """Return the set from the cache, updated from one of earlier versions if possible, or else
        counted."""
        key = query.scope.key()
        with self._lock:
            kept = self._cache.get(key)
        if kept is not None and kept[0] == query.versions and not kept[1].lacks_slots:
            return kept[1]
        found = (kept and query.follow(*kept)) or query.count()
        with self._lock:
            # A set that is larger than the whole cache is not stored.
            if found.size_bytes <= _CACHE_BYTES:
                self._cache[key] = (query.versions, found)
        return found
