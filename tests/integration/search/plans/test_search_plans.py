"""Every search plan keeps its recall at every selectivity and returns the same scores."""

from __future__ import annotations

import random
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pytest

from portal.domain.people import User
from portal.domain.search import SearchMode, SearchRequest
from portal.services.search import engine
from portal.services.search.finding import Candidate
from portal.store.search.legs.statements import KeywordPlan, VectorPlan
from tests.integration.search.plans.conftest import CHINESE, ENGLISH, NEVER, find
from tests.integration.search.plans.synthetic_corpus import CHUNKS_PER_DOCUMENT, SyntheticCorpus

SHARES = (1.0, 0.5, 0.1, 0.01, 0.001)
QUESTIONS = 30
ALWAYS = {"exact_always_chunks": 1_000_000, "exact_chunks": 1_000_000, "exact_share": 1.0}
PLANS: dict[str, dict[str, Any]] = {"index": NEVER, "exact": ALWAYS, "default": {}}


@pytest.fixture(scope="module")
def selections(corpus: SyntheticCorpus) -> dict[float, tuple[User, npt.NDArray[np.bool_]]]:
    """Return, for each share, a user with that share enabled and the mask of those documents."""
    rng = np.random.default_rng(5)
    count = corpus.size // CHUNKS_PER_DOCUMENT
    made = {}
    for share in SHARES:
        enabled = np.zeros(count, bool)
        enabled[rng.choice(count, round(count * share), replace=False)] = True
        made[share] = corpus.user_with(f"with {share:.1%}", enabled), enabled
    return made


Selections = dict[float, tuple[User, npt.NDArray[np.bool_]]]


def chunks(candidates: list[Candidate]) -> list[UUID]:
    return [candidate.chunk.chunk_id for candidate in candidates]


def recall(found: list[UUID], expected: list[UUID]) -> float:
    return len(set(found) & set(expected)) / len(expected)


def questions(count: int, *, seed: int) -> list[str]:
    rng = random.Random(seed)
    return [
        " ".join(rng.sample(rng.choice((ENGLISH, CHINESE)), rng.randint(1, 4)))
        for _ in range(count)
    ]


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("plan", PLANS)
def test_vector_recall_at_ten_is_that_of_exact_search(
    corpus: SyntheticCorpus, selections: Selections, plan: str, share: float
) -> None:
    process = corpus.with_settings(plan=PLANS[plan])
    user, enabled = selections[share]
    recalls = []
    for vector in corpus.near(QUESTIONS, seed=3):
        found, trace = find(process, user, "budget", vector, mode=SearchMode.VECTOR)
        if plan != "default":
            assert trace.vector_plan is VectorPlan(plan)
        exact = corpus.exact(vector, enabled, 10)
        assert len(found) == len(exact)
        recalls.append(recall(chunks(found), exact))
    assert np.mean(recalls) >= 0.99


@pytest.mark.parametrize("share", SHARES)
def test_hybrid_results_of_both_plans_agree(
    corpus: SyntheticCorpus, selections: Selections, share: float
) -> None:
    user, _ = selections[share]
    by_index, exactly = (corpus.with_settings(plan=plan) for plan in (NEVER, ALWAYS))
    agreement = []
    for query, vector in zip(
        questions(QUESTIONS, seed=4), corpus.near(QUESTIONS, seed=4), strict=True
    ):
        one, trace = find(by_index, user, query, vector)
        other, other_trace = find(exactly, user, query, vector)
        assert trace.keyword_plan is KeywordPlan.INDEX
        if share < 1:
            assert other_trace.keyword_plan is KeywordPlan.SELECTION
        assert len(one) == len(other) > 0
        agreement.append(recall(chunks(one), chunks(other)))
        bm25_of = {candidate.chunk.chunk_id: candidate.offer.bm25 for candidate in other}
        for candidate in one:
            if bm25_of.get(candidate.chunk.chunk_id) and candidate.offer.bm25:
                assert candidate.offer.bm25 == pytest.approx(
                    bm25_of[candidate.chunk.chunk_id], abs=1e-4
                )
    assert np.mean(agreement) >= 0.99


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("mode", SearchMode)
@pytest.mark.parametrize("plan", PLANS)
def test_fewer_results_are_the_beginning_of_more(
    corpus: SyntheticCorpus, selections: Selections, plan: str, mode: SearchMode, share: float
) -> None:
    process = corpus.with_settings(plan=PLANS[plan])
    user, _ = selections[share]
    for query in ("common", "common budget", "年假 报销", "printer 发票"):
        most: list[UUID] = []
        for top_n in (50, 20, 10, 5):
            request = SearchRequest(query, top_n=top_n, mode=mode)
            hits = engine.search(process.services, user, request).hits
            found = [hit.chunk_id for hit in hits]
            most = most or found
            assert found == most[:top_n], (query, top_n)


def test_order_is_stable_when_the_selection_has_the_worst_matches(
    corpus: SyntheticCorpus,
) -> None:
    """The best rows of the keyword index are then all outside the selection."""
    place = np.arange(corpus.size // CHUNKS_PER_DOCUMENT)
    lengths = np.array([len(terms) for terms in corpus.terms]).reshape(-1, CHUNKS_PER_DOCUMENT)
    is_weak = (place * CHUNKS_PER_DOCUMENT % 8 >= 4) & (lengths.min(axis=1) > 150)
    user = corpus.user_with("of weak matches", is_weak)
    for query in ("common", "common budget", "common 年假"):
        most: list[UUID] = []
        for top_n in (50, 20, 10, 5):
            request = SearchRequest(query, top_n=top_n)
            hits = engine.search(corpus.services, user, request).hits
            found = [hit.chunk_id for hit in hits]
            most = most or found
            assert found == most[:top_n], (query, top_n)


def test_search_ends_when_all_matches_are_outside_the_selection(corpus: SyntheticCorpus) -> None:
    """The search reads the index in growing steps, at most to its end."""
    without = [
        place
        for place in range(corpus.size // CHUNKS_PER_DOCUMENT)
        if not any("common" in corpus.terms[2 * place + n] for n in range(CHUNKS_PER_DOCUMENT))
    ]
    user = corpus.user_with(
        "without a match", np.isin(np.arange(corpus.size // CHUNKS_PER_DOCUMENT), without)
    )
    for plan in PLANS.values():
        process = corpus.with_settings(plan=plan)
        found, _ = find(process, user, "common", corpus.vectors[0], mode=SearchMode.KEYWORD)
        assert found == []
