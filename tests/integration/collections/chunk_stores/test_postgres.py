"""PostgreSQL only: a keyword index that may be dropped, and collections made by other programs."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from portal.domain.search.bm25 import ALL_CHUNKS
from portal.domain.search.degraded import KEYWORD_UNAVAILABLE
from portal.integrations.chunk_stores import open_chunk_store
from portal.services import Services
from portal.services.collections.records import Collections
from portal.settings import SearchSettings
from tests.factories.uploads import needs_bm25
from tests.integration.collections.chunk_stores.conftest import (
    CHUNKS,
    COSINES,
    QUESTION,
    PlannedEmbedder,
    chunk,
    ids,
    similarities,
)

pytestmark = needs_bm25


def test_6_5_and_8_3_index_of_words_goes_and_meaning_is_searched(services: Services) -> None:
    store = open_chunk_store(
        "postgresql", connection=services.database, embedder=PlannedEmbedder(), hybrid=True
    )
    store.upsert(CHUNKS)
    assert store.search(QUESTION).method == "hybrid"
    with services.database.engine.begin() as connection:
        connection.execute(text(f"DROP INDEX {ALL_CHUNKS.name}"))
    outcome = store.search(QUESTION)
    assert (outcome.method, outcome.degraded) == ("dense", ())
    assert (store.is_hybrid_search_enabled(), store.status.reason) == (False, KEYWORD_UNAVAILABLE)


def test_collection_of_any_distance_is_searched_by_cosine(services: Services) -> None:
    made = Collections(services.database, SearchSettings()).ensure("others", "l2", {})
    store = open_chunk_store(
        "postgresql", made.name, connection=services.database, embedder=PlannedEmbedder()
    )
    store.upsert([*CHUNKS, chunk("zero", "points nowhere", (0, 0, 0))])
    found = store.semantic_search(QUESTION, 7)
    assert similarities(found) == COSINES | {"zero": 0.0}
    assert ids(found)[0] == "leave"
    with pytest.raises(ValueError, match="the portal's own"):
        open_chunk_store("postgresql", "portal", connection=services.database)
