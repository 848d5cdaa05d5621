"""The two legs of a search: what each looks for, and what both offer.

`find_offers` chooses a plan by how much is switched on (ADR 10), looks up words, and runs one
statement. `domain.fusion` turns its offers into the rows that users read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

from psycopg.rows import scalar_row, tuple_row

from portal.domain.fusion import Offer
from portal.domain.search import KeywordBackend
from portal.store.documents.selection import selection_binds
from portal.store.search import leg_plans
from portal.store.search.enabled_sets import EnabledSet, EnabledSets
from portal.store.search.keyword_candidates import KEYWORD_ARRAYS
from portal.store.search.keyword_leg import OwnWords, merge_arrays
from portal.store.search.queries import Legs
from portal.store.search.statement import (
    KeywordPlan,
    Shape,
    VectorPlan,
    bm25_statement,
    leg_statement,
    statement,
)
from portal.store.statements import Reader, under
from portal.store.vector_parameters import VectorParameter


@dataclass(frozen=True, slots=True)
class Offers:
    """The offers of both legs, each chunk once, unordered. `documents_version` is that of the
    documents when the first statement ran; `documents` are set where they were requested."""

    offers: Sequence[Offer]
    documents_version: int
    documents: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def timed(milliseconds: dict[str, float], step: str) -> Iterator[None]:
    """Record the duration of a step."""
    started = perf_counter()
    try:
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
    most = leg_plans.max_compared(legs.settings.plan, max(legs.total_chunks, legs.visible_chunks))
    return enabled_sets.find(reader, legs.scope, legs.versions, most=most, deadline=legs.deadline)


def find_offers(
    reader: Reader, legs: Legs, enabled: EnabledSet, enabled_sets: EnabledSets, trace: Trace
) -> Offers:
    """Return the chunks that either leg finds in the enabled set."""
    shape = _shape(legs, enabled, trace)
    binds = _binds(legs, enabled)
    own_words = OwnWords(reader, legs, enabled_sets)
    private = []
    if shape.takes_keyword_selection:
        with trace.timed("keyword_selection"):
            binds |= own_words.best_of_selection(enabled, _planner_settings(legs, enabled))
    elif shape.takes_keyword_index and legs.has_private:
        with trace.timed("keyword_selection"):
            private = own_words.best_of_private()
    version = None
    with under(reader, _planner_settings(legs, enabled)) as statements:
        if shape.takes_keyword_index:
            with trace.timed("keyword_index"):
                ((*columns, version),) = statements.fetch(bm25_statement(shape), binds, tuple_row)
                arrays = dict(zip(KEYWORD_ARRAYS, columns, strict=True))
                binds |= merge_arrays(arrays, private, limit=legs.leg_limit) if private else arrays
        with trace.timed("statement"):
            (row,) = statements.fetch(statement(shape), binds, tuple_row, keeps_plan=shape.is_plain)
    # Listed ids are valid for the version under which they were read.
    if enabled.ids is not None or legs.has_private:
        version = legs.versions.documents
    return _offers(row, version)


def time_legs(
    reader: Reader, legs: Legs, enabled: EnabledSet, enabled_sets: EnabledSets, trace: Trace
) -> None:
    """Run each leg once more on its own, for an explanation."""
    shape, binds = _shape(legs, enabled, trace), _binds(legs, enabled)
    if shape.takes_keyword_selection:
        own_words = OwnWords(reader, legs, enabled_sets)
        binds |= own_words.best_of_selection(enabled, _planner_settings(legs, enabled))
    for step, leg in (
        ("vector_leg", replace(shape, keyword=None)),
        ("keyword_leg", replace(shape, vector=None)),
    ):
        if leg.vector is None and leg.keyword is None:
            continue
        with trace.timed(step), under(reader, _planner_settings(legs, enabled)) as statements:
            if leg.takes_keyword_index:
                statements.fetch(bm25_statement(leg), binds, tuple_row)
            else:
                statements.fetch(leg_statement(leg), binds, scalar_row)


def _shape(legs: Legs, enabled: EnabledSet, trace: Trace) -> Shape:
    vector = leg_plans.vector_leg(legs, enabled)
    keyword = leg_plans.keyword_leg(legs, enabled)
    trace.vector_plan = vector.plan if vector else None
    trace.keyword_plan = keyword.plan if keyword else None
    return Shape(
        vector=vector,
        keyword=keyword,
        documents=legs.scope.narrowing.documents,
        chunks=legs.scope.narrowing.chunks,
        by_document=legs.by_document,
        in_conversation=legs.scope.conversation_id is not None,
    )


def _planner_settings(legs: Legs, enabled: EnabledSet) -> dict[str, Any]:
    return leg_plans.planner_settings(legs, enabled) | {
        "statement_timeout": legs.deadline.milliseconds
    }


def _binds(legs: Legs, enabled: EnabledSet) -> dict[str, Any]:
    """Return values for the binds of every shape of the statement."""
    binds: dict[str, Any] = selection_binds(legs.scope.user, legs.scope.conversation_id)
    binds |= legs.scope.narrowing.binds
    binds |= {
        "collection_id": legs.versions.collection_id,
        "enabled_ids": enabled.ids,
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


def _offers(row: Sequence[Any], version: int | None) -> Offers:
    ids, documents, *columns, statement_version = row
    version = statement_version if version is None else version
    if ids is None:
        return Offers((), version)
    names = ids[1:-1].split(",")
    of_documents = zip(names, documents[1:-1].split(","), strict=True) if documents else ()
    return Offers(list(map(Offer, names, *columns)), version, dict(of_documents))
