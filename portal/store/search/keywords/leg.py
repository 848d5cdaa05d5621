"""Keyword hits that no index can find: in a narrow selection, and in chunks that the user may see
but not all users, which are not in the index of shared chunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from portal.domain.search.bm25 import Bm25Parameters
from portal.store.documents.selection import IS_LIMITED
from portal.store.search.keywords.candidates import KeywordScorer, Scored
from portal.store.search.queries import Legs
from portal.store.search.selection.enabled import EnabledQuery, EnabledSet
from portal.store.search.selection.enabled_sets import EnabledSets
from portal.store.search.selection.term_postings import WordWeights
from portal.store.statements import Planner, Reader

# Up to this many of a user's private chunks are listed; if there are more, hits may be lost.
_MAX_PRIVATE_CHUNKS = 100_000


def look_up(
    reader: Reader, legs: Legs, enabled: EnabledSet, sets: EnabledSets, settings: Planner,
    *, is_selection: bool,
) -> Sequence[Scored]:  # fmt: skip
    """Return the best chunks of a narrow selection, otherwise of the limited chunks in it."""
    if legs.keywords is None or not (is_selection or legs.has_private):
        return ()
    version = legs.versions.collection_id, legs.versions.documents, legs.corpus_version
    words = KeywordScorer(
        reader,
        legs.keywords.terms,
        Bm25Parameters(legs.settings.bm25_k1, legs.settings.bm25_b),
        legs.leg_limit,
        legs.corpus,
        legs.corpus_version,
        # Cached for the current state of the index of shared chunks.
        WordWeights() if legs.corpus is None else sets.shared_weights.get(version),
        sets.postings,
    )
    if not is_selection:
        return _best_of_private(words, legs, sets)
    return words.best_of_selection(
        enabled,
        total_chunks=legs.visible_chunks,
        # Independent of the number of results wanted, or the order of the first would depend on it.
        enough=legs.leg_limit // 2,
        settings=settings,
        private=lambda: _best_of_private(words, legs, sets),
    )


def _best_of_private(words: KeywordScorer, legs: Legs, sets: EnabledSets) -> list[Scored]:
    """Return the best of the limited chunks that are switched on and match the filters."""
    if legs.corpus is None or not legs.has_private:
        return []
    narrowing = legs.scope.narrowing
    conditions = f"{narrowing.documents} AND {IS_LIMITED}"
    own = replace(legs.scope, narrowing=replace(narrowing, documents=conditions))
    query = EnabledQuery(words.reader, own, legs.versions, _MAX_PRIVATE_CHUNKS, legs.deadline)
    enabled = sets.find(query)
    if enabled.ids is None:
        # Too many to list: hits that are switched off are dropped when the search joins documents.
        enabled = replace(enabled, ids=legs.corpus.private_jobs, of_chunks=False)
    return words.best_of_private(enabled)
