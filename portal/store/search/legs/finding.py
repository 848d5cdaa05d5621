"""The chunks that both legs find.

`find_offers` runs the plans that `plans` chose by how much is switched on (ADR 10). The statements
of both legs are sent at once, on two connections if a second one is free. Two things need no index
of the server: the vectors of a small selection are compared in memory, and the words of a narrow
one are looked up beforehand (`keywords.leg`). `domain.search.fusion` turns the offers into the rows
that users read.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain
from typing import Any

from portal.domain.search import KeywordBackend
from portal.observability import tracing
from portal.store.binary_parameters import UuidsParameter, VectorParameter
from portal.store.documents.selection import selection_binds
from portal.store.search.keywords.candidates import Scored, as_arrays
from portal.store.search.keywords.leg import look_up
from portal.store.search.legs import plans
from portal.store.search.legs.offers import Hit, Offers, hits_of, merge_hits
from portal.store.search.legs.statements import (
    KeywordPlan,
    Shape,
    VectorPlan,
    given_statement,
    keyword_statement,
    vector_statement,
)
from portal.store.search.legs.trace import Trace
from portal.store.search.queries import Legs, VectorQuery
from portal.store.search.selection.chunk_vectors import (
    ChunkSimilarities,
    ChunkVectors,
    vectors_of_jobs,
)
from portal.store.search.selection.enabled import EnabledQuery, EnabledSet
from portal.store.search.selection.enabled_sets import EnabledSets
from portal.store.statements import Reader, Statement, sending


def find_enabled(reader: Reader, legs: Legs, enabled_sets: EnabledSets) -> EnabledSet:
    """Return the set that is switched on and matches the filters, with ids if it is small enough to
    be compared exhaustively. Raises DatabaseUnavailable after the deadline of the search."""
    max_chunks = plans.max_compared(legs.settings.plan, max(legs.total_chunks, legs.visible_chunks))
    return enabled_sets.find(
        EnabledQuery(reader, legs.scope, legs.versions, max_chunks, legs.deadline)
    )


def find_offers(
    reader: Reader,
    legs: Legs,
    enabled: EnabledSet,
    enabled_sets: EnabledSets,
    trace: Trace,
    *,
    spare: Reader | None = None,
) -> Offers:
    """Return the chunks that either leg finds in the enabled set. With a `spare` connection the
    legs run side by side, otherwise one after the other."""
    shape, settings = plans.shape_for(legs, enabled), plans.server_settings(legs, enabled)
    trace.note_plans(shape)
    is_selection = shape.takes_words(KeywordPlan.SELECTION)
    with trace.timed("statement"), ExitStack() as beside, ExitStack() as running:
        vectors = _load_vectors(reader, legs, shape, enabled, enabled_sets)
        if vectors is not None:
            shape = replace(shape, vector=None)
        binds = _binds(legs, enabled)
        near = _vector_statements(shape, binds)
        nearest = []
        if spare is not None and near and shape.keyword is not None:
            nearest = beside.enter_context(sending(reader, settings, near))
            reader, near = spare, []
        with trace.timed("keyword_selection"):
            given = look_up(
                reader, legs, enabled, enabled_sets, settings, is_selection=is_selection
            )
        words = _keyword_statements(shape, binds, given if vectors is None else ())
        # Statements that keep their plan come last.
        found = running.enter_context(sending(reader, settings, [*words, *near]))
        nearest += found[len(words) :]
        similar = _compared(vectors, legs.vector)
        # Words are found first; their hits are read while the other server process walks the graph.
        with tracing.span("search.keyword_leg", plan=str(trace.keyword_plan)):
            running.close()
            by_words = hits_of(chain.from_iterable(found[: len(words)]))
        with tracing.span("search.vector_leg", plan=str(trace.vector_plan)):
            beside.close()
            by_vector = hits_of(chain.from_iterable(nearest))
    if similar is not None:
        by_vector = [(*hit, 0.0) for hit in similar.nearest(legs.leg_limit)]
        by_words = _add_cosines(similar, by_words, given)
    documents = {}
    if legs.by_document:
        documents = {chunk_id: document_id for chunk_id, document_id, *_ in by_vector + by_words}
    return Offers(merge_hits(by_vector, by_words, limit=legs.leg_limit), documents)


def _load_vectors(
    reader: Reader, legs: Legs, shape: Shape, enabled: EnabledSet, sets: EnabledSets
) -> ChunkVectors | None:
    """Return the vectors of a selection that is compared exhaustively. None if the server compares
    them: those of listed chunks, which are rarely the same twice, and more than the cache holds."""
    leg, query = shape.vector, legs.vector
    if leg is None or query is None or leg.plan is not VectorPlan.EXACT or enabled.of_chunks:
        return None
    if enabled.chunk_count * query.plain_vector.nbytes > sets.vectors.max_bytes:
        return None
    source = vectors_of_jobs(leg.partition)
    return sets.vectors.get(reader, source, enabled.ids or "", legs.corpus_version)


def _vector_statements(shape: Shape, binds: dict[str, Any]) -> list[Statement]:
    """Return the statements of the vector leg, if any."""
    if shape.vector is None:
        return []
    return [Statement(vector_statement(shape), binds, shape.is_plain)]


def _keyword_statements(
    shape: Shape, binds: dict[str, Any], given: Sequence[Scored]
) -> list[Statement]:
    """Return the statements of the keyword leg: for its best chunks, and for the cosines of those
    that were looked up beforehand."""
    statements = []
    if shape.keyword is not None and not shape.takes_words(KeywordPlan.SELECTION):
        keeps_plan = shape.is_plain and not shape.takes_words(KeywordPlan.INDEX)
        statements.append(Statement(keyword_statement(shape), binds, keeps_plan))
    if given:
        arrays = binds | as_arrays(given)
        statements.append(Statement(given_statement(shape), arrays, shape.is_plain))
    return statements


def _binds(legs: Legs, enabled: EnabledSet) -> dict[str, Any]:
    """Return values for the binds of every shape of the statements."""
    binds: dict[str, Any] = selection_binds(legs.scope.user, legs.scope.conversation_id)
    binds |= legs.scope.narrowing.binds
    binds |= enabled.slots.binds if enabled.slots else {}
    binds |= {
        "collection_id": legs.versions.collection_id,
        "enabled_ids": None if enabled.ids is None else UuidsParameter(enabled.ids),
        "leg_limit": legs.leg_limit,
    }
    if legs.vector is not None:
        binds |= {
            "search_vector": VectorParameter(legs.vector.search_vector),
            "plain_vector": VectorParameter(legs.vector.plain_vector),
            "corrected_vector": VectorParameter(legs.vector.corrected_vector),
        }
    if legs.keywords is not None:
        binds |= {"words": legs.keywords.words, "words_again": legs.keywords.words}
        if legs.keywords.backend is KeywordBackend.TSVECTOR:
            text = legs.settings.text
            binds |= {"label_weights": list(text.weights), "normalization": text.normalization}
    return binds


def _compared(vectors: ChunkVectors | None, query: VectorQuery | None) -> ChunkSimilarities | None:
    """Return the similarities of vectors in memory to a query."""
    if vectors is None or query is None:
        return None
    return vectors.compare(
        query.plain_vector, query.corrected_vector, is_corrected=query.is_corrected
    )


def _add_cosines(
    similar: ChunkSimilarities, by_words: Sequence[Hit], given: Sequence[Scored]
) -> list[Hit]:
    """Return the hits of the server and those that were looked up, with their cosines."""
    hits = [(chunk_id, document_id, bm25) for chunk_id, document_id, _, _, bm25 in by_words]
    hits += [(str(chunk_id), str(document_id), bm25) for chunk_id, document_id, bm25 in given]
    return [(name, document, *similar.of_chunk(name), bm25) for name, document, bm25 in hits]
