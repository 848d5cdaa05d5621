"""The legs of a search, by meaning and by words: what each looks for, and what is done when one
fails or is late.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import structlog

from portal.domain.deadlines import Deadline
from portal.domain.search import KeywordBackend, SearchMode, SearchOutcome
from portal.errors import Unavailable
from portal.services import Services
from portal.services.search import results, spelling
from portal.services.search.preparation import SPARE_RESULTS, Prepared, respelt
from portal.services.search.results import Found, Ran
from portal.services.search.spelling import Seen
from portal.store.embedding_models import registry
from portal.store.embedding_models.registry import RegisteredModel
from portal.store.search.legs import (
    Candidate,
    ChunkSearch,
    KeywordQuery,
    StatementFailed,
    Trace,
    VectorQuery,
)
from portal.text.analyser import tsquery_or

log = structlog.get_logger(__name__)

# Where copies fill the results nevertheless, so many more are asked for, up to the last number.
_MORE = 8
_MAX_SPARE = 1000
# Of the time that is left, what an attempt may take that has another one behind it.
_SHARE_OF_TIME = 0.5
# Of a question with words that were found so many may be misspelt, and it has so many at most: in a
# longer one the others find what is meant, and a word that is nowhere is mostly right.
_MAX_SLIPS = 1
_SHORT = 4

KEYWORD_UNAVAILABLE = "keyword_unavailable"
VECTOR_UNAVAILABLE = "vector_unavailable"
PHRASE_NOT_FOUND = "phrase_not_found"
NO_WORDS = "no_words"


class ModelGone(Exception):
    """The model that the question was embedded with serves no more."""


@dataclass(frozen=True, slots=True)
class _Attempt:
    """What to ask the store, and what that does without."""

    vector: VectorQuery | None
    keywords: KeywordQuery | None
    without: tuple[str, ...] = ()


def run(services: Services, prepared: Prepared, deadline: Deadline) -> SearchOutcome:
    """What both legs find; where that fails or is late what one of them finds, all of it by
    `deadline`. Raises Unavailable when none does, ModelGone, DatabaseUnavailable."""
    attempts = _attempts(services, prepared)
    if not attempts:
        is_by_words = prepared.request.mode is not SearchMode.VECTOR
        is_off = is_by_words and prepared.keywords.alone is KeywordBackend.OFF
        return results.nothing(
            prepared.request, prepared.degraded + (KEYWORD_UNAVAILABLE,) * is_off
        )
    failure: StatementFailed | None = None
    for attempt in attempts:
        if failure is not None and deadline.is_over:
            break
        # What is demanded of the text itself is read anew for each attempt: where that takes half
        # of the time, half of it would do for none.
        is_whole = attempt is attempts[-1] or prepared.demands_text
        ends = deadline if is_whole else deadline.sooner(_SHARE_OF_TIME)
        try:
            return _outcome(services, prepared, attempt, ends)
        except StatementFailed as error:
            log.warning("search_leg_failed", error_type=type(error.__cause__).__name__)
            if attempt.vector is not None:
                _check_model(services, attempt.vector.model)
            failure = error
    raise Unavailable from failure


def _attempts(services: Services, prepared: Prepared) -> list[_Attempt]:
    """Both legs, then each alone, so that one broken index stops no one."""
    state = prepared.keywords
    vector = _vector_query(prepared)
    alone = [
        _Attempt(None, words)
        for backend in dict.fromkeys((state.alone, _fallback(state.alone)))
        if (words := _keyword_query(services, prepared, backend)) is not None
    ]
    if vector is None or prepared.request.mode is not SearchMode.HYBRID:
        return alone if vector is None else [_Attempt(vector, None)]
    # Where meaning does not count, words alone are asked for.
    backend = state.backend if prepared.ranking().weights.vector else state.alone
    beside = _keyword_query(services, prepared, backend)
    is_off = backend is KeywordBackend.OFF
    without = (KEYWORD_UNAVAILABLE,) if beside or is_off else ()
    return [
        *([_Attempt(vector, beside)] if beside else []),
        _Attempt(vector, None, without),
        *(replace(one, without=(VECTOR_UNAVAILABLE,)) for one in alone[:1]),
    ]


def _fallback(backend: KeywordBackend) -> KeywordBackend:
    """What ranks words where this backend fails."""
    is_bm25 = backend is KeywordBackend.PG_TEXTSEARCH
    return KeywordBackend.TSVECTOR if is_bm25 else backend


def _check_model(services: Services, model: RegisteredModel) -> None:
    """Whether a failed statement is owed to a switch of models."""
    with services.database.begin() as session:
        active = registry.find_active(session)
    if active is not None and active.id != model.id:
        raise ModelGone


def _vector_query(prepared: Prepared) -> VectorQuery | None:
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
        plain_vector=plain,
        corrected_vector=corrected,
        is_corrected=is_hybrid,
        likeness_low=statistics.v_lo,
        likeness_width=statistics.v_width,
        min_similarity=prepared.request.min_similarity,
    )


def _keyword_query(
    services: Services, prepared: Prepared, backend: KeywordBackend
) -> KeywordQuery | None:
    """None without a backend or without a word: an empty query would match every row."""
    terms = prepared.terms
    if prepared.request.mode is SearchMode.VECTOR or backend is KeywordBackend.OFF or not terms:
        return None
    is_bm25 = backend is KeywordBackend.PG_TEXTSEARCH
    words = " ".join(terms) if is_bm25 else tsquery_or(terms)
    if not is_bm25 or prepared.request.as_shown:
        return KeywordQuery(backend, terms, words, text_floor=0.0)
    floor = services.calibration.text_floor(len(terms), prepared.visible_chunks)
    return KeywordQuery(backend, terms, words, text_floor=floor)


def _outcome(
    services: Services,
    prepared: Prepared,
    attempt: _Attempt,
    deadline: Deadline,
) -> SearchOutcome:
    """What one attempt finds, made ready to be read."""
    degraded = prepared.degraded + attempt.without
    found, trace = _find(services, prepared, attempt, deadline, phrases=True)
    if not found.candidates and prepared.parsed.phrases:
        found, trace = _find(services, prepared, attempt, deadline, phrases=False)
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
        sees_everything=prepared.user.is_admin,
    )
    outcome = results.outcome(services, ran, found)
    return _with_suggestion(services, prepared, outcome, found.candidates)


def _find(
    services: Services, prepared: Prepared, attempt: _Attempt, deadline: Deadline, *, phrases: bool
) -> tuple[Found, Trace]:
    """Candidates enough to show as many different passages as are wanted, if there are."""
    spare = SPARE_RESULTS
    while True:
        chunks, candidates = _find_once(
            services, prepared, attempt, deadline, phrases=phrases, spare=spare
        )
        found = Found.of(candidates, prepared.request.one_hit_per)
        is_enough = found.different >= prepared.limit or chunks.has_all(candidates)
        # One document may fill any number of passages; copies of one passage are few.
        is_far = spare > _MAX_SPARE and not chunks.limits.by_document
        if is_enough or is_far:
            return found, chunks.trace
        spare *= _MORE


def _find_once(
    services: Services,
    prepared: Prepared,
    attempt: _Attempt,
    deadline: Deadline,
    *,
    phrases: bool,
    spare: int,
) -> tuple[ChunkSearch, list[Candidate]]:
    settings = services.settings
    least = settings.rerank.candidates if services.reranker is not None else 0
    with services.database.read() as session:
        chunks = ChunkSearch(
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
            deadline=deadline,
        )
        return chunks, chunks.run(explain=prepared.request.explain)


def _with_suggestion(
    services: Services,
    prepared: Prepared,
    outcome: SearchOutcome,
    candidates: Sequence[Candidate],
) -> SearchOutcome:
    """With another spelling to offer, where words of the question stand in no passage."""
    request, parsed = prepared.request, prepared.parsed
    if request.fuzzy or request.mode is SearchMode.VECTOR:
        return outcome
    seen = Seen(
        words=[word for hit in outcome.hits for word in (*hit.matched_words, hit.title)],
        texts=[candidate.content for candidate in candidates],
    )
    # Looking for spellings takes longer than many a search. Mostly all words are among the hits;
    # where one is not, a slip is likely, where several are not, another subject.
    has_titles = bool(outcome.hits or not parsed.titles)
    doubtful = 0 if parsed.is_of_titles else spelling.count_doubtful(parsed.text, seen)
    is_long = doubtful > _MAX_SLIPS or len(prepared.terms) > _SHORT
    has_matches = bool(candidates and candidates[0].text_count)
    if has_titles and (not doubtful or (has_matches and is_long)):
        return outcome
    with services.database.read() as session:
        threshold = services.settings.search.text.fuzzy_threshold
        suggestion = respelt(session, prepared.user, request, parsed, seen, threshold=threshold)
    return replace(outcome, correction=suggestion)
