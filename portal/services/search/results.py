"""From the rows of a search to what a person reads: order, confidence, excerpts, the account of
how it ran."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from portal.domain.search import (
    Correction,
    KeywordBackend,
    SearchHit,
    SearchMode,
    SearchOutcome,
    SearchRequest,
    Span,
    Unit,
)
from portal.embeddings.calibration import QueryStatistics
from portal.embeddings.confidence import Evidence, coverage, lacks_code
from portal.embeddings.loaded import LoadedModel
from portal.services import Services
from portal.services.search.dynamic_config import DynamicConfig
from portal.services.search.reranking import as_they_were, rerank
from portal.store.documents.outlines import outlines
from portal.store.search.legs import (
    Candidate,
    KeywordQuery,
    Ranking,
    Trace,
    VectorQuery,
    source_of,
)
from portal.store.search.neighbours import Neighbours, neighbours
from portal.text.excerpt import best_excerpt
from portal.text.highlight import highlight_spans
from portal.text.joining import Fragment, join_neighbours
from portal.text.near_duplicates import group_near_duplicates
from portal.text.outlines import Outline, Place
from portal.text.query_syntax import ParsedQuery

EXCERPT_CHARACTERS = 320


@dataclass(frozen=True, slots=True)
class Found:
    """Candidates in fused order, and for each the place of the first that stands for it."""

    candidates: Sequence[Candidate]
    groups: Sequence[int]

    @classmethod
    def of(cls, candidates: Sequence[Candidate], unit: Unit) -> Found:
        if unit is not Unit.TEXT:
            return cls(candidates, range(len(candidates)))
        return cls(
            candidates, group_near_duplicates([candidate.content for candidate in candidates])
        )

    @property
    def different(self) -> int:
        """How many there are that no better one stands for."""
        return len(set(self.groups))


@dataclass(frozen=True, slots=True)
class Ran:
    """A search that ran: what was asked, with what, and what it did without."""

    request: SearchRequest
    parsed: ParsedQuery
    terms: tuple[str, ...]
    config: DynamicConfig
    limit: int
    ranking: Ranking
    loaded: LoadedModel | None
    statistics: QueryStatistics | None
    vector: VectorQuery | None
    keywords: KeywordQuery | None
    correction: Correction | None
    degraded: tuple[str, ...]
    trace: Trace
    sees_everything: bool


@dataclass(frozen=True, slots=True)
class _Result:
    """A passage to show."""

    candidate: Candidate
    confidence: float
    duplicate_count: int
    rerank_score: float | None


def nothing(request: SearchRequest, degraded: tuple[str, ...]) -> SearchOutcome:
    """The outcome of a search that had nothing to look with."""
    return SearchOutcome(request.query, (), 0, request.mode, degraded=degraded)


def outcome(services: Services, ran: Ran, found: Found) -> SearchOutcome:
    """Hits from what was found."""
    threshold, candidates = ran.request.threshold or 0.0, found.candidates
    with ran.trace.timed("results"):
        results, without = _results(services, ran, found)
        shown = [one for one in results if one.candidate.score >= threshold][: ran.limit]
        around = _neighbours(services, [one.candidate for one in shown])
        touched = _outlines(services, [one.candidate for one in shown])
        hits = tuple(
            _hit(
                ran,
                one,
                around.get(one.candidate.chunk_id),
                touched.get(one.candidate.chunk_id, Outline()),
            )
            for one in shown
        )
    return SearchOutcome(
        query=ran.request.query,
        hits=hits,
        total_count=candidates[0].candidate_count if candidates else 0,
        search_method=_method(ran),
        degraded=(*ran.degraded, *without),
        correction=ran.correction,
        off_topic=bool(hits) and all(hit.low_confidence for hit in hits),
        vector_count=candidates[0].vector_count if candidates else 0,
        text_count=candidates[0].text_count if candidates else 0,
        explanation=_explanation(ran, candidates) if ran.request.explain else None,
    )


def _results(services: Services, ran: Ran, found: Found) -> tuple[list[_Result], tuple[str, ...]]:
    """Each text once, in the final order, and what was done without."""
    candidates, groups = found.candidates, found.groups
    places = [place for place, group in enumerate(groups) if place == group]
    kept = [candidates[place] for place in places]
    confidences = _confidences(services, ran, kept)
    # An order by the scores that are shown stays as it is.
    reranked = (
        as_they_were(kept) if ran.request.as_shown else rerank(services, ran.parsed.text, kept)
    )
    results = [
        _Result(
            candidate=kept[index],
            confidence=confidences[index],
            duplicate_count=groups.count(places[index]) - 1,
            rerank_score=reranked.scores[index],
        )
        for index in reranked.order
    ]
    return results, reranked.degraded


def _confidences(services: Services, ran: Ran, candidates: Sequence[Candidate]) -> list[float]:
    """The calibrated chance of each candidate to be relevant, whatever the fusion."""
    calibration = ran.loaded.calibration if ran.loaded else services.calibration
    # Confidence was fitted to BM25; cover density is on another scale and says nothing to it.
    has_bm25 = ran.keywords is not None and ran.keywords.backend is KeywordBackend.PG_TEXTSEARCH
    evidence = [
        Evidence(
            document=candidate.document_id,
            language=candidate.language,
            cosine=candidate.cosine,
            corrected=candidate.likeness,
            keyword=candidate.bm25 if has_bm25 else None,
            coverage=coverage(ran.terms, candidate.terms) if ran.keywords else None,
            lacks_code=lacks_code(ran.terms, candidate.terms),
        )
        for candidate in candidates
    ]
    scale = calibration.text_scale(len(ran.terms), ran.trace.visible_chunks)
    nearest = candidates[0].nearest if candidates else None
    return calibration.confidences(ran.statistics, evidence, scale, nearest)


def _neighbours(services: Services, shown: Sequence[Candidate]) -> Mapping[UUID, Neighbours]:
    """What stands around passages that are too short to be understood alone."""
    short = [
        one.chunk_id
        for one in shown
        if one.document_chunks > 1 and len(one.content) < EXCERPT_CHARACTERS
    ]
    if not short:
        return {}
    with services.database.read() as session:
        return neighbours(session, short)


def _outlines(services: Services, shown: Sequence[Candidate]) -> Mapping[UUID, Outline]:
    """The pages and headings of passages that have any."""
    having = [one.chunk_id for one in shown if one.page is not None or one.heading is not None]
    if not having:
        return {}
    with services.database.read() as session:
        return outlines(session, having)


def _hit(ran: Ran, result: _Result, around: Neighbours | None, touched: Outline) -> SearchHit:
    candidate = result.candidate
    # What a program added stands nowhere in the text, and has no neighbours.
    chunk = Fragment(candidate.content, candidate.char_start or 0, candidate.char_end or 0)
    if around is not None:
        chunk = join_neighbours(chunk, around.before, around.after, wanted_chars=EXCERPT_CHARACTERS)
    excerpt = best_excerpt(chunk.text, ran.terms, EXCERPT_CHARACTERS)
    begins = chunk.start + excerpt.start
    place = touched.best_place(
        [(begins + start, begins + end) for start, end in excerpt.spans],
        begins,
        Place(candidate.page, candidate.page_label, candidate.heading),
    )
    return SearchHit(
        document_id=candidate.document_id,
        chunk_id=candidate.chunk_id,
        title=candidate.title,
        excerpt=excerpt.text,
        highlights=tuple(Span(start, end) for start, end in excerpt.spans),
        page=place.page,
        page_label=place.page_label,
        heading=place.heading,
        score=candidate.score,
        vector_score=candidate.cosine,
        text_score=candidate.text_score,
        confidence=result.confidence,
        low_confidence=result.confidence < ran.config.confidence_threshold,
        source=source_of(candidate),
        media_type=candidate.media_type,
        char_start=candidate.char_start,
        char_end=candidate.char_end,
        vector_rank=candidate.vector_rank,
        text_rank=candidate.text_rank,
        matched_words=_matched_words(ran, candidate, excerpt.text, excerpt.spans),
        duplicate_count=result.duplicate_count,
        rerank_score=result.rerank_score,
        context=candidate.context,
    )


def _matched_words(
    ran: Ran, candidate: Candidate, excerpt: str, spans: Sequence[tuple[int, int]]
) -> tuple[str, ...]:
    """Words of the question as they stand in the passage, or, unless the whole search is to be
    explained, in its excerpt alone: the rest would have to be analysed."""
    text = excerpt
    if ran.request.explain:
        text = candidate.content
        spans = highlight_spans(text, ran.terms)
    return tuple(dict.fromkeys(text[start:end] for start, end in spans))


def _method(ran: Ran) -> SearchMode:
    if ran.request.mode is not SearchMode.HYBRID:
        return ran.request.mode
    if ran.vector is None:
        return SearchMode.KEYWORD
    # A question without a single word to look up was still answered by both legs' rules; a
    # server without a keyword index was not.
    return SearchMode.VECTOR if ran.keywords is None and ran.terms else SearchMode.HYBRID


def _explanation(ran: Ran, candidates: Sequence[Candidate]) -> dict[str, Any]:
    """How the search ran, for whoever asked to have it explained."""
    trace, ranking, enabled = ran.trace, ran.ranking, ran.trace.enabled
    first = candidates[0] if candidates else None
    # How vectors are looked for depends on the number of all chunks, hidden ones too.
    plan = {"keyword": trace.keyword_plan}
    return {
        "plan": plan | ({"vector": trace.vector_plan} if ran.sees_everything else {}),
        "fusion": ranking.fusion.value,
        "normalisation": ranking.normalisation.value,
        "weights": {"vector": ranking.weights.vector, "text": ranking.weights.text},
        "domain_boost": ranking.boost if ranking.preferred_domain else 0.0,
        "counts": {
            "enabled_documents": enabled.document_count if enabled else 0,
            "enabled_chunks": enabled.chunk_count if enabled else 0,
            "chunks": trace.visible_chunks,
            "vector_leg": first.vector_count if first else 0,
            "keyword_leg": first.text_count if first else 0,
        },
        "candidates": first.candidate_count if first else 0,
        "milliseconds": dict(trace.milliseconds),
        "embedding_model": ran.vector.model.name if ran.vector else None,
        "confidence_constants": ran.loaded.calibration.source if ran.loaded else None,
        "keyword_backend": ran.keywords.backend.value if ran.keywords else None,
        "terms": list(ran.terms),
    }
