"""The two legs of a search: what each looks for, and what both offer.

`find_offers` chooses a plan by how much is switched on (ADR 10). The vectors of a
small selection are compared in memory; otherwise the statements of both legs are sent at once, on
two connections where one is free. `domain.search.fusion` turns its offers into the rows that users
read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import repeat
from time import perf_counter
from typing import Any

from psycopg import RawCursor
from psycopg.rows import tuple_row

from portal.domain.search import KeywordBackend
from portal.domain.search.fusion import Offer
from portal.observability import tracing
from portal.store.binary_parameters import UuidsParameter, VectorParameter
from portal.store.documents.selection import selection_binds
from portal.store.search.keywords.candidates import Scored, as_arrays
from portal.store.search.keywords.leg import look_up
from portal.store.search.legs import plans
from portal.store.search.legs.statements import (
    KeywordPlan,
    Shape,
    VectorPlan,
    given_statement,
    keyword_statement,
    vector_statement,
)
from portal.store.search.queries import Legs
from portal.store.search.selection.chunk_vectors import (
    ChunkSimilarities,
    ChunkVectors,
    vectors_of_jobs,
)
from portal.store.search.selection.enabled_sets import EnabledSet, EnabledSets
from portal.store.statements import Reader, under

_Hit = tuple[str, float | None, float | None, float]
"""Id, cosine, corrected cosine and BM25 of a chunk."""


@dataclass(frozen=True, slots=True)
class Offers:
    """The offers of both legs, each chunk once, unordered. `documents_version` is that of the
    documents, None when it changed between the legs; `documents` are set where they were
    requested."""

    offers: Sequence[Offer]
    documents_version: int | None
    documents: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def timed(milliseconds: dict[str, float], step: str) -> Iterator[None]:
    """Record the duration of a step."""
    started = perf_counter()
    try:
        with tracing.span(f"search.{step}"):
            yield
    finally:
        milliseconds[step] = round((perf_counter() - started) * 1000, 3)


@dataclass(slots=True)
class Trace:
    """How a search ran, for its explanation: the plan of each leg, the enabled set, milliseconds
    per step."""

    vector_plan: VectorPlan | None = None
    keyword_plan: KeywordPlan | None = None
    enabled: EnabledSet | None = None
    milliseconds: dict[str, float] = field(default_factory=dict)

    def timed(self, step: str) -> AbstractContextManager[None]:
        return timed(self.milliseconds, step)


def find_enabled(reader: Reader, legs: Legs, enabled_sets: EnabledSets) -> EnabledSet:
    """Return what is switched on and matches the filters, with ids when it is small enough to be
    compared exhaustively. Raises DatabaseUnavailable where that takes longer than a search may."""
    most = plans.max_compared(legs.settings.plan, max(legs.total_chunks, legs.visible_chunks))
    return enabled_sets.find(reader, legs.scope, legs.versions, most=most, deadline=legs.deadline)


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
    shape, binds = plans.shape_for(legs, enabled), _binds(legs, enabled)
    trace.vector_plan = shape.vector.plan if shape.vector else None
    trace.keyword_plan = shape.keyword.plan if shape.keyword else None
    settings = plans.server_settings(legs, enabled)
    is_selection = shape.takes_words(KeywordPlan.SELECTION)
    by_vector: list[Any] = []
    by_words: list[Any] = []
    with trace.timed("statement"), ExitStack() as running:
        vectors = _load_vectors(reader, legs, shape, enabled, enabled_sets)
        if vectors is not None:
            shape = replace(shape, vector=None)
        nearest = vector_statement(shape) if shape.vector is not None else None
        near = None
        if spare is not None and nearest is not None and shape.keyword is not None:
            first = running.enter_context(under(reader, settings))
            near = first.send(nearest, binds, tuple_row, keeps_plan=shape.is_plain)
            reader = spare
        with trace.timed("keyword_selection"):
            given = look_up(
                reader, legs, enabled, enabled_sets, settings, is_selection=is_selection
            )
        if vectors is None or not is_selection:
            words: list[RawCursor[Any]] = []
            statements = running.enter_context(under(reader, settings))
            if shape.keyword is not None and not is_selection:
                keeps_plan = shape.is_plain and not shape.takes_words(KeywordPlan.INDEX)
                clause = keyword_statement(shape)
                words.append(statements.send(clause, binds, tuple_row, keeps_plan=keeps_plan))
            if given and vectors is None:
                clause, arrays = given_statement(shape), binds | as_arrays(given)
                words.append(statements.send(clause, arrays, tuple_row, keeps_plan=shape.is_plain))
            if nearest is not None:
                near = near or statements.send(nearest, binds, tuple_row, keeps_plan=shape.is_plain)
                with tracing.span("search.vector_leg", plan=str(trace.vector_plan)):
                    by_vector = near.fetchall()
            with tracing.span("search.keyword_leg", plan=str(trace.keyword_plan)):
                by_words = [row for cursor in words for row in cursor.fetchall()]
        similar = None
        if vectors is not None and legs.vector is not None:
            with tracing.span("search.vector_leg", plan=str(trace.vector_plan)):
                similar = vectors.compare(
                    legs.vector.plain_vector,
                    legs.vector.corrected_vector,
                    is_corrected=legs.vector.is_corrected,
                )
    # Listed ids are valid for the version under which they were read.
    versions = {row[-1] for row in (*by_vector, *by_words)}
    if enabled.ids is not None or legs.has_private or not versions:
        versions = {legs.versions.documents}
    version = versions.pop() if len(versions) == 1 else None
    documents: dict[str, str] = {}
    hits = _hits(by_vector, documents), _hits(by_words, documents)
    if similar is not None:
        hits = _compared(similar, hits[1], given, documents, limit=legs.leg_limit)
    return _merged(*hits, documents, version, limit=legs.leg_limit)


def _load_vectors(
    reader: Reader, legs: Legs, shape: Shape, enabled: EnabledSet, sets: EnabledSets
) -> ChunkVectors | None:
    """Return the vectors of a selection that is compared exhaustively. None where the server
    compares them: of listed chunks, which hardly a second search has, and of more than fit."""
    leg, query = shape.vector, legs.vector
    if leg is None or query is None or leg.plan is not VectorPlan.EXACT or enabled.of_chunks:
        return None
    if enabled.chunk_count * query.plain_vector.nbytes > sets.vectors.max_bytes:
        return None
    source = vectors_of_jobs(leg.partition)
    return sets.vectors.get(reader, source, enabled.ids or "", legs.corpus_version)


def _compared(
    similar: ChunkSimilarities,
    by_words: Sequence[_Hit],
    given: Sequence[Scored],
    documents: dict[str, str],
    *,
    limit: int,
) -> tuple[list[_Hit], list[_Hit]]:
    """Return the hits of both legs with cosines of vectors in memory; fill in `documents`."""
    by_vector: list[_Hit] = []
    for name, document, cosine, corrected in similar.nearest(limit):
        by_vector.append((name, cosine, corrected, 0.0))
        documents[name] = document
    words = [(name, bm25) for name, _, _, bm25 in by_words]
    for chunk_id, document_id, bm25 in given:
        words.append((str(chunk_id), bm25))
        documents[str(chunk_id)] = str(document_id)
    return by_vector, [(name, *similar.of_chunk(name), bm25) for name, bm25 in words]


def _binds(legs: Legs, enabled: EnabledSet) -> dict[str, Any]:
    """Return values for the binds of every shape of the statement."""
    binds: dict[str, Any] = selection_binds(legs.scope.user, legs.scope.conversation_id)
    binds |= legs.scope.narrowing.binds
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


def _merged(
    by_vector: Sequence[_Hit],
    by_words: Sequence[_Hit],
    documents: Mapping[str, str],
    version: int | None,
    *,
    limit: int,
) -> Offers:
    """Return the offers of the legs' hits, each chunk once. Words may be of several statements."""
    found: dict[str, Offer] = {}
    for rank, (name, cosine, likeness, _) in enumerate(by_vector, 1):
        found[name] = Offer(name, rank, None, cosine, likeness)
    best = sorted(by_words, key=lambda one: (-one[3], one[0]))[:limit]
    for rank, (name, cosine, likeness, bm25) in enumerate(best, 1):
        nearest = found[name].vector_rank if name in found else None
        found[name] = Offer(name, nearest, rank, cosine, likeness, bm25)
    return Offers(list(found.values()), version, documents)


def _hits(rows: Sequence[Any], documents: dict[str, str]) -> list[_Hit]:
    """Return the hits in a leg's rows; fill in `documents`."""
    offers: list[_Hit] = []
    for ids, of_documents, cosines, likenesses, scores, _version in rows:
        if ids is not None:
            names = ids[1:-1].split(",")
            offers += zip(names, cosines, likenesses, scores or repeat(0.0), strict=False)
            if of_documents:
                documents.update(zip(names, of_documents[1:-1].split(","), strict=True))
    return offers
