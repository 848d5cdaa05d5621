"""Search results from candidates: confidence, order, excerpts, explanation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from portal.domain.search import (
    KeywordBackend,
    SearchHit,
    SearchMode,
    SearchOutcome,
    Span,
)
from portal.embeddings.calibration.confidence import Evidence, coverage, lacks_code
from portal.services import Services
from portal.services.search.finding import Candidate, Found
from portal.services.search.plan import SearchPlan
from portal.services.search.reranking import not_reranked, rerank
from portal.store.documents.outlines import outlines
from portal.store.search.legs.trace import Trace
from portal.store.search.neighbours import Neighbours, neighbours
from portal.text.layout.excerpt import best_excerpt
from portal.text.layout.joining import Fragment, join_neighbours
from portal.text.layout.outlines import Outline, Place
from portal.text.layout.tables import begins_with_header, header_above, is_in_first_table
from portal.text.terms.highlight import highlight_spans

EXCERPT_CHARACTERS = 320
_NO_OUTLINE = Outline()


class _Result(NamedTuple):
    """A chunk to show. With `fills_up` it matched by keywords alone, below the threshold."""

    candidate: Candidate
    confidence: float
    duplicate_count: int
    rerank_score: float | None
    fills_up: bool = False

    @property
    def source(self) -> SearchMode:
        return SearchMode.KEYWORD if self.fills_up else self.candidate.source


def outcome(services: Services, plan: SearchPlan, found: Found, trace: Trace) -> SearchOutcome:
    """Return the hits, complete except for spelling suggestions."""
    with trace.timed("results"):
        results, without = _results(services, plan, found)
        reached, total = _above_threshold(plan, found, results)
        shown = reached[: plan.limit]
        nearby, chunk_outlines = _surroundings(services, [result.candidate for result in shown])
        best_bm25 = found.best_bm25
        hits = tuple(
            [
                _hit(
                    plan,
                    result,
                    nearby.get(result.candidate.chunk.chunk_id),
                    chunk_outlines.get(result.candidate.chunk.chunk_id, _NO_OUTLINE),
                    best_bm25,
                )
                for result in shown
            ]
        )
    return SearchOutcome(
        query=plan.request.query,
        hits=hits,
        total_count=total,
        search_method=_method(plan, shown),
        degraded=(*plan.degraded, *without),
        correction=plan.correction,
        off_topic=bool(hits) and all(hit.low_confidence for hit in hits),
        vector_count=found.vector_count,
        text_count=found.text_count,
        explanation=_explanation(plan, found, trace) if plan.request.explain else None,
        used=plan.used,
    )


def _results(
    services: Services, plan: SearchPlan, found: Found
) -> tuple[list[_Result], tuple[str, ...]]:
    """Return each text once in the final order, as far as it may be shown, and codes of what was
    left out."""
    candidates, groups = found.candidates, found.groups
    places = [place for place, group in enumerate(groups) if place == group]
    kept = [candidates[place] for place in places]
    # With `as_shown`, the order is that of the shown scores and must not be changed.
    texts = [candidate.chunk for candidate in kept]
    reranked = (
        not_reranked(texts) if plan.request.as_shown else rerank(services, plan.parsed.text, texts)
    )
    count = plan.limit if plan.request.threshold is None else len(kept)
    order, below = reranked.order[:count], reranked.order[count:]
    confidences = _confidences(
        services, plan, found, [kept[index] for index in order], [kept[index] for index in below]
    )
    results = [
        _Result(
            candidate=kept[index],
            confidence=confidence,
            duplicate_count=groups.count(places[index]) - 1,
            rerank_score=reranked.scores[index],
        )
        for index, confidence in zip(order, confidences, strict=True)
    ]
    return results, reranked.degraded


def _confidences(
    services: Services,
    plan: SearchPlan,
    found: Found,
    shown: Sequence[Candidate],
    others: Sequence[Candidate],
) -> list[float]:
    """Return the calibrated probability that each of the `shown` candidates is relevant, whatever
    the fusion. The `others` count as rivals."""
    calibration = plan.loaded.calibration if plan.loaded else services.calibration
    keywords = plan.legs.keywords
    # Confidence was fitted to BM25; cover density is on another scale.
    has_bm25 = keywords is not None and keywords.backend is KeywordBackend.PG_TEXTSEARCH

    def rival(candidate: Candidate) -> Evidence:
        return Evidence(
            candidate.chunk.document_id,
            candidate.chunk.language,
            candidate.offer.likeness,
            candidate.offer.bm25 if has_bm25 else None,
        )

    evidence = [
        rival(candidate)._replace(
            coverage=coverage(plan.terms, candidate.chunk.terms) if keywords else None,
            translated=found.translated.get(candidate.chunk.chunk_id),
            lacks_code=lacks_code(plan.terms, candidate.chunk.terms),
        )
        for candidate in shown
    ]
    scale = calibration.text_scale(len(plan.terms), plan.legs.visible_chunks)
    rivals = list(map(rival, others))
    return calibration.confidences(plan.statistics, evidence, scale, found.nearest or None, rivals)


def _above_threshold(
    plan: SearchPlan, found: Found, results: Sequence[_Result]
) -> tuple[list[_Result], int]:
    """Return the results that reach the threshold, and their total number."""
    # The threshold applies to keyword scores in keyword mode, to confidence otherwise. If too few
    # reach it, the best keyword hits fill up the results and are marked: a chunk with the words of
    # the query must not disappear because its confidence is low.
    threshold = plan.request.threshold
    if threshold is None:
        return list(results), len(found.offers)
    if not plan.fills_up:
        count = sum(ranked.score >= threshold for ranked in found.ranked)
        return [result for result in results if result.candidate.ranked.score >= threshold], count
    is_vector = plan.request.mode is SearchMode.VECTOR
    reaching = {
        place
        for place, result in enumerate(results)
        if result.confidence >= threshold
        and not (is_vector and result.candidate.offer.vector_rank is None)
    }
    by_words = [
        (result.candidate.offer.text_rank, place)
        for place, result in enumerate(results)
        if place not in reaching and result.candidate.offer.text_rank is not None
    ]
    missing = max(0, plan.limit - len(reaching))
    filling = {place for _rank, place in sorted(by_words)[:missing]}
    chosen = [
        result._replace(fills_up=place in filling)
        for place, result in enumerate(results)
        if place in reaching or place in filling
    ]
    return chosen, len(chosen)


def _surroundings(
    services: Services, shown: Sequence[Candidate]
) -> tuple[Mapping[UUID, Neighbours], Mapping[UUID, Outline]]:
    """Load the neighbours of chunks that are too short to be understood alone, and the pages and
    headings of those that have any."""
    chunks = [candidate.chunk for candidate in shown]
    short = [
        chunk.chunk_id
        for chunk in chunks
        if chunk.document_chunks > 1 and len(chunk.content) < EXCERPT_CHARACTERS
    ]
    with_outline = [
        chunk.chunk_id for chunk in chunks if chunk.page is not None or chunk.heading is not None
    ]
    if not (short or with_outline):
        return {}, {}
    with services.database.driver() as reader:
        return neighbours(reader, short), outlines(reader, with_outline)


def _hit(
    plan: SearchPlan,
    result: _Result,
    nearby: Neighbours | None,
    outline: Outline,
    best_bm25: float,
) -> SearchHit:
    candidate, chunk = result.candidate, result.candidate.chunk
    offer, parts = candidate.offer, candidate.ranked.parts
    # Chunks added by a program are not part of a file, and have no neighbours.
    whole = Fragment(chunk.content, chunk.char_start or 0, chunk.char_end or 0)
    text_terms: str | None = chunk.terms
    if nearby is not None:
        whole = join_neighbours(whole, nearby.before, nearby.after, wanted_chars=EXCERPT_CHARACTERS)
        text_terms = None
    excerpt = best_excerpt(whole.text, plan.terms, EXCERPT_CHARACTERS, text_terms)
    begins = whole.start + excerpt.start
    has_table = is_in_first_table(whole.text, (chunk.char_start or 0) - whole.start)
    above = chunk.context if has_table else None
    place = outline.best_place(
        [(begins + start, begins + end) for start, end in excerpt.spans],
        begins,
        Place(chunk.page, chunk.page_label, chunk.heading),
    )
    return SearchHit(
        document_id=chunk.document_id,
        chunk_id=chunk.chunk_id,
        title=chunk.title,
        excerpt=excerpt.text,
        highlights=tuple(Span(start, end) for start, end in excerpt.spans),
        page=place.page,
        page_label=place.page_label,
        heading=place.heading,
        score=parts.score,
        parts=parts,
        vector_score=offer.cosine,
        bm25=offer.bm25,
        text_score=offer.bm25 / best_bm25,
        confidence=result.confidence,
        low_confidence=result.confidence < plan.config.confidence_threshold,
        source=result.source,
        media_type=chunk.media_type,
        char_start=chunk.char_start,
        char_end=chunk.char_end,
        vector_rank=offer.vector_rank,
        text_rank=offer.text_rank,
        matched_words=_matched_words(plan, chunk.content, excerpt.text, excerpt.spans),
        duplicate_count=result.duplicate_count,
        rerank_score=result.rerank_score,
        context=header_above(whole.text, excerpt.start, above),
        has_header=begins_with_header(whole.text, excerpt.start, above),
    )


def _matched_words(
    plan: SearchPlan, content: str, excerpt: str, spans: Sequence[tuple[int, int]]
) -> tuple[str, ...]:
    """Return the words of the query in the excerpt or, if explained, in the whole chunk."""
    # The whole chunk is only analysed for explanations, because it takes time.
    text = excerpt
    if plan.request.explain:
        text, spans = content, highlight_spans(content, plan.terms)
    return tuple(dict.fromkeys(text[start:end] for start, end in spans))


def _method(plan: SearchPlan, shown: Sequence[_Result]) -> SearchMode:
    """Return the retrieval method, reduced to the legs that found the results."""
    if plan.legs.vector is None:
        return SearchMode.KEYWORD if plan.request.mode is SearchMode.HYBRID else plan.request.mode
    if shown and all(result.fills_up for result in shown):
        return SearchMode.KEYWORD
    if plan.request.mode is SearchMode.VECTOR:
        is_filled = any(result.fills_up for result in shown)
        return SearchMode.HYBRID if is_filled else SearchMode.VECTOR
    # A query without a word still counts as answered by both legs; on a server without a keyword
    # index it does not.
    is_semantic = plan.legs.keywords is None and plan.terms
    return SearchMode.VECTOR if is_semantic else SearchMode.HYBRID


def _explanation(plan: SearchPlan, found: Found, trace: Trace) -> dict[str, Any]:
    """Return how the search ran."""
    ranking, enabled, legs = plan.ranking, trace.enabled, plan.legs
    # The vector plan is for administrators: it depends on the number of hidden chunks too.
    plans = {"keyword": trace.keyword_plan}
    return {
        "plan": plans | ({"vector": trace.vector_plan} if plan.user.is_admin else {}),
        "fusion": ranking.fusion.value,
        "normalisation": ranking.normalisation.value,
        "weights": {"vector": ranking.weights.vector, "text": ranking.weights.text},
        "domain_boost": plan.config.domain_boost if plan.preferred_domain else 0.0,
        "counts": {
            "enabled_documents": enabled.document_count if enabled else 0,
            "enabled_chunks": enabled.chunk_count if enabled else 0,
            "chunks": legs.visible_chunks,
            "vector_leg": found.vector_count,
            "keyword_leg": found.text_count,
        },
        "candidates": len(found.offers),
        "milliseconds": dict(trace.milliseconds),
        "embedding_model": legs.vector.model.name if legs.vector else None,
        "confidence_constants": plan.loaded.calibration.source if plan.loaded else None,
        "keyword_backend": legs.keywords.backend.value if legs.keywords else None,
        "terms": list(plan.terms),
    }
