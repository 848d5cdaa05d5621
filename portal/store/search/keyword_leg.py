"""Keyword searches that no index can answer: of a narrow selection, and of chunks that
the user may see but not all users, which are not in the index of shared chunks."""

from __future__ import annotations

from dataclasses import replace

from portal.store.documents.selection import IS_LIMITED
from portal.store.search import keyword_candidates
from portal.store.search.enabled_sets import EnabledSet, EnabledSets
from portal.store.search.keyword_candidates import CachedPostings, Scored
from portal.store.search.queries import Legs
from portal.store.search.term_postings import Bm25Shape, WordWeights
from portal.store.statements import Planner, Reader

# Up to this many of a user's private chunks are listed; only hits among more can be lost.
_MAX_PRIVATE_CHUNKS = 100_000


class OwnWords:
    """BM25 scores computed in the process, with its caches."""

    def __init__(self, reader: Reader, legs: Legs, enabled_sets: EnabledSets) -> None:
        self._reader = reader
        self._legs = legs
        self._enabled_sets = enabled_sets
        self._shape = Bm25Shape(legs.settings.bm25_k1, legs.settings.bm25_b)
        self._kept = CachedPostings(enabled_sets.postings, legs.corpus_version)

    def best_of_selection(self, enabled: EnabledSet, settings: Planner) -> list[Scored]:
        """Return the best chunks of a narrow selection."""
        legs = self._legs
        return keyword_candidates.best_of_selection(
            self._reader,
            legs.keywords.terms if legs.keywords else (),
            enabled,
            shape=self._shape,
            total_chunks=legs.visible_chunks,
            limit=legs.leg_limit,
            # Not by the number of results wanted, or the order of the first ones would depend on
            # it.
            enough=legs.leg_limit // 2,
            settings=settings,
            kept=self._kept,
            corpus=legs.corpus,
            private=self.best_of_private,
            weighed=self._weighed(),
        )

    def best_of_private(self) -> list[Scored]:
        """Return the best of the limited chunks that are switched on and match the filters."""
        legs = self._legs
        if legs.corpus is None or legs.keywords is None or not legs.has_private:
            return []
        narrowing = legs.scope.narrowing
        own = replace(
            legs.scope,
            narrowing=replace(narrowing, documents=f"{narrowing.documents} AND {IS_LIMITED}"),
        )
        enabled = self._enabled_sets.find(
            self._reader, own, legs.versions, most=_MAX_PRIVATE_CHUNKS, deadline=legs.deadline
        )
        if enabled.ids is None:
            # Too many to list: hits that are switched off are dropped when the search joins
            # documents.
            enabled = replace(enabled, ids=legs.corpus.private_jobs, of_chunks=False)
        return keyword_candidates.best_of_private(
            self._reader,
            legs.keywords.terms,
            enabled,
            shape=self._shape,
            corpus=legs.corpus,
            limit=legs.leg_limit,
            kept=self._kept,
            weighed=self._weighed(),
        )

    def _weighed(self) -> WordWeights | None:
        """Return the weights cached for the current state of the index of shared chunks."""
        legs = self._legs
        if legs.corpus is None:
            return None
        version = legs.versions.collection_id, legs.versions.documents, legs.corpus_version
        return self._enabled_sets.shared_weights.get(version)
