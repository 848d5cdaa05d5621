"""The search plan: a request with all defaults filled in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import structlog

from portal.domain.deadlines import Deadline
from portal.domain.people import User
from portal.domain.search import (
    Correction,
    Fusion,
    KeywordBackend,
    Normalisation,
    SearchMode,
    SearchRequest,
    Unit,
    UsedParameters,
    Weights,
)
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
from portal.embeddings.calibration import QueryStatistics, uncorrected
from portal.embeddings.loaded import LoadedModel
from portal.errors import EmbedderUnavailable, InvalidEmbedding
from portal.services import Services
from portal.services.models import catalog
from portal.services.search import dynamic_config, query_vectors, respelling
from portal.services.search.dynamic_config import DynamicConfig
from portal.settings import SearchSettings
from portal.store.embedding_models.registry import RegisteredModel
from portal.store.search.context import SearchContext
from portal.store.search.keyword_index import KeywordState
from portal.store.search.legs import Trace
from portal.store.search.queries import KeywordQuery, Legs, VectorQuery
from portal.store.search.query_filters import Narrowing, narrowing
from portal.store.search.scope import Scope
from portal.store.search.visible_corpus import VisibleCorpus
from portal.text.terms.analyser import query_terms, tsquery_or
from portal.text.terms.query_syntax import ParsedQuery

log = structlog.get_logger(__name__)

# Offers of each leg to the fusion. Good chunks that both legs rank in the middle need depth, and a
# constant depth keeps their order the same as the number of results grows.
_CANDIDATES = 100
# Chunks loaded beyond the limit: near-identical chunks are grouped, and confidence compares a chunk
# with its rivals.
SPARE_RESULTS = 10
_MAX_SPARE = 1000

MODEL_NOT_INDEXED = "model_not_indexed"
KEYWORD_UNAVAILABLE = "keyword_unavailable"
VECTOR_UNAVAILABLE = "vector_unavailable"
PHRASE_NOT_FOUND = "phrase_not_found"


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """What a search does. `legs` are asked, `ranking` and `scale` put their offers into one order,
    `loaded` and `statistics` are for confidence. `words_alone` lists the keyword backends to use
    without meaning, best first; with `lacks_words` the server has none for hybrid search.
    `degraded` lists codes of what is left out. Attempts without a leg, without phrases or with more
    candidates are copies of the plan."""

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
        """Tell whether keyword hits may replace those below a threshold of confidence."""
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
        return max(self.limit + self.spare, MAX_COMPARED_BY_PROXIMITY, rerank_candidates)

    def with_spare(self, spare: int) -> SearchPlan:
        """Return the plan for more candidates."""
        legs = replace(self.legs, leg_limit=_leg_limit(self.request, self.limit, spare))
        return replace(self, legs=legs, spare=spare)

    @property
    def is_far(self) -> bool:
        """Whether to look no further: one document may fill any number of chunks, copies of one
        chunk are few."""
        return self.spare > _MAX_SPARE and not self.legs.by_document

    def without_phrases(self) -> SearchPlan:
        """Return the plan for a query whose phrases match nothing."""
        parsed = replace(self.parsed, phrases=())
        scope = replace(self.legs.scope, narrowing=_narrowing(self.request, parsed))
        degraded = (*self.degraded, PHRASE_NOT_FOUND)
        return replace(self, parsed=parsed, legs=replace(self.legs, scope=scope), degraded=degraded)

    def attempts(self) -> list[SearchPlan]:
        """Return plans for both legs if there are two, then for each leg alone, so that one broken
        index does not stop a search."""
        vector, keywords = self.legs.vector, self.legs.keywords
        if vector is None:
            return [self._with_legs(None, one) for one in self.words_alone]
        both = [self] if keywords else []
        without = (KEYWORD_UNAVAILABLE,) if keywords or self.lacks_words else ()
        alone = [
            self._with_legs(None, one, VECTOR_UNAVAILABLE)
            for one in self.words_alone[:1]
            if self.request.mode is SearchMode.HYBRID
        ]
        return [*both, self._with_legs(vector, None, *without), *alone]

    def _with_legs(
        self, vector: VectorQuery | None, keywords: KeywordQuery | None, *degraded: str
    ) -> SearchPlan:
        legs = replace(self.legs, vector=vector, keywords=keywords)
        return replace(self, legs=legs, degraded=(*self.degraded, *degraded))

    def until(self, deadline: Deadline) -> SearchPlan:
        """Return the plan with a deadline."""
        return replace(self, legs=replace(self.legs, deadline=deadline))

    @property
    def weighs_proximity(self) -> bool:
        """Tell whether words that stand together count: its weight fits calibrated scores."""
        ranking = self.ranking
        is_calibrated = (ranking.fusion, ranking.normalisation) == (
            Fusion.WEIGHTED,
            Normalisation.CALIBRATED,
        )
        has_legs = self.legs.vector is not None and self.legs.keywords is not None
        is_hybrid = self.request.mode is SearchMode.HYBRID and not self.request.as_shown
        return is_calibrated and has_legs and is_hybrid and not self.legs.by_document

    def rank(self, offers: list[Offer]) -> list[Ranked]:
        """Fuse the offers into one order, best first."""
        if self.request.without_chunk_id is not None:
            unwanted = str(self.request.without_chunk_id)
            offers = [one for one in offers if one.id != unwanted]
        least = self.request.min_similarity
        if least is not None:
            offers = [
                one if (one.cosine or 0.0) >= least else one._replace(vector_rank=None)
                for one in offers
            ]
            offers = [one for one in offers if one.vector_rank or one.text_rank]
        if self.request.as_shown and self.request.mode is SearchMode.HYBRID:
            return fuse(offers, self.ranking, self.scale)
        if self.legs.vector is None:
            return order_by_words(offers)
        if self.request.mode is SearchMode.VECTOR or self.legs.keywords is None:
            return order_by_vector(offers, self.scale, is_corrected=self.legs.vector.is_corrected)
        return fuse(offers, self.ranking, self.scale)


def make_plan(
    services: Services,
    user: User,
    request: SearchRequest,
    parsed: ParsedQuery,
    *,
    context: SearchContext,
    corpus: VisibleCorpus | None,
    trace: Trace,
) -> SearchPlan:
    """Fill in defaults, and embed the query. Raises InvalidQueryVector; for a semantic-only search
    EmbedderUnavailable, InvalidEmbedding."""
    settings = services.settings.search
    correction = _correction(services, user, request, parsed) if request.fuzzy else None
    if correction is not None:
        parsed = respelling.parse(request, correction.query)
    config = dynamic_config.from_stored(context.config, settings)
    ranking, terms = _ranking(request, config), query_terms(parsed.text)
    limit = request.top_n or _top_n(request, context.config, config, settings)
    with trace.timed("embedding"):
        meaning = _meaning(services, request, parsed, context.model)
    words = _words(request, terms, ranking, context.keywords, is_alone=meaning.query is None)
    legs = Legs(
        scope=Scope(user, request.conversation_id, _narrowing(request, parsed)),
        vector=meaning.query,
        keywords=words.beside,
        versions=context.versions,
        corpus=corpus,
        corpus_version=context.corpus_version,
        total_chunks=context.keywords.chunk_count,
        leg_limit=_leg_limit(request, limit, SPARE_RESULTS),
        # Replaced by each attempt: embedding the query has a timeout of its own.
        deadline=Deadline.within(settings.statement_timeout_s),
        settings=settings,
        by_document=request.one_hit_per is Unit.DOCUMENT,
    )
    scale = Scale()
    if (statistics := meaning.statistics) is not None:
        floor = services.calibration.text_floor(len(terms), legs.visible_chunks)
        is_faded = words.is_bm25 and not request.as_shown
        scale = Scale(statistics.v_lo, statistics.v_width, floor if is_faded else 0.0)
    return SearchPlan(
        user=user,
        request=request,
        parsed=parsed,
        terms=terms,
        config=config,
        ranking=ranking,
        scale=scale,
        legs=legs,
        limit=limit,
        correction=correction,
        loaded=meaning.loaded,
        statistics=statistics,
        words_alone=words.alone,
        lacks_words=words.are_lacking,
        degraded=(*meaning.degraded, *words.degraded),
    )


def _correction(
    services: Services, user: User, request: SearchRequest, parsed: ParsedQuery
) -> Correction | None:
    """Return the corrected query of a request for any spelling."""
    if request.mode is SearchMode.VECTOR:
        return None
    threshold = services.settings.search.text.fuzzy_threshold
    with services.database.read() as session:
        found = respelling.correct(session, user, request, parsed, threshold=threshold)
    return found and replace(found, is_applied=True)


def _leg_limit(request: SearchRequest, limit: int, spare: int) -> int:
    """Return how many chunks each leg offers."""
    depth = max(_CANDIDATES, 2 * limit)
    if request.one_hit_per is Unit.DOCUMENT:
        depth = depth * spare // SPARE_RESULTS
    return request.leg_limit or max(depth, limit + spare)


def _top_n(
    request: SearchRequest,
    stored: Mapping[str, Any],
    config: DynamicConfig,
    settings: SearchSettings,
) -> int:
    """Return the number of hits for a request that gives none."""
    if request.default_top_n is None:
        return config.top_n
    return min(config.top_n if "top_n" in stored else request.default_top_n, settings.max_top_k)


def _ranking(request: SearchRequest, config: DynamicConfig) -> Ranking:
    weights = request.weights or Weights(config.semantic_weight, config.bm25_weight)
    return Ranking(
        fusion=request.fusion or config.fusion,
        normalisation=request.normalisation or config.normalisation,
        weights=weights.as_shares(),
        rrf_k=request.rrf_k or config.rrf_k,
        as_shown=request.as_shown,
    )


def _narrowing(request: SearchRequest, parsed: ParsedQuery) -> Narrowing:
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


class _Meaning(NamedTuple):
    """The query's vector, or the reason why there is none."""

    query: VectorQuery | None = None
    statistics: QueryStatistics | None = None
    loaded: LoadedModel | None = None
    degraded: tuple[str, ...] = ()


def _meaning(
    services: Services, request: SearchRequest, parsed: ParsedQuery, model: RegisteredModel | None
) -> _Meaning:
    loaded = None
    if request.mode is SearchMode.KEYWORD:
        return _Meaning()
    if model is None:
        return _Meaning(degraded=(MODEL_NOT_INDEXED,))
    if request.query_vector is not None:
        vector = query_vectors.checked(request.query_vector, model)
        statistics = uncorrected(vector, parsed.text)
    else:
        try:
            loaded = catalog.loaded(services, model, is_urgent=True)
            vector = loaded.embedder.embed_query(parsed.text)
        except (EmbedderUnavailable, InvalidEmbedding) as error:
            if request.mode is SearchMode.VECTOR:
                raise
            log.warning("query_not_embedded", code=error.code)
            return _Meaning(degraded=(EmbedderUnavailable.code,))
        statistics = loaded.calibration.query_statistics(vector, parsed.text)
    # A semantic-only search uses the model's own cosine; a hybrid search corrects the query's
    # vector for its language (docs/retrieval-quality.md).
    is_hybrid = request.mode is SearchMode.HYBRID and not request.as_shown
    query = VectorQuery(
        model=model,
        search_vector=statistics.search_vector if is_hybrid else statistics.vector,
        plain_vector=statistics.vector,
        corrected_vector=statistics.search_vector,
        is_corrected=is_hybrid,
    )
    return _Meaning(query, statistics, loaded)


class _Words(NamedTuple):
    """The keyword queries beside meaning and, best first, for keywords alone."""

    beside: KeywordQuery | None = None
    alone: tuple[KeywordQuery, ...] = ()
    is_bm25: bool = False
    are_lacking: bool = False
    degraded: tuple[str, ...] = ()


def _words(
    request: SearchRequest,
    terms: tuple[str, ...],
    ranking: Ranking,
    state: KeywordState,
    *,
    is_alone: bool,
) -> _Words:
    is_vector = request.mode is SearchMode.VECTOR
    if is_vector and request.threshold is None:
        return _Words()
    fallback = () if state.alone is KeywordBackend.OFF else (KeywordBackend.TSVECTOR,)
    backends = dict.fromkeys((state.alone, *fallback))
    alone = tuple(one for backend in backends if (one := _keywords(terms, backend)))
    if is_alone:
        is_off = not is_vector and state.alone is KeywordBackend.OFF
        return _Words(alone=alone, degraded=(KEYWORD_UNAVAILABLE,) if is_off else ())
    # A leg that finds too little is filled up by keywords alone.
    is_beside = ranking.weights.vector > 0 and not is_vector
    backend = state.backend if is_beside else state.alone
    return _Words(
        beside=_keywords(terms, backend),
        alone=alone,
        is_bm25=backend is KeywordBackend.PG_TEXTSEARCH,
        are_lacking=backend is KeywordBackend.OFF and not is_vector,
    )


def _keywords(terms: tuple[str, ...], backend: KeywordBackend) -> KeywordQuery | None:
    """Return the keyword query; None without a backend or a word."""
    # An empty query would match every row.
    if backend is KeywordBackend.OFF or not terms:
        return None
    is_bm25 = backend is KeywordBackend.PG_TEXTSEARCH
    return KeywordQuery(backend, terms, " ".join(terms) if is_bm25 else tsquery_or(terms))
