"""When an endpoint returns vectors of another length than registered, searches and comparisons
report it and keyword search continues."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from portal.domain.search import SearchMode, SearchOutcome, SearchRequest
from portal.errors import EmbedderUnavailable, InvalidEmbedding
from portal.services import Services
from portal.services.models import builds, catalog, comparison, switching
from portal.services.operations import health, setup
from portal.services.search import engine
from tests.conftest import Portal
from tests.factories.servers.endpoint import FakeEndpoint, fake_endpoint

NAME, REGISTERED, OTHER = "some-model", 128, 256
SAID = r"some-model.*expected 1 × 128 numbers, got 1 × 256"
TEXTS = {"coral": "Divers must not touch the coral.", "tea": "绿茶应在阴凉干燥处保存。"}


def fill(services: Services) -> Portal:
    portal = Portal.of(services)
    for name, words in TEXTS.items():
        portal.add(words, name=f"{name}.txt")
    return portal


def ask(portal: Portal, query: str, mode: SearchMode = SearchMode.HYBRID) -> SearchOutcome:
    return engine.search(portal.services, portal.admin, SearchRequest(query, mode=mode))


def serve(
    make_services: Callable[..., Services], endpoint: FakeEndpoint, **timing: object
) -> Portal:
    """Return a portal whose process saw 256 dimensions from the endpoint, while another process
    built and switched to the model when it returned 128."""
    portal = fill(make_services())
    chosen = {"provider": "openai", "model": NAME, "api_base": endpoint.url}
    elsewhere = make_services(embedding=chosen)
    model = catalog.register(elsewhere, f"openai:{NAME}")
    list(builds.build(elsewhere, model.name))
    endpoint.dimensions = OTHER
    serving = make_services(embedding=chosen)
    assert serving.embedder.dimensions == OTHER
    switching.switch(elsewhere, NAME)
    return Portal(serving, portal.admin)


def test_query_vector_of_another_length_falls_back_to_words(
    make_services: Callable[..., Services],
) -> None:
    with fake_endpoint(dimensions=REGISTERED) as endpoint:
        portal = serve(make_services, endpoint)
        found = ask(portal, "touch the coral")
        assert found.degraded == (EmbedderUnavailable.code,)
        assert found.hits[0].title == "coral"
        with pytest.raises(InvalidEmbedding, match=SAID):
            ask(portal, "divers", SearchMode.VECTOR)
        assert health.check_vector_store(portal.services)["embedder"] == "unavailable"
        said = [lack["remedy"] for lack in setup.diagnose(portal.services)["lacks"]]
        assert any("expected 1 × 128 numbers, got 1 × 256" in one for one in said)
        # During the pause after repeated failures, the error still gives the reason.
        for number in range(3):
            ask(portal, f"coral {number}")
        with pytest.raises(EmbedderUnavailable, match=r"paused.*got 1 × 256"):
            ask(portal, "divers again", SearchMode.VECTOR)


def test_vector_search_returns_once_the_endpoint_gives_the_right_length(
    make_services: Callable[..., Services],
) -> None:
    with fake_endpoint(dimensions=REGISTERED) as endpoint:
        portal = serve(make_services, endpoint)
        # Cached before the registered length was known.
        assert len(portal.services.embedder.embed_query("touch the coral")) == OTHER
        assert ask(portal, "touch the coral").degraded == (EmbedderUnavailable.code,)
        endpoint.dimensions = REGISTERED
        found = ask(portal, "touch the coral")
        assert found.degraded == ()
        assert found.hits[0].title == "coral"
        assert found.hits[0].vector_score is not None


def test_comparison_with_a_model_of_another_length_reports_it(
    make_services: Callable[..., Services],
) -> None:
    with fake_endpoint(dimensions=REGISTERED) as endpoint:
        portal = serve(make_services, endpoint)
        with pytest.raises(InvalidEmbedding, match=SAID):
            comparison.compare(portal.services, "hashing-384", NAME)


def test_error_for_vectors_of_another_length_names_both_lengths(
    make_services: Callable[..., Services],
) -> None:
    with fake_endpoint(dimensions=REGISTERED) as endpoint:
        portal = serve(make_services, endpoint)
        added = portal.add("The last train leaves at nine.", name="train.txt")
        assert added.failure is not None
        assert "expected 1 × 128 numbers, got 1 × 256" in str(added.failure.params)


def test_model_is_asked_for_the_length_that_it_is_registered_with(
    make_services: Callable[..., Services],
) -> None:
    portal = fill(make_services(embedding={"provider": "hashing", "model": "words"}))
    other = make_services(embedding={"provider": "hashing", "model": "words", "dimensions": 64})
    found = ask(Portal(other, portal.admin), "touch the coral")
    assert found.degraded == ()
    assert found.hits[0].vector_score is not None
