"""Scenarios of the five seed documents that no other test proves on its own."""

from __future__ import annotations

from collections.abc import Callable
from uuid import uuid4

import pytest
from flask.testing import FlaskClient
from pydantic import ValidationError
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from portal.domain.search import Fusion, SearchMode, SearchRequest
from portal.domain.search.bm25 import ALL_CHUNKS
from portal.embeddings.providers.hashing import HashingEmbedder
from portal.services import Services
from portal.services.operations import setup
from portal.services.search import dynamic_config, engine
from portal.settings import HnswSettings, load_settings
from tests.conftest import Portal

NOTES = [f"Note {number}: the quince trees of garden {number} are pruned." for number in range(12)]


@pytest.fixture
def garden(portal: Portal) -> Portal:
    """Return a portal with twelve documents that a search for quinces finds."""
    for number, note in enumerate(NOTES):
        portal.add(note, name=f"garden-{number}.txt")
    return portal


def test_weights_of_a_search_are_those_of_dynamic_config(garden: Portal) -> None:
    """000: semantic_weight and bm25_weight are read from dynamic_config, 0.7 and 0.3 by default."""
    request = SearchRequest(
        query="quince trees pruned", top_n=12, fusion=Fusion.WEIGHTED, as_shown=True
    )

    def weighted(vector: float, words: float) -> bool:
        hits = engine.search(garden.services, garden.admin, request).hits
        return bool(hits) and all(
            hit.score == pytest.approx(vector * (hit.vector_score or 0) + words * hit.text_score)
            for hit in hits
        )

    assert weighted(0.7, 0.3)
    values = {"semantic_weight": 0.2, "bm25_weight": 0.8}
    dynamic_config.change(garden.services, garden.admin, values)
    assert weighted(0.2, 0.8)


def test_keyword_index_is_made_with_the_configured_parameters(
    make_services: Callable[..., Services], database_url: str
) -> None:
    """000: k1 and b are configurable, 1.2 and 0.75 by default."""

    def options(services: Services) -> str:
        setup.prepare_keyword_index(services)
        with services.database.engine.connect() as connection:
            found = connection.execute(
                text("SELECT indexdef FROM pg_indexes WHERE indexname = :name"),
                {"name": ALL_CHUNKS.name},
            )
            return str(found.scalar_one())

    assert "k1='1.2'" in options(make_services())
    assert "b='0.75'" in options(make_services())
    other = options(make_services(search={"bm25_k1": 1.6, "bm25_b": 0.5}))
    assert "k1='1.6'" in other
    assert "b='0.5'" in other


def test_search_gives_five_results_unless_requested_otherwise(
    garden: Portal, client: FlaskClient
) -> None:
    """001: the top N results, configurable, 5 by default."""

    def count(**body: object) -> int:
        answer = client.post(
            "/api/knowledge/search", json={"query": "quince", **body}, headers=garden.headers()
        )
        return len(answer.get_json()["results"])

    assert count() == 5
    assert count(top_n=3) == 3
    dynamic_config.change(garden.services, garden.admin, {"top_n": 8})
    assert count() == 8


def test_chunk_search_gives_ten_results_unless_requested_otherwise(
    garden: Portal, client: FlaskClient
) -> None:
    """002: default_top_k 10, at most 100."""

    def count(**body: object) -> int:
        answer = client.post(
            "/api/v1/search/text", json={"query": "quince", **body}, headers=garden.headers()
        )
        return len(answer.get_json()["data"]["results"])

    assert count() == 10
    assert count(top_k=100) == 12


def test_words_step_in_where_meaning_finds_nothing_near(
    garden: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """001: with too few hits above the threshold, keyword search steps in, and results report
    it."""
    embedder = HashingEmbedder()
    elsewhere = embedder.embed_query("glacier violin copper")
    monkeypatch.setattr(garden.services.embedder, "embed_query", lambda _query: elsewhere)
    hits = engine.search(
        garden.services, garden.admin, SearchRequest(query="quince", top_n=12)
    ).hits
    assert len(hits) == len(NOTES)
    assert {hit.source for hit in hits} <= {SearchMode.KEYWORD, SearchMode.HYBRID}
    assert all(hit.text_score > 0 for hit in hits)


def test_settings_of_the_index_have_the_ranges_of_the_seed() -> None:
    """002: m 2 to 100, ef_construction 4 to 1000, ef_search 1 to 1000."""
    ranges = {"m": (2, 100), "ef_construction": (4, 1000), "ef_search": (1, 1000)}
    for name, (low, high) in ranges.items():
        for value in (low, high):
            assert getattr(HnswSettings(**{name: value}), name) == value
        for value in (low - 1, high + 1):
            with pytest.raises(ValidationError):
                HnswSettings(**{name: value})


def test_chunks_go_with_their_job_and_have_a_place_each(portal: Portal) -> None:
    """002: job_id cascades, (job_id, chunk_index) is unique, chunk_index is not negative."""
    job_id = portal.add("A passage.\n\n" + "Another one. " * 400).job_id
    engine = portal.services.database.engine

    def run(statement: str) -> None:
        with engine.begin() as connection:
            connection.execute(text(statement), {"job": job_id})

    for place in ("-1", "0"):
        with pytest.raises(IntegrityError):
            run(f"UPDATE document_chunks SET chunk_index = {place} WHERE job_id = :job")
    run("UPDATE documents SET current_job_id = NULL WHERE current_job_id = :job")
    run("DELETE FROM jobs WHERE id = :job")
    with engine.connect() as connection:
        count = text("SELECT count(*) FROM document_chunks WHERE job_id = :job")
        assert connection.execute(count, {"job": job_id}).scalar_one() == 0


def test_provider_keys_come_from_the_environment_and_show_nowhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """004: keys are rotated by the environment."""
    key = f"key-{uuid4().hex}"
    monkeypatch.setenv("PORTAL_EMBEDDING__API_KEY", key)
    monkeypatch.setenv("PORTAL_CHAT__API_KEY", key)
    settings = load_settings()
    for section in (settings.embedding, settings.chat):
        assert section.api_key is not None
        assert section.api_key.get_secret_value() == key
    assert key not in repr(settings)
    assert key not in settings.model_dump_json()
