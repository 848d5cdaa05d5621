"""Plan a search: fill in defaults, embed the query, choose the keyword queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import structlog

from portal.domain.deadlines import Deadline
from portal.domain.embedding import Vector
from portal.domain.people import User
from portal.domain.search import (
    Correction,
    KeywordBackend,
    SearchMode,
    SearchRequest,
    Unit,
    Weights,
)
from portal.domain.search.degraded import KEYWORD_INCOMPLETE, KEYWORD_UNAVAILABLE, MODEL_NOT_INDEXED
from portal.domain.search.fusion import Ranking, Scale
from portal.embeddings.calibration import QueryStatistics, uncorrected
from portal.embeddings.loaded import LoadedModel
from portal.embeddings.validation import validated
from portal.errors import EmbedderUnavailable, InvalidEmbedding, InvalidQueryVector
from portal.services import Services
from portal.services.models import catalog
from portal.services.search import dynamic_config
from portal.services.search.corrections import respelling
from portal.services.search.dynamic_config import DynamicConfig
from portal.services.search.plan import (
    SPARE_RESULTS,
    SearchPlan,
    leg_limit,
    narrowing_of,
)
from portal.settings import SearchSettings
from portal.store.embedding_models.registry import RegisteredModel
from portal.store.search.context import SearchContext
from portal.store.search.keywords.index import KeywordState
from portal.store.search.legs.trace import Trace
from portal.store.search.queries import KeywordQuery, Legs, VectorQuery
from portal.store.search.selection.scope import Scope
from portal.store.search.selection.visible_corpus import VisibleCorpus
from portal.store.search.word_counts import SearchableWords
from portal.text.terms.analyser import query_terms, tsquery_or
from portal.text.terms.query_syntax import ParsedQuery

log = structlog.get_logger(__name__)


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
        embedded = _embed_query(services, request, parsed, context.model)
    state = context.keywords
    if corpus is None:  # Administrators search the index of all chunks.
        state = replace(state, lacks_shared=False)
    keywords = _plan_keywords(request, terms, ranking, state, is_alone=embedded.query is None)
    legs = Legs(
        scope=Scope(user, request.conversation_id, narrowing_of(request, parsed)),
        vector=embedded.query,
        keywords=keywords.beside,
        versions=context.versions,
        corpus=corpus,
        corpus_version=context.corpus_version,
        total_chunks=context.keywords.chunk_count,
        leg_limit=leg_limit(request, limit, SPARE_RESULTS),
        # Replaced by each attempt: embedding the query has its own timeout.
        deadline=Deadline.within(settings.statement_timeout_s),
        settings=settings,
        by_document=request.one_hit_per is Unit.DOCUMENT,
    )
    is_faded = keywords.is_bm25 and not request.as_shown
    floor = services.calibration.text_floor(len(terms), legs.visible_chunks) if is_faded else 0.0
    statistics = embedded.statistics
    return SearchPlan(
        user=user,
        request=request,
        parsed=parsed,
        terms=terms,
        config=config,
        ranking=ranking,
        scale=Scale(statistics.v_lo, statistics.v_width, floor) if statistics else Scale(),
        legs=legs,
        limit=limit,
        correction=correction,
        loaded=embedded.loaded,
        statistics=statistics,
        words_alone=keywords.alone,
        lacks_words=keywords.are_lacking,
        degraded=(*embedded.degraded, *keywords.degraded),
    )


def _correction(
    services: Services, user: User, request: SearchRequest, parsed: ParsedQuery
) -> Correction | None:
    """Return the corrected query of a fuzzy request, if its spelling changes."""
    if request.mode is SearchMode.VECTOR:
        return None
    threshold = services.settings.search.text.fuzzy_threshold
    with services.database.read() as session:
        searchable = SearchableWords(session, user, request.conversation_id)
        found = respelling.correct(searchable, request, parsed, threshold=threshold)
    return found and replace(found, is_applied=True)


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


class _EmbeddedQuery(NamedTuple):
    """The query's vector, or the reason why there is none."""

    query: VectorQuery | None = None
    statistics: QueryStatistics | None = None
    loaded: LoadedModel | None = None
    degraded: tuple[str, ...] = ()


def _embed_query(
    services: Services, request: SearchRequest, parsed: ParsedQuery, model: RegisteredModel | None
) -> _EmbeddedQuery:
    """Embed the query. Raises InvalidQueryVector; in a semantic-only search EmbedderUnavailable and
    InvalidEmbedding, which are otherwise listed in `degraded`."""
    loaded = None
    if request.mode is SearchMode.KEYWORD:
        return _EmbeddedQuery()
    if model is None:
        return _EmbeddedQuery(degraded=(MODEL_NOT_INDEXED,))
    if request.query_vector is not None:
        vector = _check_vector(request.query_vector, model)
        statistics = uncorrected(vector, parsed.text)
    else:
        try:
            loaded = catalog.loaded(services, model, is_urgent=True)
            vector = loaded.embedder.embed_query(parsed.text)
        except (EmbedderUnavailable, InvalidEmbedding) as error:
            if request.mode is SearchMode.VECTOR:
                raise
            log.warning("query_not_embedded", code=error.code)
            return _EmbeddedQuery(degraded=(EmbedderUnavailable.code,))
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
    return _EmbeddedQuery(query, statistics, loaded)


class _KeywordQueries(NamedTuple):
    """The keyword queries beside a vector and, best first, for keywords alone."""

    beside: KeywordQuery | None = None
    alone: tuple[KeywordQuery, ...] = ()
    is_bm25: bool = False
    are_lacking: bool = False
    degraded: tuple[str, ...] = ()


def _plan_keywords(
    request: SearchRequest,
    terms: tuple[str, ...],
    ranking: Ranking,
    state: KeywordState,
    *,
    is_alone: bool,
) -> _KeywordQueries:
    """Choose the keyword queries; `is_alone` if there is no vector beside them."""
    is_vector = request.mode is SearchMode.VECTOR
    if is_vector and request.threshold is None:
        return _KeywordQueries()
    fallback = () if state.alone is KeywordBackend.OFF else (KeywordBackend.TSVECTOR,)
    backends = dict.fromkeys((state.alone, *fallback))
    alone = tuple(one for backend in backends if (one := _keyword_query(terms, backend)))
    if is_alone:
        if is_vector:
            return _KeywordQueries(alone=alone)
        is_incomplete = state.is_rebuilding or state.lacks_shared
        code = KEYWORD_INCOMPLETE if is_incomplete else None
        if state.alone is KeywordBackend.OFF:
            code = KEYWORD_UNAVAILABLE
        return _KeywordQueries(alone=alone, degraded=(code,) if code else ())
    # Keywords count as alone if vectors have no weight, or if they only fill up a vector search.
    is_beside = ranking.weights.vector > 0 and not is_vector
    backend = state.backend if is_beside else state.alone
    return _KeywordQueries(
        beside=_keyword_query(terms, backend),
        alone=alone,
        is_bm25=backend is KeywordBackend.PG_TEXTSEARCH,
        are_lacking=backend is KeywordBackend.OFF and not is_vector,
        degraded=(KEYWORD_INCOMPLETE,) if state.lacks_shared and not is_vector else (),
    )


def _keyword_query(terms: tuple[str, ...], backend: KeywordBackend) -> KeywordQuery | None:
    """Return the keyword query; None without a backend or a word."""
    # An empty query would match every row.
    if backend is KeywordBackend.OFF or not terms:
        return None
    is_bm25 = backend is KeywordBackend.PG_TEXTSEARCH
    return KeywordQuery(backend, terms, " ".join(terms) if is_bm25 else tsquery_or(terms))


def _check_vector(given: Sequence[float], model: RegisteredModel) -> Vector:
    """Return the vector (dimensions,) at unit length. Raises InvalidQueryVector, naming both
    dimensions if they differ."""
    if len(given) != model.dimensions:
        raise InvalidQueryVector(
            "it has %(got)s dimensions, and “%(name)s”, the model that serves, has %(wanted)s",
            got=len(given),
            name=model.name,
            wanted=model.dimensions,
        )
    try:
        (vector,) = validated([given], dimensions=model.dimensions, count=1)
    except InvalidEmbedding as error:
        raise InvalidQueryVector(**error.params) from error
    unit: Vector = vector
    return unit
