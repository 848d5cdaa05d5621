"""A reranker never takes more than its time limit, nor more than one thread per process."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from portal.domain.search.reranking import Reranker
from portal.errors import RerankerUnavailable
from portal.reranking import PROVIDERS, create_reranker
from portal.reranking.time_boxed import MAX_FAILURES, REST_S, TimeBoxed
from portal.settings import RerankSettings


class Lengths:
    """Scores chunks by length; waits for `gate` first, and counts calls."""

    name = "lengths"

    def __init__(self):
        self.gate = threading.Event()
        self.gate.set()
        self.calls = 0
        self.error = None

    def load(self):
        pass

    def scores(self, query, chunks, *, deadline_s):
        self.calls += 1
        self.gate.wait(20)
        if self.error:
            raise self.error
        return [float(len(chunk)) for chunk in chunks]


@pytest.fixture
def model():
    model = Lengths()
    yield model
    model.gate.set()


def threads_of_rerankers():
    return [thread for thread in threading.enumerate() if thread.name == "reranker"]


def test_scores_come_back_in_input_order(model):
    assert TimeBoxed(model).scores("q", ["aa", "a", "aaa"], deadline_s=5) == [2, 1, 3]


def test_late_model_is_abandoned_at_its_deadline(model):
    model.gate.clear()
    started = time.monotonic()
    with pytest.raises(RerankerUnavailable, match=r"more than 0\.2 seconds"):
        TimeBoxed(model).scores("q", ["a"], deadline_s=0.2)
    assert time.monotonic() - started < 10


def test_hanging_call_refuses_others_without_new_threads(model):
    boxed = TimeBoxed(model)
    model.gate.clear()
    before = len(threads_of_rerankers())
    with pytest.raises(RerankerUnavailable):
        boxed.scores("q", ["a"], deadline_s=0.05)
    started = time.monotonic()
    for _ in range(20):
        with pytest.raises(RerankerUnavailable, match="still working on an earlier question"):
            boxed.scores("q", ["a"], deadline_s=5)
    assert time.monotonic() - started < 10
    assert model.calls == 1
    assert len(threads_of_rerankers()) == before + 1
    [hanging] = threads_of_rerankers()[before:]
    model.gate.set()
    hanging.join(10)
    assert boxed.scores("q", ["a"], deadline_s=5) == [1]


def test_calls_at_the_same_time_take_turns(model):
    boxed = TimeBoxed(model)
    texts = [["x" * n, "y"] for n in range(1, 30)]
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda pair: boxed.scores("q", pair, deadline_s=20), texts))
    assert found == [[float(n), 1.0] for n in range(1, 30)]


def test_caller_with_less_time_than_the_running_call_does_not_wait_longer(model):
    boxed = TimeBoxed(model)
    model.gate.clear()
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(boxed.scores, "q", ["a"], deadline_s=20)
        while not model.calls:
            time.sleep(0.001)  # Wait until the other thread is inside the model.
        with pytest.raises(RerankerUnavailable, match="busy"):
            boxed.scores("q", ["a"], deadline_s=0.05)
        model.gate.set()
        assert first.result() == [1]


def test_model_that_keeps_failing_is_paused_and_then_retried(model):
    now = [100.0]
    boxed = TimeBoxed(model, clock=lambda: now[0])
    model.error = ValueError("no such tensor")
    for _ in range(MAX_FAILURES):
        with pytest.raises(RerankerUnavailable, match="ValueError: no such tensor"):
            boxed.scores("q", ["a"], deadline_s=5)
    with pytest.raises(RerankerUnavailable, match="paused for 30 more seconds"):
        boxed.scores("q", ["a"], deadline_s=5)
    assert model.calls == MAX_FAILURES
    now[0] += REST_S + 1
    model.error = None
    assert boxed.scores("q", ["a"], deadline_s=5) == [1]


def test_health_is_that_of_the_last_model_call(model):
    boxed = TimeBoxed(model)
    assert boxed.health is None
    model.error = RerankerUnavailable(reason="there is none")
    with pytest.raises(RerankerUnavailable):
        boxed.scores("q", ["a"], deadline_s=5)
    assert not boxed.health.ok
    model.error = None
    boxed.probe()
    assert boxed.health.ok


def test_reranking_is_off_by_default():
    assert create_reranker(RerankSettings()) is None


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_provider_makes_a_reranker_without_loading_anything(provider):
    reranker = create_reranker(RerankSettings(provider=provider, model="/nowhere/at-all"))
    assert isinstance(reranker, Reranker)
    assert reranker.name == "/nowhere/at-all"
