"""What a search needs before it asks for passages: all that the request left to the configuration,
its spelling, and the question's vector.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import structlog

from portal.domain.people import User
from portal.domain.search import Correction, Fusion, SearchMode, SearchRequest, Unit, Weights
from portal.embeddings.calibration import QueryStatistics, uncorrected
from portal.embeddings.loaded import LoadedModel
from portal.errors import EmbedderUnavailable, InvalidEmbedding
from portal.services import Services
from portal.services.models import catalog
from portal.services.search import dynamic_config, query_vectors, spelling
from portal.services.search.dynamic_config import DynamicConfig
from portal.services.search.spelling import Seen
from portal.store.embedding_models.registry import RegisteredModel
from portal.store.search.context import SearchContext
from portal.store.search.enabled_sets import Scope, Versions
from portal.store.search.keyword_index import KeywordState
from portal.store.search.legs import Limits, Ranking, timed, visible_corpus
from portal.store.search.query_filters import narrowing
from portal.store.session import Session
from portal.text.analyser import query_terms
from portal.text.query_syntax import ParsedQuery, parse_query, respell

log = structlog.get_logger(__name__)

# What each leg offers to the fusion. Good passages that both legs rank middling need depth, and
# the same depth for whatever number of results keeps their order the same as it grows.
_CANDIDATES = 100
# Results beyond those wanted: near-identical ones among them are shown as one, and confidence
# compares a passage with its rivals.
SPARE_RESULTS = 10

MODEL_NOT_INDEXED = "model_not_indexed"


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request with everything filled in that it left to the configuration."""

    request: SearchRequest
    user: User
    parsed: ParsedQuery
    config: DynamicConfig
    keywords: KeywordState
    model: RegisteredModel | None
    versions: Versions
    corpus_version: int
    correction: Correction | None
    terms: tuple[str, ...]
    milliseconds: dict[str, float]
    visible_chunks: int
    loaded: LoadedModel | None = None
    statistics: QueryStatistics | None = None
    degraded: tuple[str, ...] = ()

    @property
    def limit(self) -> int:
        return self.request.top_n or self.config.top_n

    @property
    def demands_text(self) -> bool:
        """Whether the question demands something of the text or the metadata of passages."""
        return bool(self.scope(phrases=True).narrowing.chunks)

    def ranking(self) -> Ranking:
        request, config = self.request, self.config
        # Within one domain there is none to prefer.
        is_plain = request.as_shown or request.domain is not None
        domain = None if is_plain else self.user.preferred_domain
        return Ranking(
            fusion=request.fusion or (Fusion.WEIGHTED if request.as_shown else config.fusion),
            normalisation=request.normalisation or config.normalisation,
            weights=request.weights or Weights(config.semantic_weight, config.bm25_weight),
            rrf_k=config.rrf_k if request.rrf_k is None else request.rrf_k,
            preferred_domain=domain,
            boost=config.domain_boost,
            as_shown=request.as_shown,
        )

    def limits(self, *, least: int, spare: int) -> Limits:
        if self.request.one_hit_per is Unit.DOCUMENT:
            depth = max(_CANDIDATES, 2 * self.limit) * spare // SPARE_RESULTS
            return Limits(limit=self.limit, leg_limit=depth, threshold=0.0, by_document=True)
        limit = max(self.limit + spare, least)
        return Limits(
            limit=limit,
            leg_limit=max(_CANDIDATES, 2 * self.limit, limit),
            threshold=self.request.threshold or 0.0,
        )

    def scope(self, *, phrases: bool) -> Scope:
        parsed = self.parsed if phrases else replace(self.parsed, phrases=())
        request = self.request
        conditions = narrowing(
            parsed,
            domain=request.domain,
            content_type=request.content_type,
            job_id=request.job_id,
            without_job_id=request.without_job_id,
            metadata=request.metadata,
        )
        return Scope(self.user, request.conversation_id, conditions)


def prepare(
    services: Services,
    user: User,
    request: SearchRequest,
    parsed: ParsedQuery,
    *,
    context: SearchContext,
    milliseconds: dict[str, float],
) -> Prepared:
    """Fill in what is in force; `milliseconds` are kept with it, and added to. Raises
    InvalidQueryVector, when meaning alone was asked for EmbedderUnavailable, InvalidEmbedding."""
    correction = _correct(services, user, request, parsed)
    if correction is not None:
        parsed = parsed_as(request, correction.query)
    prepared = Prepared(
        request=request,
        user=user,
        parsed=parsed,
        config=dynamic_config.from_stored(context.config, services.settings.search),
        keywords=context.keywords,
        model=context.model,
        versions=context.versions,
        corpus_version=context.corpus_version,
        correction=correction,
        terms=query_terms(parsed.text),
        milliseconds=milliseconds,
        visible_chunks=_count_visible(services, user, context),
    )
    with timed(milliseconds, "embedding"):
        return _embed(services, prepared)


def _count_visible(services: Services, user: User, context: SearchContext) -> int:
    """About how many chunks the user may see: what scores are judged by."""
    with services.database.read() as session:
        corpus = visible_corpus(session, user, context.versions, services.enabled_sets)
    return context.keywords.chunk_count if corpus is None else corpus.chunk_count


def _correct(
    services: Services, user: User, request: SearchRequest, parsed: ParsedQuery
) -> Correction | None:
    """The spelling to search for, when asked to look for the nearest words."""
    if not request.fuzzy or request.mode is SearchMode.VECTOR:
        return None
    with services.database.read() as session:
        threshold = services.settings.search.text.fuzzy_threshold
        found = respelt(session, user, request, parsed, threshold=threshold)
    return replace(found, is_applied=True) if found else None


def respelt(
    session: Session,
    user: User,
    request: SearchRequest,
    parsed: ParsedQuery,
    seen: Seen = Seen(),  # noqa: B008 - it never changes
    *,
    threshold: float,
) -> Correction | None:
    """The whole question in another spelling; None where that is the one it has. Words that were
    `seen` are not looked up."""
    conversation_id = request.conversation_id
    # Words of titles are looked up in titles.
    plain = "" if parsed.is_of_titles else parsed.text
    text = spelling.correct(session, user, conversation_id, plain, seen, threshold=threshold)
    titles = spelling.correct_titles(
        session, user, conversation_id, parsed.titles, threshold=threshold
    )
    in_text, in_titles = (found.replaced if found else () for found in (text, titles))
    if request.operators:
        query = respell(request.query, in_text, in_titles)
    else:
        query = text.query if text else request.query
    if query == request.query:
        return None
    terms = query_terms(parsed_as(request, query).text)
    return Correction(query, terms, tuple(dict.fromkeys((*in_text, *in_titles))))


def parsed_as(request: SearchRequest, query: str) -> ParsedQuery:
    """What is asked with these words, read as the request wants it read."""
    return parse_query(query) if request.operators else ParsedQuery(query)


def _embed(services: Services, prepared: Prepared) -> Prepared:
    """With the question's vector and what is known of it, or with why there is none."""
    if prepared.request.mode is SearchMode.KEYWORD:
        return prepared
    if prepared.model is None:
        return replace(prepared, degraded=(MODEL_NOT_INDEXED,))
    if prepared.request.query_vector is not None:
        vector = query_vectors.checked(prepared.request.query_vector, prepared.model)
        return replace(prepared, statistics=uncorrected(vector, prepared.parsed.text))
    try:
        loaded = catalog.loaded(services, prepared.model, is_urgent=True)
        vector = loaded.embedder.embed_query(prepared.parsed.text)
    except (EmbedderUnavailable, InvalidEmbedding) as error:
        if prepared.request.mode is SearchMode.VECTOR:
            raise
        log.warning("query_not_embedded", code=error.code)
        return replace(prepared, degraded=(EmbedderUnavailable.code,))
    statistics = loaded.calibration.query_statistics(vector, prepared.parsed.text)
    return replace(prepared, loaded=loaded, statistics=statistics)
