"""Callers wait for a model only as long as they ask to; a missing one is not retried each time."""

from __future__ import annotations

import os
import threading

import pytest

from portal.embeddings.loading import RETRY_AFTER_S, BackgroundLoad
from portal.embeddings.providers import sentence_transformers as provider
from portal.embeddings.providers.sentence_transformers import SentenceTransformersEmbedder
from portal.errors import EmbedderUnavailable


@pytest.fixture
def gate():
    gate = threading.Event()
    yield gate
    gate.set()


def test_caller_that_does_not_wait_fails_at_once_and_one_that_waits_gets_the_model(gate):
    loads = []
    loading = BackgroundLoad(lambda: loads.append(1) or gate.wait(20))
    for _ in range(5):
        with pytest.raises(EmbedderUnavailable, match="still being loaded"):
            loading.get(wait_s=0.01)
    gate.set()
    assert loading.get() is True
    assert loading.get(wait_s=0) is True
    assert len(loads) == 1


def test_failure_is_remembered_for_a_while():
    now, loads = [0.0], []

    def load():
        loads.append(1)
        raise EmbedderUnavailable(reason="there is no directory")

    loading = BackgroundLoad(load, clock=lambda: now[0])
    for _ in range(3):
        with pytest.raises(EmbedderUnavailable, match="there is no directory"):
            loading.get()
    assert len(loads) == 1
    now[0] += RETRY_AFTER_S
    with pytest.raises(EmbedderUnavailable):
        loading.get()
    assert len(loads) == 2


def test_any_loading_error_reaches_the_waiting_caller():
    def load():
        raise ZeroDivisionError("layers")

    with pytest.raises(EmbedderUnavailable, match="ZeroDivisionError: layers"):
        BackgroundLoad(load).get(wait_s=20)


def test_question_does_not_wait_for_a_download(gate, monkeypatch):
    monkeypatch.setattr(provider, "load_model", lambda _name: gate.wait(20))
    embedder = SentenceTransformersEmbedder(timeout_s=0.05)
    with pytest.raises(EmbedderUnavailable, match="still being loaded"):
        embedder.embed_query("a")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_child_of_a_loading_parent_loads_itself(gate):
    parent = os.getpid()
    loading = BackgroundLoad(lambda: gate.wait(20) if os.getpid() == parent else True)
    with pytest.raises(EmbedderUnavailable):
        loading.get(wait_s=0.01)
    child = os.fork()
    if child == 0:
        os._exit(0 if loading.get(wait_s=10) is True else 1)
    assert os.waitpid(child, 0)[1] == 0
