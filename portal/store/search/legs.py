"""The search of passages: what counts, which way to look, one statement, its rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, NamedTuple
from uuid import UUID

import psycopg
from psycopg.rows import class_row, scalar_row, tuple_row
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from portal.domain.deadlines import Deadline
from portal.domain.embedding import Vector
from portal.domain.people import User
from portal.domain.search import Fusion, KeywordBackend, Normalisation, SearchMode, Weights
from portal.settings import SearchSettings
from portal.store.documents.selection import selection_binds
from portal.store.embedding_models.registry import RegisteredModel
from portal.store.embedding_models.vector_index import scan_settings
from portal.store.search import keyword_candidates
from portal.store.search.enabled_sets import (
    EnabledSet,
    EnabledSets,
    Scope,
    Versions,
    count_enabled,
    list_chunks,
)
from portal.store.search.fusion import AS_SHOWN, FUSIONS, KEYWORD_ONLY, VECTOR_ONLY, VECTOR_PART
from portal.store.search.keyword_candidates import KEYWORD_ARRAYS, Scored
from portal.store.search.keyword_index import ALL_CHUNKS, SHARED_CHUNKS
from portal.store.search.statement import (
    DOCUMENTS_VERSION,
    KeywordLeg,
    KeywordPlan,
    Shape,
    VectorLeg,
    VectorPlan,
    bm25_statement,
    leg_statement,
    statement,
)
from portal.store.search.term_postings import Bm25Shape, TermPostings, WordWeights
from portal.store.search.tuning import Planner, Statements, under
from portal.store.search.visible_corpus import VisibleCorpus
from portal.store.session import is_connection_lost
from portal.store.vector_parameters import VectorParameter

# A corrected question is not like the passages that the graph was made of, and needs a broader
# front. Recall@10 of 100 rows at 50,000 passages: .979 with a front of 100, .994 with 150.
_FRONT_OF_A_SCAN = 1.5
# So often a search looks again where documents change while it runs.
_MAX_RETRIES = 3
# Of fewer passages than these all are compared, where that is not forbidden.
_MIN_SHARE = 0.1
# Of a user's own private chunks so many are named; only hits among more are lost.
_MAX_PRIVATE_CHUNKS = 100_000
_IS_PRIVATE = "AND d.visibility = 'private'"


class StatementFailed(Exception):
    """The search statement failed: an index is broken, an extension gone, time ran out."""


@dataclass(frozen=True, slots=True)
class VectorQuery:
    """What the vector leg looks for. `search_vector` orders the leg, `plain_vector` gives the
    cosine that is shown, `corrected_vector` the likeness that fusion and confidence use; low and
    width put likeness on the scale of this question. With `is_corrected` likeness orders even
    without a keyword leg, as in hybrid search that had to do without one. Below a cosine of
    `min_similarity` nothing counts as found by the leg."""

    model: RegisteredModel
    search_vector: Vector
    plain_vector: Vector
    corrected_vector: Vector
    is_corrected: bool
    likeness_low: float
    likeness_width: float
    min_similarity: float | None = None


@dataclass(frozen=True, slots=True)
class KeywordQuery:
    """What the keyword leg looks for. `words` are the question as the backend takes it."""

    backend: KeywordBackend
    terms: Sequence[str]
    words: str
    text_floor: float


@dataclass(frozen=True, slots=True)
class Ranking:
    """How the two legs become one order. Passages of `preferred_domain` score higher by `boost`,
    a share of the whole range of scores. With `as_shown` weighted fusion adds up the very scores
    that are shown, whatever the normalisation."""

    fusion: Fusion
    normalisation: Normalisation
    weights: Weights
    rrf_k: int
    preferred_domain: str | None = None
    boost: float = 0.0
    as_shown: bool = False


@dataclass(frozen=True, slots=True)
class Limits:
    """`limit` passages are wanted, or with `by_document` the best one of so many documents; each
    leg offers `leg_limit` passages; `threshold` is for counting."""

    limit: int
    leg_limit: int
    threshold: float
    by_document: bool = False


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage with its scores; the counts and `nearest`, the likeness of the `NEAREST_COMPARED`
    first of the vector leg, are over all candidates; `documents_version` is the collection's."""

    chunk_id: UUID
    document_id: UUID
    title: str
    media_type: str
    content: str
    terms: str
    language: str
    page: int | None
    page_label: str | None
    heading: str | None
    context: str | None
    char_start: int | None
    char_end: int | None
    cosine: float | None
    likeness: float | None
    bm25: float
    text_score: float
    vector_rank: int | None
    text_rank: int | None
    document_chunks: int
    score: float
    candidate_count: int
    vector_count: int
    text_count: int
    nearest: list[float] | None
    documents_version: int


@dataclass(frozen=True, slots=True)
class _Look:
    """What one look found. `began` is the version of the documents that the first of its statements
    rests on, `ended` that of the last: equal ones saw the same documents."""

    found: list[Candidate]
    shape: Shape | None
    binds: Mapping[str, Any]
    began: int
    ended: int


class _Words(NamedTuple):
    """What the index of words gave: binds for the statement, and the version of the documents."""

    binds: dict[str, Any]
    documents_version: int


@contextmanager
def timed(milliseconds: dict[str, float], step: str) -> Iterator[None]:
    """Note how long a step takes."""
    started = perf_counter()
    try:
        yield
    finally:
        milliseconds[step] = round((perf_counter() - started) * 1000, 3)


@dataclass(slots=True)
class Trace:
    """How a search ran: the plan of each leg, what is switched on, milliseconds a step.

    `total_chunks` are those of the vector index and `visible_chunks` those that the user may see.
    The former is for choosing a plan; nothing that is shown or scored may depend on it."""

    vector_plan: VectorPlan | None = None
    keyword_plan: KeywordPlan | None = None
    enabled: EnabledSet | None = None
    total_chunks: int = 0
    visible_chunks: int = 0
    milliseconds: dict[str, float] = field(default_factory=dict)

    def timed(self, step: str) -> AbstractContextManager[None]:
        return timed(self.milliseconds, step)


def visible_corpus(
    session: Session, user: User, versions: Versions, enabled_sets: EnabledSets
) -> VisibleCorpus | None:
    """What the statistics of a user's searches are over; None for administrators, who see all."""
    return None if user.is_admin else enabled_sets.visible.get(session, user.id, versions)


class ChunkSearch:
    """One search in one transaction. Made anew for each; `trace` tells how it went.

    At least one of `vector` and `keywords` is given; with one, its own score orders the results.
    """

    def __init__(
        self,
        session: Session,
        scope: Scope,
        *,
        vector: VectorQuery | None,
        keywords: KeywordQuery | None,
        ranking: Ranking,
        limits: Limits,
        total_chunks: int,
        versions: Versions,
        settings: SearchSettings,
        enabled_sets: EnabledSets,
        corpus_version: int | None = None,
        deadline: Deadline | None = None,
    ) -> None:
        """Without `corpus_version`, which is read with `versions`, no words are remembered. No
        statement runs on after `deadline`, by default `statement_timeout_s` from now on."""
        self._session = session
        self._scope = scope
        self._vector = vector
        self._keywords = keywords
        self._ranking = ranking
        self.limits = limits
        self._versions = versions
        self._settings = settings
        self._enabled_sets = enabled_sets
        self._corpus_version = corpus_version
        self._deadline = deadline or Deadline.within(settings.statement_timeout_s)
        self._corpus = visible_corpus(session, scope.user, versions, enabled_sets)
        visible_chunks = total_chunks if self._corpus is None else self._corpus.chunk_count
        self.trace = Trace(
            total_chunks=max(total_chunks, visible_chunks), visible_chunks=visible_chunks
        )

    def run(self, *, explain: bool = False) -> list[Candidate]:
        """The best passages among what this person may see and has switched on.

        `candidate_count` counts those that score `threshold` or more; the rows are not cut by it,
        because confidence is judged among the best, whatever their score. With `explain` each leg
        is run once more, alone, to time it. Raises StatementFailed.
        """
        try:
            return self._run(explain=explain)
        except (DBAPIError, psycopg.Error) as error:
            if is_connection_lost(error):
                raise
            raise StatementFailed from error

    def _run(self, *, explain: bool) -> list[Candidate]:
        with self.trace.timed("selection"):
            enabled = self._enabled()
        look = self._look(enabled)
        for _ in range(_MAX_RETRIES - 1):
            # Where documents changed while it was found out what counts, a new version of one has
            # other passages now: it would be found neither by the old ones nor by these. With no
            # time left what was found is better than nothing.
            if look.ended == look.began or self._deadline.is_over:
                break
            if enabled.ids is not None or self._has_private:
                self._versions = replace(self._versions, documents=look.ended)
                before, enabled = enabled, self._enabled()
                if enabled.is_same(before):
                    break
            look = self._look(enabled)
        if explain and look.shape is not None:
            self._time_legs(look.shape, look.binds)
        return look.found

    def _look(self, enabled: EnabledSet) -> _Look:
        if not enabled.document_count:
            return _Look([], None, {}, began=0, ended=0)
        self._choose_plans(enabled)
        shape = self._shape(enabled)
        binds = self._binds(enabled)
        rests_on_versions = enabled.ids is not None or self._has_private
        began = self._versions.documents if rests_on_versions else None
        private: Sequence[Scored] = ()
        if shape.takes_keyword_selection:
            with self.trace.timed("keyword_selection"):
                binds |= self._keyword_selection(enabled)
        elif shape.takes_keyword_index and self._has_private:
            with self.trace.timed("keyword_selection"):
                private = self._private_candidates()
        with under(self._session, self._planner_settings()) as statements:
            if shape.takes_keyword_index:
                with self.trace.timed("keyword_index"):
                    words = self._keyword_index(statements, shape, binds)
                    binds |= words.binds
                    if private:
                        binds |= self._with_private(words.binds, private)
                    began = words.documents_version if began is None else began
            with self.trace.timed("statement"):
                found = statements.fetch(
                    statement(shape), binds, class_row(Candidate), keeps_plan=shape.is_plain
                )
            if found:
                ended = found[0].documents_version
            else:
                (ended,) = statements.fetch(DOCUMENTS_VERSION, binds, scalar_row, keeps_plan=True)
        return _Look(found, shape, binds, began=ended if began is None else began, ended=ended)

    def has_all(self, found: Sequence[Candidate]) -> bool:
        """Whether wider limits could not find more than `found` is."""
        if not self.limits.by_document or not found:
            return len(found) < self.limits.limit
        enabled, offered = self.trace.enabled, max(found[0].vector_count, found[0].text_count)
        is_each = enabled is not None and len(found) >= enabled.document_count
        return is_each or offered < self.limits.leg_limit

    # --- what counts, and the way to look ---------------------------------------------------------

    def _planner_settings(self) -> Planner:
        """What a statement runs with."""
        return {
            **scan_settings(self._settings, self._front()),
            # A generic plan would rescore every row in the keyword leg.
            "plan_cache_mode": "force_custom_plan",
            # The planner cannot know how many rows of an ordered scan are needed, and prefers to
            # join everything and sort.
            "enable_hashjoin": "off",
            "enable_mergejoin": "off",
            "statement_timeout": self._deadline.milliseconds,
        }

    def _enabled(self) -> EnabledSet:
        """What is switched on and fits; named when it is little enough to be compared whole.

        Raises DatabaseUnavailable where that takes longer than a search may: without it no leg can
        be tried."""
        most = self._max_compared(self.trace.total_chunks)
        enabled = self._enabled_of(self._scope, most)
        self.trace.enabled = enabled
        return enabled

    def _enabled_of(self, scope: Scope, most: int) -> EnabledSet:
        versions = self._versions

        def compute() -> EnabledSet:
            return count_enabled(self._session, scope, versions, most=most, deadline=self._deadline)

        enabled = self._enabled_sets.get(scope, versions, compute)
        if scope.narrowing.chunks and enabled.document_count:
            # Conditions on passages are read one by one, and a question may bring many.
            fitting = list_chunks(
                self._session, scope, versions, most=most, deadline=self._deadline
            )
            # Too many to name: conditions on the text then stand in the legs, which a leg that
            # compares all of what is named has not.
            enabled = fitting if fitting.ids is not None else replace(enabled, ids=None)
        return enabled

    def _max_compared(self, total_chunks: int) -> int:
        """Comparing all of a few is faster than passing over most of many, and misses nothing."""
        plan = self._settings.plan
        few = min(plan.exact_chunks, int(plan.exact_share * total_chunks))
        return max(plan.exact_always_chunks, few)

    def _choose_plans(self, enabled: EnabledSet) -> None:
        is_exact, trace = enabled.ids is not None, self.trace
        if self._vector is not None:
            trace.vector_plan = VectorPlan.EXACT if is_exact else VectorPlan.INDEX
        if self._keywords is not None:
            # The index of words passes over much of a small corpus as fast as not. How many hits
            # the leg offers depends on its plan, and that must not depend on hidden chunks.
            share = enabled.chunk_count / max(trace.visible_chunks, 1)
            is_narrow = enabled.of_chunks or share < self._settings.plan.exact_share
            is_small = enabled.chunk_count <= self._max_compared(trace.visible_chunks)
            is_selection = is_exact and is_narrow and is_small
            trace.keyword_plan = KeywordPlan.SELECTION if is_selection else KeywordPlan.INDEX

    def _keyword_index(
        self, statements: Statements, shape: Shape, binds: Mapping[str, Any]
    ) -> _Words:
        """The keyword leg's hits by the index of words, for the statement to take up."""
        ((*arrays, version),) = statements.fetch(bm25_statement(shape), binds, tuple_row)
        return _Words(dict(zip(KEYWORD_ARRAYS, arrays, strict=True)), version)

    def _keyword_selection(self, enabled: EnabledSet) -> dict[str, Any]:
        """The keyword leg's hits of a narrow selection, for the statement to take up."""
        keywords = self._keywords
        found = keyword_candidates.best_of_selection(
            self._session,
            keywords.terms if keywords else (),
            enabled,
            shape=Bm25Shape(self._settings.bm25_k1, self._settings.bm25_b),
            total_chunks=self.trace.visible_chunks,
            limit=self.limits.leg_limit,
            # Not by how many results are wanted, or the order of the first would depend on it.
            enough=self.limits.leg_limit // 2,
            settings=self._planner_settings(),
            remember=self._remember(self._scope),
            corpus=self._corpus,
            private=self._private_candidates,
            weighed=self._weighed(),
        )
        return keyword_candidates.as_arrays(found)

    def _remember(self, scope: Scope) -> keyword_candidates.Remember:
        def remember(compute: Callable[[], TermPostings]) -> TermPostings:
            if self._corpus_version is None or scope.narrowing.chunks:
                return compute()  # Passages with a phrase are hardly ever asked about again.
            key = scope.key(), self._versions, self._corpus_version
            return self._enabled_sets.postings.get(key, compute)

        return remember

    # --- the user's own private chunks, which the index of shared ones has not --------------------

    @property
    def _has_private(self) -> bool:
        is_bm25 = (
            self._keywords is not None and self._keywords.backend is KeywordBackend.PG_TEXTSEARCH
        )
        return is_bm25 and self._corpus is not None and self._corpus.private_chunks > 0

    def _private_candidates(self) -> Sequence[Scored]:
        """The best of the user's own private chunks that are switched on and fit, by words."""
        if self._corpus is None or self._keywords is None or not self._has_private:
            return ()
        narrowing = self._scope.narrowing
        own = replace(
            self._scope,
            narrowing=replace(narrowing, documents=f"{narrowing.documents} {_IS_PRIVATE}"),
        )
        enabled = self._enabled_of(own, _MAX_PRIVATE_CHUNKS)
        if enabled.ids is None:
            # Too many to name: those switched off are left out when hits meet their documents.
            enabled = replace(enabled, ids=self._corpus.private_jobs, of_chunks=False)
        return keyword_candidates.best_of_private(
            self._session,
            self._keywords.terms,
            enabled,
            shape=Bm25Shape(self._settings.bm25_k1, self._settings.bm25_b),
            corpus=self._corpus,
            limit=self.limits.leg_limit,
            remember=self._remember(own),
            weighed=self._weighed(),
        )

    def _weighed(self) -> WordWeights | None:
        """What the index of shared chunks said of words, while it has not changed."""
        if self._corpus is None or self._corpus_version is None:
            return None
        version = self._versions.collection_id, self._versions.documents, self._corpus_version
        return self._enabled_sets.shared_weights.get(version)

    def _with_private(
        self, found: Mapping[str, str], private: Sequence[Scored]
    ) -> dict[str, list[Any]]:
        """Merge what the index of shared chunks found with the user's own private ones."""
        ids, documents, scores = (found[name].strip("{}") for name in KEYWORD_ARRAYS)
        shared = [
            Scored(UUID(chunk_id), UUID(document_id), float(score))
            for chunk_id, document_id, score in zip(
                *(values.split(",") for values in (ids, documents, scores)), strict=True
            )
            if chunk_id
        ]
        merged = keyword_candidates.merge(shared, private, limit=self.limits.leg_limit)
        return keyword_candidates.as_arrays(merged)

    # --- the statement ----------------------------------------------------------------------------

    def _shape(self, enabled: EnabledSet) -> Shape:
        vector = keyword = None
        if self._vector is not None and self.trace.vector_plan is not None:
            vector = VectorLeg.of(
                self._vector.model,
                self.trace.vector_plan,
                limit=self.limits.leg_limit,
                of_chunks=enabled.of_chunks,
            )
        if self._keywords is not None and self.trace.keyword_plan is not None:
            keyword = KeywordLeg(
                self._keywords.backend,
                self.trace.keyword_plan,
                limit=self.limits.leg_limit,
                of_chunks=enabled.of_chunks,
                index=ALL_CHUNKS if self._corpus is None else SHARED_CHUNKS,
            )
        narrowing = self._scope.narrowing
        return Shape(
            vector=vector,
            keyword=keyword,
            fused=self._fused(),
            documents=narrowing.documents,
            chunks=narrowing.chunks,
            has_boost=self._ranking.boost > 0 and self._ranking.preferred_domain is not None,
            by_document=self.limits.by_document,
            has_min_similarity=self._vector is not None and self._vector.min_similarity is not None,
            in_conversation=self._scope.conversation_id is not None,
        )

    def _fused(self) -> str:
        """The expression that orders the candidates."""
        if self._vector is None:
            return KEYWORD_ONLY
        if self._keywords is not None:
            if self._ranking.as_shown and self._ranking.fusion is Fusion.WEIGHTED:
                return AS_SHOWN
            return FUSIONS[self._ranking.fusion, self._ranking.normalisation]
        return VECTOR_PART if self._vector.is_corrected else VECTOR_ONLY

    def _binds(self, enabled: EnabledSet) -> dict[str, Any]:
        """Values for all binds that some shape of the statement has."""
        limits, ranking = self.limits, self._ranking
        # Only their ratio counts; the least and the greatest of numbers have sums and shares too.
        heavier = max(ranking.weights.vector, ranking.weights.text) or 1.0
        binds: dict[str, Any] = selection_binds(self._scope.user, self._scope.conversation_id)
        binds |= self._scope.narrowing.binds
        binds |= {
            "collection_id": self._versions.collection_id,
            "enabled_ids": enabled.ids,
            "limit": limits.limit,
            "leg_limit": limits.leg_limit,
            "threshold": limits.threshold,
            "text_floor": 0.0,
            "rrf_k": ranking.rrf_k,
            "vector_weight": ranking.weights.vector / heavier,
            "text_weight": ranking.weights.text / heavier,
            "preferred_domain": ranking.preferred_domain,
            "boost": ranking.boost * self._range(),
        }
        if self._vector is not None:
            binds |= _vector_binds(self._vector)
        if self._keywords is not None:
            words = self._keywords.words
            binds |= {"words": words, "words_again": words}
            if self._keywords.backend is KeywordBackend.TSVECTOR:
                ranked = self._settings.text
                binds["label_weights"] = list(ranked.weights)
                binds["normalization"] = ranked.normalization
            binds["text_floor"] = self._keywords.text_floor
        return binds

    def _front(self) -> int:
        """How many near vectors a walk of the index keeps in view. With passages switched off it is
        as many more as bring enough that count at once: a walk that has to go on does most of its
        work anew."""
        wanted, enabled = self.limits.leg_limit, self.trace.enabled
        factor = self._vector.model.candidate_factor if self._vector else 1
        is_broad = self._vector is not None and self._vector.is_corrected
        front = math.ceil(wanted * factor * (_FRONT_OF_A_SCAN if is_broad else 1))
        share = enabled.chunk_count / max(1, self.trace.total_chunks) if enabled else 1.0
        spread = math.sqrt(wanted * max(0.0, 1.0 - share))
        return max(front, math.ceil((wanted + 2 * spread) / max(share, _MIN_SHARE)))

    def _range(self) -> float:
        """How far apart scores can lie, on the scale of whatever orders."""
        fused = self._fused()
        if fused == FUSIONS[Fusion.RRF, self._ranking.normalisation]:
            return 2 / (self._ranking.rrf_k + 1)
        if fused == VECTOR_ONLY and self._vector is not None:
            return min(1.0, self._vector.likeness_width)
        return 1.0

    def _time_legs(self, shape: Shape, binds: Mapping[str, Any]) -> None:
        """Run each leg once more, alone."""
        for step, leg in (
            ("vector_leg", replace(shape, keyword=None)),
            ("keyword_leg", replace(shape, vector=None)),
        ):
            if leg.vector is None and leg.keyword is None:
                continue
            with (
                self.trace.timed(step),
                under(self._session, self._planner_settings()) as statements,
            ):
                if leg.takes_keyword_index:
                    self._keyword_index(statements, shape, binds)
                else:
                    statements.fetch(leg_statement(leg), binds, scalar_row)


def _vector_binds(vector: VectorQuery) -> dict[str, Any]:
    return {
        "search_vector": VectorParameter(vector.search_vector),
        "plain_vector": VectorParameter(vector.plain_vector),
        "corrected_vector": VectorParameter(vector.corrected_vector),
        "likeness_low": vector.likeness_low,
        "likeness_width": vector.likeness_width,
        "min_similarity": vector.min_similarity,
    }


def source_of(candidate: Candidate) -> SearchMode:
    """Which legs found a passage."""
    if candidate.vector_rank is None:
        return SearchMode.KEYWORD
    return SearchMode.VECTOR if candidate.text_rank is None else SearchMode.HYBRID
