"""The search plan: a request with all defaults filled in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from portal.domain.deadlines import Deadline
from portal.domain.people import User
from portal.domain.search import (
    Correction,
    Fusion,
    Normalisation,
    SearchMode,
    SearchRequest,
    Unit,
    UsedParameters,
)
from portal.domain.search.degraded import KEYWORD_UNAVAILABLE, PHRASE_NOT_FOUND, VECTOR_UNAVAILABLE
from portal.domain.search.fusion import (
    MAX_COMPARED_BY_PROXIMITY,
    Offer,
    Ranked,
    Ranking,
    Scale,
    fuse,
    order_by_vector,
    order_by_words,
)
from portal.embeddings.calibration import QueryStatistics
from portal.embeddings.loaded import LoadedModel
from portal.services.search.dynamic_config import DynamicConfig
from portal.store.search.filters.narrowing import Narrowing, narrowing
from portal.store.search.queries import KeywordQuery, Legs, VectorQuery
from portal.text.terms.query_syntax import ParsedQuery

# Offers of each leg to the fusion. Good chunks that both legs rank in the middle need depth, and a
# constant depth keeps their order the same as the number of results grows.
_CANDIDATES = 100
# Chunks loaded beyond the limit: near-identical chunks are grouped, and confidence compares a chunk
# with its rivals.
SPARE_RESULTS = 10
_MAX_SPARE = 1000


# The legs that are asked, and codes of what is left out.
Attempt = tuple[VectorQuery | None, KeywordQuery | None, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """A search with all its parameters. `legs` are the queries to run, `ranking` and `scale` put
    their offers into one order, `loaded` and `statistics` are for confidence. `words_alone` lists
    the keyword queries to use without vectors, best first; with `lacks_words` the server has none
    for hybrid search. `degraded` lists codes of what is left out. Attempts without a leg, without
    phrases or with more candidates are copies of the plan."""

    user: User
    request: SearchRequest
    parsed: ParsedQuery
    terms: tuple[str, ...]
    config: DynamicConfig
    ranking: Ranking
    scale: Scale
    legs: Legs
    limit: int
    correction: Correction | None = None
    loaded: LoadedModel | None = None
    statistics: QueryStatistics | None = None
    words_alone: tuple[KeywordQuery, ...] = ()
    lacks_words: bool = False
    degraded: tuple[str, ...] = ()
    spare: int = SPARE_RESULTS

    @property
    def fills_up(self) -> bool:
        """Return whether keyword hits may replace hits below a threshold of confidence."""
        return self.request.threshold is not None and self.request.mode is not SearchMode.KEYWORD

    @property
    def preferred_domain(self) -> str | None:
        """Return the domain whose chunks move ahead of near-equal scores; None when filtered to
        one."""
        is_plain = self.request.as_shown or self.request.domain is not None
        domain = None if is_plain or self.config.domain_boost <= 0 else self.user.preferred_domain
        return domain.casefold() if domain else None

    @property
    def used(self) -> UsedParameters:
        ranking = self.ranking
        return UsedParameters(
            self.limit, ranking.fusion, ranking.normalisation, ranking.weights, ranking.rrf_k
        )

    def count_rows(self, rerank_candidates: int) -> int:
        """Return how many of the best offers to load."""
        if self.fills_up:
            return 2 * self.legs.leg_limit
        if self.legs.by_document:
            return self.limit
        compared = MAX_COMPARED_BY_PROXIMITY if self.weighs_proximity else 0
        return max(self.limit + self.spare, compared, rerank_candidates)

    def with_spare(self, spare: int) -> SearchPlan:
        """Return the plan for more candidates."""
        legs = replace(self.legs, leg_limit=leg_limit(self.request, self.limit, spare))
        return replace(self, legs=legs, spare=spare)

    @property
    def is_exhausted(self) -> bool:
        """Return whether to stop asking for more candidates: one document may fill any number of
        chunks, but a chunk has few copies."""
        return self.spare > _MAX_SPARE and not self.legs.by_document

    def without_phrases(self) -> SearchPlan:
        """Return the plan for a query whose phrases match nothing."""
        parsed = replace(self.parsed, phrases=())
        scope = replace(self.legs.scope, narrowing=narrowing_of(self.request, parsed))
        degraded = (*self.degraded, PHRASE_NOT_FOUND)
        return replace(self, parsed=parsed, legs=replace(self.legs, scope=scope), degraded=degraded)

    def attempts(self) -> list[Attempt]:
        """Return what to try: both legs if there are two, then each leg alone, so that one broken
        index does not stop a search."""
        vector, keywords = self.legs.vector, self.legs.keywords
        if vector is None:
            return [(None, one, ()) for one in self.words_alone]
        both: list[Attempt] = [(vector, keywords, ())] if keywords else []
        without = (KEYWORD_UNAVAILABLE,) if keywords or self.lacks_words else ()
        alone = self.words_alone[:1] if self.request.mode is SearchMode.HYBRID else ()
        both.append((vector, None, without))
        return both + [(None, one, (VECTOR_UNAVAILABLE,)) for one in alone]

    def attempting(self, attempt: Attempt) -> SearchPlan:
        """Return the plan of an attempt."""
        vector, keywords, degraded = attempt
        legs = replace(self.legs, vector=vector, keywords=keywords)
        return replace(self, legs=legs, degraded=(*self.degraded, *degraded))

    def until(self, deadline: Deadline) -> SearchPlan:
        """Return the plan with a deadline."""
        return replace(self, legs=replace(self.legs, deadline=deadline))

    @property
    def weighs_proximity(self) -> bool:
        """Return whether words close together raise the score; the weight is only right for
        calibrated scores."""
        request, ranking, legs = self.request, self.ranking, self.legs
        how = ranking.fusion, ranking.normalisation
        is_calibrated = how == (Fusion.WEIGHTED, Normalisation.CALIBRATED) and not request.as_shown
        has_both = legs.vector is not None and legs.keywords is not None
        weighs_both = ranking.weights.vector > 0 and ranking.weights.text > 0
        is_hybrid = request.mode is SearchMode.HYBRID and not legs.by_document
        return is_calibrated and is_hybrid and has_both and weighs_both

    def admitted(self, offers: Sequence[Offer]) -> Sequence[Offer]:
        """Return the offers that the request does not exclude."""
        if self.request.without_chunk_id is not None:
            unwanted = str(self.request.without_chunk_id)
            offers = [one for one in offers if one.id != unwanted]
        min_similarity = self.request.min_similarity
        if min_similarity is not None:
            offers = [
                one if (one.cosine or 0.0) >= min_similarity else one._replace(vector_rank=None)
                for one in offers
            ]
            offers = [one for one in offers if one.vector_rank or one.text_rank]
        return offers

    def rank(self, offers: Sequence[Offer], count: int) -> list[Ranked]:
        """Fuse the offers into one order, best first: `count` of them, or all if all are needed."""
        request = self.request
        counts_scores = request.threshold is not None and not self.fills_up
        limit = None if counts_scores or self.legs.by_document else count
        if request.as_shown and request.mode is SearchMode.HYBRID:
            return fuse(offers, self.ranking, self.scale, limit)
        if self.legs.vector is None:
            return order_by_words(offers, limit)
        if request.mode is SearchMode.VECTOR or self.legs.keywords is None:
            is_corrected = self.legs.vector.is_corrected
            return order_by_vector(offers, self.scale, limit, is_corrected=is_corrected)
        return fuse(offers, self.ranking, self.scale, limit)


def leg_limit(request: SearchRequest, limit: int, spare: int) -> int:
    """Return how many chunks each leg offers."""
    depth = max(_CANDIDATES, 2 * limit)
    if request.one_hit_per is Unit.DOCUMENT:
        depth = depth * spare // SPARE_RESULTS
    return request.leg_limit or max(depth, limit + spare)


def narrowing_of(request: SearchRequest, parsed: ParsedQuery) -> Narrowing:
    """Return the filters of a request and the operators of its query as conditions."""
    return narrowing(
        parsed,
        domain=request.domain,
        content_type=request.content_type,
        language=request.language,
        job_id=request.job_id,
        without_job_id=request.without_job_id,
        metadata=request.metadata,
        facets=request.facets,
        scope=request.scope,
    )
