"""How the service uses a re-ranking model, good or bad."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from portal.errors import RerankerUnavailable
from portal.reranking.time_boxed import TimeBoxed
from portal.services.search.reranking import rerank
from portal.settings import RerankSettings

CODE = RerankerUnavailable.code


@dataclass
class Chunk:
    content: str


CANDIDATES = [Chunk("b"), Chunk("c"), Chunk("a"), Chunk("z")]


class Giving:
    name = "giving"

    def __init__(self, answer):
        self.answer = answer
        self.seen = []

    def load(self):
        pass

    def scores(self, query, chunks, *, deadline_s):
        self.seen.append((query, list(chunks), deadline_s))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def services(reranker, **settings):
    return SimpleNamespace(
        reranker=reranker, settings=SimpleNamespace(rerank=RerankSettings(**settings))
    )


def test_model_orders_the_chunks_it_read_before_the_rest():
    model = Giving([0.1, 0.9, 0.5])
    found = rerank(services(model, candidates=3, timeout_s=0.7), "question", CANDIDATES)
    assert found.order == (1, 2, 0, 3)
    assert found.scores == (0.1, 0.9, 0.5, None)
    assert found.degraded == ()
    assert model.seen == [("question", ["b", "c", "a"], pytest.approx(0.7))]


def test_equal_scores_stay_in_the_order_of_fusion():
    assert rerank(services(Giving([1, 1, 2, 1])), "q", CANDIDATES).order == (2, 0, 1, 3)


@pytest.mark.parametrize(
    "answer",
    [
        [1.0, 2.0, 3.0],
        [1.0, 2.0, float("nan"), 0.0],
        [1.0, 2.0, float("inf"), 0.0],
        ["a", "b", "c", "d"],
        [[1.0], [2.0], [3.0], [4.0]],
        None,
        7.0,
        [None] * 4,
    ],
    ids=str,
)
def test_invalid_scores_leave_the_order_of_fusion_and_are_reported(answer):
    found = rerank(services(Giving(answer)), "q", CANDIDATES)
    assert (found.order, found.scores) == ((0, 1, 2, 3), (None,) * 4)
    assert found.degraded == (CODE,)


def test_failure_leaves_the_order_of_fusion_and_is_reported():
    model = TimeBoxed(Giving(RuntimeError("out of memory")))
    found = rerank(services(model), "q", CANDIDATES)
    assert (found.order, found.degraded) == ((0, 1, 2, 3), (CODE,))


@pytest.mark.parametrize("reranker", [None, Giving([])])
def test_empty_input_is_not_an_error(reranker):
    candidates = CANDIDATES if reranker is None else []
    found = rerank(services(reranker), "q", candidates)
    assert found.order == tuple(range(len(candidates)))
    assert found.degraded == ()
