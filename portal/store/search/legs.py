"""The two legs of a search: what each looks for, and what both offer.

`find_offers` chooses a plan by how much is switched on (ADR 10), and sends the statements of both
legs at once, on two connections where one is free. `domain.search.fusion` turns its offers into the
rows that users read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import repeat
from time import perf_counter
from typing import Any

from psycopg import RawCursor
from psycopg.rows import tuple_row

from portal.domain.search import KeywordBackend
from portal.domain.search.fusion import Offer
from portal.store.binary_parameters import UuidsParameter, VectorParameter
from portal.store.documents.selection import selection_binds
from portal.store.search import leg_plans
from portal.store.search.enabled_sets import EnabledSet, EnabledSets
from portal.store.search.keyword_candidates import as_arrays
from portal.store.search.keyword_leg import look_up
from portal.store.search.queries import Legs
from portal.store.search.statement import (
    KeywordPlan,
    VectorPlan,
    given_statement,
    keyword_statement,
    vector_statement,
)
from portal.store.statements import Reader, under


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
    shape, binds = leg_plans.shape_for(legs, enabled), _binds(legs, enabled)
    trace.vector_plan = shape.vector.plan if shape.vector else None
    trace.keyword_plan = shape.keyword.plan if shape.keyword else None
    settings = leg_plans.server_settings(legs, enabled)
    is_selection = shape.takes_words(KeywordPlan.SELECTION)
    nearest = vector_statement(shape) if shape.vector is not None else None
    by_vector: list[Any] = []
    words: list[RawCursor[Any]] = []
    with trace.timed("statement"), ExitStack() as running:
        near = None
        if spare is not None and nearest is not None and shape.keyword is not None:
            first = running.enter_context(under(reader, settings))
            near = first.send(nearest, binds, tuple_row, keeps_plan=shape.is_plain)
            reader = spare
        with trace.timed("keyword_selection"):
            given = look_up(
                reader, legs, enabled, enabled_sets, settings, is_selection=is_selection
            )
        statements = running.enter_context(under(reader, settings))
        if shape.keyword is not None and not is_selection:
            keeps_plan = shape.is_plain and not shape.takes_words(KeywordPlan.INDEX)
            clause = keyword_statement(shape)
            words.append(statements.send(clause, binds, tuple_row, keeps_plan=keeps_plan))
        if given:
            clause, arrays = given_statement(shape), binds | as_arrays(given)
            words.append(statements.send(clause, arrays, tuple_row, keeps_plan=shape.is_plain))
        if nearest is not None:
            near = near or statements.send(nearest, binds, tuple_row, keeps_plan=shape.is_plain)
            by_vector = near.fetchall()
        by_words = [row for cursor in words for row in cursor.fetchall()]
    # Listed ids are valid for the version under which they were read.
    versions = {row[-1] for row in (*by_vector, *by_words)}
    if enabled.ids is not None or legs.has_private or not versions:
        versions = {legs.versions.documents}
    version = versions.pop() if len(versions) == 1 else None
    return _merged(by_vector, by_words, version, limit=legs.leg_limit)


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
    by_vector: Sequence[Any], by_words: Sequence[Any], version: int | None, *, limit: int
) -> Offers:
    """Return the offers of the legs' rows, each chunk once."""
    documents: dict[str, str] = {}
    found: dict[str, Offer] = {}
    for rank, (name, cosine, likeness, _) in enumerate(_each(by_vector, documents), 1):
        found[name] = Offer(name, rank, None, cosine, likeness)
    words = _each(by_words, documents)
    if len(by_words) > 1:
        words = sorted(words, key=lambda one: (-one[3], one[0]))[:limit]
    for rank, (name, cosine, likeness, bm25) in enumerate(words, 1):
        nearest = found[name].vector_rank if name in found else None
        found[name] = Offer(name, nearest, rank, cosine, likeness, bm25)
    return Offers(list(found.values()), version, documents)


def _each(rows: Sequence[Any], documents: dict[str, str]) -> list[tuple[Any, ...]]:
    """Return id, cosine, likeness and BM25 of each offer of a leg's rows; fill in `documents`."""
    offers: list[tuple[Any, ...]] = []
    for ids, of_documents, cosines, likenesses, scores, _version in rows:
        if ids is not None:
            names = ids[1:-1].split(",")
            offers += zip(names, cosines, likenesses, scores or repeat(0.0), strict=False)
            if of_documents:
                documents.update(zip(names, of_documents[1:-1].split(","), strict=True))
    return offers
