"""The health of search agrees with what searches report, before and after recovery."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from portal import create_app
from portal.domain.search import SearchOutcome, SearchRequest
from portal.domain.search.bm25 import ALL_CHUNKS
from portal.domain.search.degraded import KEYWORD_UNAVAILABLE
from portal.errors import RerankerUnavailable
from portal.reranking.time_boxed import TimeBoxed
from portal.services import Services
from portal.services.models import builds, catalog, switching
from portal.services.operations import health, health_monitor, setup
from portal.services.search import engine
from tests.conftest import Portal
from tests.factories.servers.endpoint import fake_endpoint, wait_until
from tests.factories.uploads import needs_bm25


def look(services: Services) -> dict[str, Any]:
    """Return the health that a visitor without a token gets."""
    answer = create_app(services).test_client().get("/health/vector_store")
    assert answer.status_code == 200
    assert answer.json is not None
    return dict(answer.json)


def ask(portal: Portal, query: str) -> SearchOutcome:
    return engine.search(portal.services, portal.admin, SearchRequest(query))


# --- the keyword index --------------------------------------------------------------------------

LOSSES = {
    "index dropped": f"DROP INDEX {ALL_CHUNKS.name}",
    "extension dropped": "DROP EXTENSION pg_textsearch CASCADE",
    "index invalid": "UPDATE pg_index SET indisvalid = false"
    f" WHERE indexrelid = '{ALL_CHUNKS.name}'::regclass",
}


@needs_bm25
@pytest.mark.parametrize("loss", LOSSES)
def test_lost_keyword_index_and_its_return_are_reported_at_once(portal: Portal, loss: str) -> None:
    portal.add("The office closes at six.")
    portal.execute(LOSSES[loss])
    assert KEYWORD_UNAVAILABLE in ask(portal, "office").degraded
    body = look(portal.services)
    assert (body["status"], body["keyword_backend"], body["hybrid"]) == (
        "degraded", "tsvector", False,
    )  # fmt: skip
    assert body["keyword_index"]["state"] == "absent"
    setup.repair_keyword_index(portal.services)
    body = look(portal.services)
    assert (body["status"], body["keyword_backend"]) == ("ok", "pg_textsearch")
    assert body["keyword_index"]["state"] == "ready"


@needs_bm25
def test_stale_keyword_index_is_reported(portal: Portal) -> None:
    portal.add("The office closes at six.")
    portal.execute("UPDATE bm25_index_state SET server_started_at = '2000-01-01', state = 'ready'")
    body = look(portal.services)
    assert (body["status"], body["keyword_index"]["state"]) == ("degraded", "stale")


@needs_bm25
def test_rows_of_the_keyword_index_are_counted_now(portal: Portal) -> None:
    assert look(portal.services)["keyword_index"]["row_count"] == 0
    portal.add("The office closes at six.")
    assert look(portal.services)["keyword_index"]["row_count"] == 1


@pytest.mark.parametrize("backend", ["off", "tsvector"])
def test_unused_keyword_index_is_neither_ready_nor_missed(
    portal: Portal, make_services: Callable[..., Services], backend: str
) -> None:
    body = look(make_services(search={"keyword_backend": backend}))
    assert body["keyword_backend"] == backend
    assert body["keyword_index"] is None
    assert body["status"] == "ok"


@needs_bm25
def test_lost_keyword_index_leaves_search_by_meaning(portal: Portal) -> None:
    portal.execute(LOSSES["index dropped"])
    state = health.check_vector_store(portal.services)
    assert health.finds_by_meaning(state)
    assert (state["keyword_backend"], state["hybrid"]) == ("tsvector", False)


# --- the embedding model ------------------------------------------------------------------------

DIMENSIONS = 64


def embedder(services: Services) -> str:
    return str(look(services)["embedder"])


def switch_to_endpoint(portal: Portal, url: str) -> None:
    """Switch to a model behind this endpoint, while another one stays configured."""
    spec = f"openai:fake-emb@{DIMENSIONS}"
    services = replace(
        portal.services,
        settings=portal.services.settings.model_copy(
            update={
                "embedding": portal.services.settings.embedding.model_copy(update={"api_base": url})
            }
        ),
    )
    model = catalog.register(services, spec)
    list(builds.build(services, model.name))
    switching.switch(services, model.name)


def test_dead_endpoint_of_the_active_model_is_reported_although_another_is_configured(
    portal: Portal,
) -> None:
    portal.add("The office closes at six.")
    with fake_endpoint(dimensions=DIMENSIONS) as endpoint:
        switch_to_endpoint(portal, endpoint.url)
        assert not ask(portal, "office hours").degraded
        body = look(portal.services)
        assert body["embedding_model"] == f"fake-emb@{DIMENSIONS}"
        assert (body["status"], body["embedder"]) == ("ok", "ok")
    assert "embedder_unavailable" in ask(portal, "closing time of the office").degraded
    body = look(portal.services)
    assert (body["status"], body["embedder"]) == ("degraded", "unavailable")


def test_dead_endpoint_is_reported_by_a_process_that_has_not_searched(
    portal: Portal, make_services: Callable[..., Services]
) -> None:
    portal.add("The office closes at six.")
    with fake_endpoint(dimensions=DIMENSIONS) as endpoint:
        switch_to_endpoint(portal, endpoint.url)
    # A different timeout keeps this process from sharing the first one's models.
    other = make_services(embedding={"provider": "hashing", "timeout_s": 1.5})
    wait_until(
        lambda: embedder(other) == "unavailable", within_s=20, complaint="nobody looked at it"
    )


def test_endpoint_that_came_back_is_reported_without_a_search(
    make_services: Callable[..., Services], monkeypatch: pytest.MonkeyPatch
) -> None:
    with fake_endpoint(dimensions=DIMENSIONS) as endpoint:
        services = make_services(
            embedding={
                "provider": "openai",
                "model": "some-model",
                "api_base": endpoint.url,
                "dimensions": DIMENSIONS,
            }
        )
        portal = Portal.of(services)
        portal.add("The office closes at six.")
        port = endpoint.port
    assert "embedder_unavailable" in ask(portal, "office").degraded
    assert embedder(services) == "unavailable"
    monkeypatch.setattr(health_monitor, "FAILED_TTL_S", 0.2)
    with fake_endpoint(port=port, dimensions=DIMENSIONS) as endpoint:
        wait_until(lambda: embedder(services) == "ok", within_s=30, complaint="it stayed away")
        assert look(services)["status"] == "ok"
        asked = len(endpoint.requests)
        for _ in range(20):
            assert embedder(services) == "ok"
        assert len(endpoint.requests) == asked, "an endpoint that answers is left in peace"


# --- the re-ranking model -----------------------------------------------------------------------


def test_missing_reranker_is_reported_without_its_directory(
    make_services: Callable[..., Services],
) -> None:
    rerank = {"provider": "sentence-transformers", "model": "/srv/secret-place/cross-encoder"}
    body = look(make_services(rerank=rerank))
    assert (body["status"], body["reranker"]) == ("degraded", "cross-encoder")
    assert body["reranking"] == "unavailable"
    assert "secret-place" not in str(body)


class Failing:
    """A re-ranking model that fails while `is_broken`."""

    name = "failing"
    is_broken = True

    def load(self) -> None:
        if self.is_broken:
            raise RerankerUnavailable(reason="there is none")

    def scores(self, query: str, chunks: Sequence[str], *, deadline_s: float) -> list[float]:
        self.load()
        return [0.0 for _ in chunks]


def test_reranker_that_failed_a_search_is_reported_and_its_return_too(
    portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    portal.add("The office closes at six.")
    model = Failing()
    broken = Portal(replace(portal.services, reranker=TimeBoxed(model)), portal.admin)
    assert look(broken.services)["reranking"] == "ok"
    assert RerankerUnavailable.code in ask(broken, "office").degraded
    body = look(broken.services)
    assert (body["status"], body["reranking"]) == ("degraded", "unavailable")
    model.is_broken = False
    monkeypatch.setattr(health_monitor, "FAILED_TTL_S", 0.2)
    wait_until(
        lambda: look(broken.services)["reranking"] == "ok", within_s=20, complaint="still away"
    )
    assert look(broken.services)["status"] == "ok"


def test_health_does_not_miss_reranking_that_is_off(portal: Portal) -> None:
    body = look(portal.services)
    assert (body["status"], body["reranker"], body["reranking"]) == ("ok", None, None)
