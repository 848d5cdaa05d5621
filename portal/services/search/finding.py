"""Execution of a search plan, with fallbacks when a leg fails, is late or finds too little."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import NamedTuple
from uuid import UUID

import structlog

from portal.domain.deadlines import Deadline
from portal.domain.search import NEAREST_COMPARED, SearchMode, Unit
from portal.domain.search.fusion import (
    MAX_COMPARED_BY_PROXIMITY,
    PROXIMITY,
    Offer,
    Ranked,
    add_proximity,
    fading,
    merits,
    prefer,
)
from portal.errors import Unavailable
from portal.services import Services
from portal.services.search.plan import SearchPlan
from portal.store.embedding_models import registry
from portal.store.embedding_models.registry import RegisteredModel
from portal.store.search.found_chunks import FoundChunk, load_chunks
from portal.store.search.legs.finding import find_enabled, find_offers
from portal.store.search.legs.offers import Offers
from portal.store.search.legs.trace import Trace
from portal.store.search.selection.changes import may_replace_text
from portal.store.search.selection.enabled import EnabledSet
from portal.store.statements import Reader, StatementFailed, statement_failures
from portal.text.language import detect_question_language
from portal.text.likeness.near_duplicates import group_near_duplicates
from portal.text.terms import lexicon
from portal.text.terms.lexicon import translated_share, translates, translations
from portal.text.terms.proximity import closeness

log = structlog.get_logger(__name__)

# Candidates are multiplied by this if duplicates still fill the results.
_MORE = 8
# Share of the remaining time for an attempt that has a fallback.
_SHARE_OF_TIME = 0.5
# Over fewer chunks, a second connection takes longer than it saves.
_MIN_SIDE_BY_SIDE = 1000
# Attempts in all, when documents change during a search.
_MAX_ATTEMPTS = 3


class DictionaryMissing(Exception):
    """Translation needs a dictionary that this process has not loaded yet."""


class ModelGone(Exception):
    """The model that the query was embedded with is no longer active."""


class Candidate(NamedTuple):
    """A chunk that was found, with the offers of the legs and the parts of its score."""

    chunk: FoundChunk
    ranked: Ranked

    @property
    def offer(self) -> Offer:
        return self.ranked.offer

    @property
    def source(self) -> SearchMode:
        """Return which legs found it."""
        if self.offer.vector_rank is None:
            return SearchMode.KEYWORD
        return SearchMode.VECTOR if self.offer.text_rank is None else SearchMode.HYBRID


@dataclass(frozen=True, slots=True)
class Found:
    """The best candidates in order; for each the index of the first candidate in its group of
    duplicates (`groups`); all offers of the legs, and those that were ranked (`SearchPlan.rank`).
    `translated` is the share of the query's words that a chunk in the other language has in
    translation, by the chunk's id."""

    candidates: Sequence[Candidate] = ()
    groups: Sequence[int] = ()
    offers: Sequence[Offer] = ()
    ranked: Sequence[Ranked] = ()
    translated: Mapping[UUID, float] = field(default_factory=dict)
    is_enough: bool = True

    @property
    def nearest(self) -> list[float]:
        """Return the similarities of the first `NEAREST_COMPARED` hits of the vector leg."""
        return [
            offer.likeness
            for offer in self.offers
            if offer.likeness is not None
            and offer.vector_rank is not None
            and offer.vector_rank <= NEAREST_COMPARED
        ]

    @property
    def best_bm25(self) -> float:
        """Return the highest BM25 score of all offers, 1 without any; `text_score` is a share of
        it."""
        return max([offer.bm25 for offer in self.offers], default=0.0) or 1.0

    @property
    def vector_count(self) -> int:
        return len([None for offer in self.offers if offer.vector_rank is not None])

    @property
    def text_count(self) -> int:
        return len([None for offer in self.offers if offer.text_rank is not None])


class _BestOffers(NamedTuple):
    """All `offers`, the `ranked` ones in order, and the `best`, whose chunks are loaded. `is_all`
    if there are no more to load."""

    offers: Sequence[Offer]
    ranked: Sequence[Ranked]
    best: Sequence[Ranked]
    is_all: bool


def find(
    services: Services, plan: SearchPlan, trace: Trace, deadline: Deadline | None = None
) -> tuple[SearchPlan, Found]:
    """Return the hits of both legs, or of one if the other fails or is late, and the plan that
    found them. Ends within the timeout of a search, or at an earlier deadline. Raises Unavailable
    if both fail, ModelGone, DictionaryMissing, DatabaseUnavailable."""
    failure: StatementFailed | None = None
    own = Deadline.within(plan.legs.settings.statement_timeout_s)
    deadline = min(own, deadline or own)
    attempts = plan.attempts()
    if not attempts:
        return plan, Found()
    for attempt in attempts:
        if failure is not None and deadline.is_over:
            break
        attempt_plan = plan.attempting(attempt)
        # Text conditions are evaluated again in each attempt: if that takes half of the time,
        # another attempt with half of the time cannot succeed.
        is_whole = attempt is attempts[-1] or plan.legs.scope.narrowing.chunks
        ends = deadline if is_whole else deadline.at_share(_SHARE_OF_TIME)
        current_plan = attempt_plan.until(ends)
        try:
            while True:
                with services.database.driver() as reader:
                    found = _find_once(services, reader, current_plan, trace)
                if not (found.is_enough or current_plan.is_exhausted):
                    # Duplicates fill the results: the same text may be in any number of chunks.
                    current_plan = current_plan.with_spare(current_plan.spare * _MORE)
                elif found.candidates or not current_plan.parsed.phrases:
                    return current_plan if found.candidates else attempt_plan.until(ends), found
                else:
                    current_plan = current_plan.without_phrases()
        except StatementFailed as error:
            log.warning("search_leg_failed", error_type=type(error.__cause__).__name__)
            if current_plan.legs.vector is not None:
                _check_model(services, current_plan.legs.vector.model)
            failure = error
    raise Unavailable from failure


def _check_model(services: Services, model: RegisteredModel) -> None:
    """Raise ModelGone if a statement failed because of a switch of models."""
    with services.database.begin() as session:
        active = registry.find_active(session)
    if active is not None and active.id != model.id:
        raise ModelGone


def _find_once(services: Services, reader: Reader, plan: SearchPlan, trace: Trace) -> Found:
    """Ask the legs, rank their offers, and load the best."""
    # Retries when documents change meanwhile: a new version has other chunks, and neither the old
    # nor the new ids would find it. With no time left the incomplete result is better than none.
    # While documents are only added, as by an import, the result is complete.
    legs, sets, found = plan.legs, services.enabled_sets, Found()
    with trace.timed("selection"), statement_failures():
        enabled = trace.enabled = find_enabled(reader, legs, sets)
    for _ in range(_MAX_ATTEMPTS):
        if not enabled.document_count:
            break
        with statement_failures():
            is_long = enabled.ids is None and enabled.chunk_count >= _MIN_SIDE_BY_SIDE
            with services.database.spare_driver() if is_long else nullcontext() as spare:
                offered = find_offers(reader, legs, enabled, sets, trace, spare=spare)
            offers = _best_offers(services, plan, offered)
            chunks, version = load_chunks(reader, legs, [one.offer.id for one in offers.best])
        found = _found(plan, offers, chunks, enabled)
        before = legs.versions
        if version == before.documents or legs.deadline.is_over:
            break
        if len(chunks) == len(offers.best) and not may_replace_text(
            reader, before.collection_id, before.documents, version
        ):
            break
        legs = replace(legs, versions=replace(before, documents=version))
        earlier, enabled = enabled, find_enabled(reader, legs, sets)
        trace.enabled = enabled
        if enabled.is_same(earlier):
            break
    return found


def _best_offers(services: Services, plan: SearchPlan, offered: Offers) -> _BestOffers:
    """Rank the offers, and return those whose chunks are to be loaded."""
    count = plan.count_rows(services.settings.rerank.candidates if services.reranker else 0)
    offers = plan.admitted(offered.offers)
    best = ranked = plan.rank(offers, count)
    if plan.legs.by_document:
        best = _best_of_each_document(ranked, offered.documents)
    return _BestOffers(offers, ranked, best[:count], is_all=len(best) < count)


def _found(
    plan: SearchPlan, offers: _BestOffers, chunks: Mapping[str, FoundChunk], enabled: EnabledSet
) -> Found:
    """Rank the best offers again by their chunks, and group near-duplicates."""
    best = [one for one in offers.best if one.offer.id in chunks]
    translated: Mapping[UUID, float] = {}
    if plan.weighs_proximity:
        compared = [chunks[one.offer.id] for one in best[:MAX_COMPARED_BY_PROXIMITY]]
        translated = _translated(plan, compared)
        adjacent = PROXIMITY * fading(offers.offers, plan.scale)
        shares = [
            translated[one.chunk_id]
            if one.chunk_id in translated
            else adjacent * closeness(plan.terms, one.terms)
            for one in compared
        ]
        best = add_proximity(best, shares, plan.ranking)
    candidates = _candidates(plan, offers.offers, best, chunks)
    groups: Sequence[int] = range(len(candidates))
    if plan.request.one_hit_per is Unit.TEXT:
        groups = group_near_duplicates([one.chunk.content for one in candidates])
    found = Found(candidates, groups, offers.offers, offers.ranked, translated)
    is_complete = offers.is_all
    if plan.legs.by_document:
        is_each = len(best) >= enabled.document_count
        is_complete = is_each or max(found.vector_count, found.text_count) < plan.legs.leg_limit
    return replace(found, is_enough=is_complete or len(set(groups)) >= plan.limit)


def _translated(plan: SearchPlan, chunks: Sequence[FoundChunk]) -> dict[UUID, float]:
    """Return the share of the query's words that each chunk in the other language of the dictionary
    has in translation."""
    language = detect_question_language(plan.request.query)
    others = [one for one in chunks if translates(language, one.language)]
    if not others:
        return {}
    if not lexicon.is_loaded():
        raise DictionaryMissing
    senses = translations(plan.terms)
    return {one.chunk_id: translated_share(plan.terms, senses, one.terms) for one in others}


def _best_of_each_document(ranked: Sequence[Ranked], documents: Mapping[str, str]) -> list[Ranked]:
    """Keep each document once, by its best chunk with a positive cosine or BM25 score."""
    best: dict[str, Ranked] = {}
    for one in ranked:
        if (one.offer.cosine or 0.0) > 0 or one.offer.bm25 > 0:
            best.setdefault(documents[one.offer.id], one)
    return list(best.values())


def _candidates(
    plan: SearchPlan,
    offers: Sequence[Offer],
    best: Sequence[Ranked],
    chunks: Mapping[str, FoundChunk],
) -> list[Candidate]:
    """Return the best offers with their chunks, the preferred domain ahead of near-equal scores."""
    if domain := plan.preferred_domain:
        of_domain = {
            chunk_id for chunk_id, one in chunks.items() if (one.domain or "").casefold() == domain
        }
        if of_domain:
            worth = merits(offers, plan.ranking, plan.scale)
            best = prefer(best, of_domain, worth, plan.config.domain_boost)
    return [Candidate(chunks[one.offer.id], one) for one in best]
