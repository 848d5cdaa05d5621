"""Searching: a question in, passages with scores and a calibrated confidence out.

A search reads what is in force (`_Prepared`), embeds the question outside any transaction, runs
one statement (`store.search`), and makes of its rows what a person reads (`search_results`). What
fails on the way is left out and named in `degraded`: one broken index stops no one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import structlog

from portal import metrics
from portal.domain.people import Person
from portal.domain.search import (
    Correction,
    Fusion,
    KeywordBackend,
    SearchMode,
    SearchOutcome,
    SearchRequest,
    Unit,
    Weights,
)
from portal.embeddings.calibration import QueryStatistics, uncorrected
from portal.embeddings.loaded import LoadedModel
from portal.errors import (
    EmbedderUnavailable,
    InvalidEmbedding,
    NotFound,
    Unavailable,
    VectorStoreDisabled,
)
from portal.services import (
    Services,
    dynamic_config,
    kept_results,
    models,
    query_vectors,
    search_results,
    spelling,
)
from portal.services.dynamic_config import DynamicConfig
from portal.services.search_results import Found, Ran
from portal.store import conversations as conversation_store
from portal.store import embedding_models
from portal.store.embedding_models import RegisteredModel
from portal.store.enabled_sets import Scope, Versions
from portal.store.keyword_index import KeywordState
from portal.store.query_filters import narrowing
from portal.store.search import (
    Candidate,
    KeywordQuery,
    Limits,
    PassageSearch,
    Ranking,
    StatementFailed,
    Trace,
    VectorQuery,
    timed,
)
from portal.store.search_context import SearchContext, read_context
from portal.store.session import Session
from portal.text.analyser import query_terms, tsquery_or
from portal.text.query_syntax import ParsedQuery, parse_query, respell
from portal.text.scripts import has_visible_text

log = structlog.get_logger(__name__)

# What each leg offers to the fusion. Good passages that both legs rank middling need depth, and
# the same depth for whatever number of results keeps their order the same as it grows.
_CANDIDATES = 100
# Results beyond those wanted: near-identical ones among them are shown as one, and confidence
# compares a passage with its rivals.
_SPARE_RESULTS = 10
# Where copies fill the results nevertheless, so many more are asked for, up to the last number.
_MORE = 8
_MOST_SPARE = 1000

KEYWORD_UNAVAILABLE = "keyword_unavailable"
VECTOR_UNAVAILABLE = "vector_unavailable"
MODEL_NOT_INDEXED = "model_not_indexed"
PHRASE_NOT_FOUND = "phrase_not_found"


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A request with everything filled in that it left to the configuration."""

    request: SearchRequest
    person: Person
    parsed: ParsedQuery
    config: DynamicConfig
    keywords: KeywordState
    model: RegisteredModel | None
    versions: Versions
    corpus_version: int
    correction: Correction | None
    terms: tuple[str, ...]
    milliseconds: dict[str, float]
    loaded: LoadedModel | None = None
    statistics: QueryStatistics | None = None
    degraded: tuple[str, ...] = ()

    @property
    def limit(self) -> int:
        return self.request.top_n or self.config.top_n

    def ranking(self) -> Ranking:
        request, config = self.request, self.config
        # Within one domain there is none to prefer.
        is_plain = request.as_shown or request.domain is not None
        domain = None if is_plain else self.person.preferred_domain
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
            depth = max(_CANDIDATES, 2 * self.limit) * spare // _SPARE_RESULTS
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
        return Scope(self.person, request.conversation_id, conditions)


def search(services: Services, person: Person, request: SearchRequest) -> SearchOutcome:
    """Find passages among what the person may see and has switched on, best first.

    Raises NotFound for a foreign conversation, EmbedderUnavailable when meaning alone was asked
    for and the model does not answer, InvalidQueryVector, VectorStoreDisabled. A leg that fails is
    left out and named in `degraded`.
    """
    with metrics.searching(request.mode.value):
        outcome = _search(services, person, request)
    metrics.search_found(outcome.search_method.value, len(outcome.hits), outcome.degraded)
    return outcome


def _search(services: Services, person: Person, request: SearchRequest) -> SearchOutcome:
    if request.mode is not SearchMode.KEYWORD and not services.settings.vector_store_enabled:
        raise VectorStoreDisabled
    parsed = parse_query(request.query) if request.operators else ParsedQuery(request.query)
    if request.query_vector is None and not has_visible_text(parsed.text):
        return _ask_nothing(services, person, request)
    try:
        return _find_or_remember(services, person, request, parsed)
    except _ModelGone:
        # Dropped by an administrator in this very moment; the next one serves.
        return _find_or_remember(services, person, request, parsed)


def _find_or_remember(
    services: Services, person: Person, request: SearchRequest, parsed: ParsedQuery
) -> SearchOutcome:
    milliseconds: dict[str, float] = {}
    with timed(milliseconds, "configuration"):
        context = _read_context(services, person, request)

    def find() -> SearchOutcome:
        prepared = _prepare(
            services, person, request, parsed, context=context, milliseconds=milliseconds
        )
        return _run(services, prepared)

    return kept_results.remembered(services, person, request, context, find)


def _ask_nothing(services: Services, person: Person, request: SearchRequest) -> SearchOutcome:
    """A question without a visible character, or of nothing but exclusions."""
    if request.conversation_id is not None:
        with services.database.begin() as session:
            if not conversation_store.belongs_to(session, request.conversation_id, person.id):
                raise NotFound
    return search_results.nothing(request, ())


class _ModelGone(Exception):
    """The model that the question was embedded with serves no more."""


# --- what is in force, and the question's vector --------------------------------------------------


def _read_context(services: Services, person: Person, request: SearchRequest) -> SearchContext:
    with services.database.read() as session:
        context = read_context(
            session,
            person.id,
            request.conversation_id,
            keyword_backend=services.settings.search.keyword_backend,
        )
    if request.conversation_id is not None and not context.has_conversation:
        raise NotFound
    return context


def _prepare(
    services: Services,
    person: Person,
    request: SearchRequest,
    parsed: ParsedQuery,
    *,
    context: SearchContext,
    milliseconds: dict[str, float],
) -> _Prepared:
    correction = _correct(services, person, request, parsed)
    prepared = _Prepared(
        request=request,
        person=person,
        parsed=parsed,
        config=dynamic_config.from_stored(context.config),
        keywords=context.keywords,
        model=context.model,
        versions=context.versions,
        corpus_version=context.corpus_version,
        correction=correction,
        terms=correction.terms if correction else query_terms(parsed.text),
        milliseconds=milliseconds,
    )
    with timed(milliseconds, "embedding"):
        return _embed(services, prepared)


def _correct(
    services: Services, person: Person, request: SearchRequest, parsed: ParsedQuery
) -> Correction | None:
    """The spelling to search for, when asked to look for the nearest words."""
    if not request.fuzzy or request.mode is SearchMode.VECTOR:
        return None
    with services.database.read() as session:
        found = _respelt(session, person, request, parsed)
    return replace(found, is_applied=True) if found else None


def _respelt(
    session: Session, person: Person, request: SearchRequest, parsed: ParsedQuery
) -> Correction | None:
    """The whole question in another spelling, its operators as they were."""
    found = spelling.correct(session, person, request.conversation_id, parsed.text)
    return replace(found, query=respell(request.query, found.replaced)) if found else None


def _embed(services: Services, prepared: _Prepared) -> _Prepared:
    """With the question's vector and what is known of it, or with why there is none."""
    if prepared.request.mode is SearchMode.KEYWORD:
        return prepared
    if prepared.model is None:
        return replace(prepared, degraded=(MODEL_NOT_INDEXED,))
    if prepared.request.query_vector is not None:
        vector = query_vectors.checked(prepared.request.query_vector, prepared.model)
        return replace(prepared, statistics=uncorrected(vector, prepared.parsed.text))
    try:
        loaded = models.loaded(services, prepared.model)
        vector = loaded.embedder.embed_query(prepared.parsed.text)
    except (EmbedderUnavailable, InvalidEmbedding) as error:
        if prepared.request.mode is SearchMode.VECTOR:
            raise
        log.warning("query_not_embedded", code=error.code)
        return replace(prepared, degraded=(EmbedderUnavailable.code,))
    statistics = loaded.calibration.query_statistics(vector, prepared.parsed.text)
    return replace(prepared, loaded=loaded, statistics=statistics)


# --- the legs, and what to do when one fails ------------------------------------------------------


def _run(services: Services, prepared: _Prepared) -> SearchOutcome:
    vector, keywords = _vector_query(prepared), _keyword_query(services, prepared)
    degraded = prepared.degraded
    if (
        prepared.request.mode is not SearchMode.VECTOR
        and prepared.keywords.backend is KeywordBackend.OFF
    ):
        degraded += (KEYWORD_UNAVAILABLE,)
    failure: StatementFailed | None = None
    for attempt in _attempts(vector, keywords):
        try:
            return _outcome(services, prepared, attempt, degraded)
        except StatementFailed as error:
            log.warning("search_leg_failed", error_type=type(error.__cause__).__name__)
            if attempt.vector is not None:
                _check_model(services, attempt.vector.model)
            failure = error
    if failure is not None:
        raise Unavailable from failure
    return search_results.nothing(prepared.request, degraded)


@dataclass(frozen=True, slots=True)
class _Attempt:
    """What to ask the store, and what that does without."""

    vector: VectorQuery | None
    keywords: KeywordQuery | None
    without: tuple[str, ...] = ()


def _attempts(vector: VectorQuery | None, keywords: KeywordQuery | None) -> Iterator[_Attempt]:
    """Both legs; where that fails each alone, so that one broken index stops no one."""
    if vector is not None or keywords is not None:
        yield _Attempt(vector, keywords)
    if vector is not None and keywords is not None:
        yield _Attempt(vector, None, (KEYWORD_UNAVAILABLE,))
        yield _Attempt(None, keywords, (VECTOR_UNAVAILABLE,))


def _check_model(services: Services, model: RegisteredModel) -> None:
    """Whether a failed statement is owed to a switch of models."""
    with services.database.begin() as session:
        active = embedding_models.find_active(session)
    if active is not None and active.id != model.id:
        raise _ModelGone


def _vector_query(prepared: _Prepared) -> VectorQuery | None:
    if prepared.statistics is None or prepared.model is None:
        return None
    statistics = prepared.statistics
    # "By meaning" alone means the model's own cosine; hybrid corrects the question's vector for
    # the language it is asked in (docs/retrieval-quality.md).
    is_hybrid = prepared.request.mode is SearchMode.HYBRID and not prepared.request.as_shown
    plain, corrected = statistics.vector, statistics.search_vector
    return VectorQuery(
        model=prepared.model,
        search_vector=corrected if is_hybrid else plain,
        scan_vectors=statistics.scan_vectors if is_hybrid else [plain],
        plain_vector=plain,
        corrected_vector=corrected,
        is_corrected=is_hybrid,
        likeness_low=statistics.v_lo,
        likeness_width=statistics.v_width,
        least_similarity=prepared.request.least_similarity,
    )


def _keyword_query(services: Services, prepared: _Prepared) -> KeywordQuery | None:
    """None without a backend or without a word: an empty query would match every row."""
    backend, terms = prepared.keywords.backend, prepared.terms
    if prepared.request.mode is SearchMode.VECTOR or backend is KeywordBackend.OFF or not terms:
        return None
    if backend is KeywordBackend.TSVECTOR:
        return KeywordQuery(backend, terms, tsquery_or(terms), text_floor=0.0)
    if prepared.request.as_shown:
        return KeywordQuery(backend, terms, " ".join(terms), text_floor=0.0)
    floor = services.calibration.text_floor(len(terms), prepared.keywords.chunk_count)
    return KeywordQuery(backend, terms, " ".join(terms), text_floor=floor)


def _outcome(
    services: Services, prepared: _Prepared, attempt: _Attempt, degraded: tuple[str, ...]
) -> SearchOutcome:
    """What one attempt finds, made ready to be read."""
    degraded += attempt.without
    found, trace = _find(services, prepared, attempt, phrases=True)
    if not found.candidates and prepared.parsed.phrases:
        found, trace = _find(services, prepared, attempt, phrases=False)
        degraded += (PHRASE_NOT_FOUND,) if found.candidates else ()
    trace.milliseconds = prepared.milliseconds | trace.milliseconds
    ran = Ran(
        request=prepared.request,
        parsed=prepared.parsed,
        terms=prepared.terms,
        config=prepared.config,
        limit=prepared.limit,
        ranking=prepared.ranking(),
        loaded=prepared.loaded,
        statistics=prepared.statistics,
        vector=attempt.vector,
        keywords=attempt.keywords,
        correction=prepared.correction,
        degraded=degraded,
        trace=trace,
    )
    outcome = search_results.outcome(services, ran, found)
    if outcome.correction is None and _may_be_misspelt(attempt, found.candidates, outcome):
        outcome = replace(outcome, correction=_suggestion(services, prepared))
    return outcome


def _find(
    services: Services, prepared: _Prepared, attempt: _Attempt, *, phrases: bool
) -> tuple[Found, Trace]:
    """Candidates enough to show as many different passages as are wanted, if there are."""
    spare = _SPARE_RESULTS
    while True:
        passages, candidates = _find_once(services, prepared, attempt, phrases=phrases, spare=spare)
        found = Found.of(candidates, prepared.request.one_hit_per)
        is_enough = found.different >= prepared.limit or passages.has_all(candidates)
        # One document may fill any number of passages; copies of one passage are few.
        is_far = spare > _MOST_SPARE and not passages.limits.by_document
        if is_enough or is_far:
            return found, passages.trace
        spare *= _MORE


def _find_once(
    services: Services, prepared: _Prepared, attempt: _Attempt, *, phrases: bool, spare: int
) -> tuple[PassageSearch, list[Candidate]]:
    settings = services.settings
    least = settings.rerank.candidates if services.reranker is not None else 0
    with services.database.read() as session:
        passages = PassageSearch(
            session,
            prepared.scope(phrases=phrases),
            vector=attempt.vector,
            keywords=attempt.keywords,
            ranking=prepared.ranking(),
            limits=prepared.limits(least=least, spare=spare),
            total_chunks=prepared.keywords.chunk_count,
            versions=prepared.versions,
            settings=settings.search,
            enabled_sets=services.enabled_sets,
            corpus_version=prepared.corpus_version,
        )
        return passages, passages.run(explain=prepared.request.explain)


def _may_be_misspelt(
    attempt: _Attempt, candidates: Sequence[Candidate], outcome: SearchOutcome
) -> bool:
    """Whether no word of the question was found at all, and by meaning nothing that is sure."""
    if attempt.keywords is None or (candidates and candidates[0].text_count):
        return False
    return all(hit.low_confidence for hit in outcome.hits)


def _suggestion(services: Services, prepared: _Prepared) -> Correction | None:
    """Another spelling to offer."""
    with services.database.begin() as session:
        return _respelt(session, prepared.person, prepared.request, prepared.parsed)
