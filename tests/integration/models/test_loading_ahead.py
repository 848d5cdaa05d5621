"""A web process loads the active model before the first search, and no search waits for it longer
than configured."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable
from pathlib import Path
from runpy import run_path
from types import SimpleNamespace

import pytest

from portal import create_app
from portal.domain.embedding import Vector
from portal.domain.search import SearchRequest
from portal.embeddings import loading
from portal.embeddings.providers import bundled
from portal.errors import EmbedderUnavailable
from portal.services import Services
from portal.services.models import builds, catalog, switching
from portal.services.models.preloading import load_ahead
from portal.services.search import engine
from tests.conftest import Portal

CONFIGURATION = Path(__file__).parents[3] / "gunicorn.conf.py"


@pytest.fixture(autouse=True)
def _as_in_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "_serves", threading.Event())


def slow_use(monkeypatch: pytest.MonkeyPatch, gate: threading.Event) -> None:
    def load(*_: object) -> bundled.Model:
        assert gate.wait(20)
        return bundled.Model(_encode, is_thread_safe=True)

    monkeypatch.setitem(bundled.MODELS, bundled.USE, (512, load))


def _encode(text: str, _question: bool) -> list[float]:
    return [1.0 + text.count(chr(97 + place % 26)) for place in range(512)]


def test_first_search_after_a_switch_is_answered_by_words_while_the_model_loads(
    make_services: Callable[..., Services], portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    portal.add("Divers must not touch the coral.", name="coral.txt")
    gate = threading.Event()
    gate.set()
    slow_use(monkeypatch, gate)
    elsewhere = make_services(embedding={"provider": "bundled", "model": bundled.USE})
    list(builds.build(elsewhere, catalog.register(elsewhere, f"bundled:{bundled.USE}").name))
    gate.clear()
    serving = make_services(embedding={"provider": "hashing", "timeout_s": 0.3})
    load_ahead(serving).join(120)
    # Objects that stay are excluded from garbage collection.
    assert gc.get_freeze_count()
    gc.unfreeze()
    switching.switch(elsewhere, bundled.USE)
    started = time.monotonic()
    found = engine.search(serving, portal.admin, SearchRequest("touch the coral"))
    assert time.monotonic() - started < 3
    assert found.degraded == (EmbedderUnavailable.code,)
    assert found.hits[0].title == "coral"
    gate.set()
    catalog.loaded(serving, catalog.find(serving, bundled.USE)).embedder.embed_chunks(["?"])
    found = engine.search(serving, portal.admin, SearchRequest("the coral"))
    assert found.degraded == ()


def test_web_worker_loads_the_active_model_before_the_first_search(
    make_services: Callable[..., Services], portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    portal.add("Divers must not touch the coral.", name="coral.txt")
    asked: list[str] = []
    embed = type(portal.services.embedder).embed_query

    def note(self: object, text: str) -> Vector:
        asked.append(threading.current_thread().name)
        return embed(self, text)  # type: ignore[arg-type]

    monkeypatch.setattr(type(portal.services.embedder), "embed_query", note)
    before = set(threading.enumerate())
    hook = run_path(str(CONFIGURATION))["post_worker_init"]
    hook(SimpleNamespace(wsgi=create_app(portal.services)))
    for thread in set(threading.enumerate()) - before:
        if thread.name == "load-ahead":
            thread.join(20)
    assert "load-ahead" in asked
    assert loading.query_wait_s(2.0) == 2.0
