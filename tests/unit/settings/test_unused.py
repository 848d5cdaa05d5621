"""Test which settings are reported as having no effect."""

from __future__ import annotations

from typing import Any

import pytest

from portal.settings import load_settings
from portal.settings.unused import find_unused


@pytest.mark.parametrize(
    ("given", "unused"),
    [
        ({"search": {"hnsw": {"m": 24}}}, []),
        ({"search": {"index": "ivfflat", "hnsw": {"m": 24}}}, ["PORTAL_SEARCH__HNSW__M"]),
        (
            {"search": {"hnsw": {"enabled": False, "ef_search": 9}}},
            ["PORTAL_SEARCH__HNSW__EF_SEARCH"],
        ),
        ({"search": {"ivfflat": {"lists": 9}}}, ["PORTAL_SEARCH__IVFFLAT__LISTS"]),
        (
            {
                "search": {
                    "keyword_backend": "tsvector",
                    "bm25_k1": 1.0,
                    "text": {"weights": "1,1,1,1"},
                }
            },
            ["PORTAL_SEARCH__BM25_K1"],
        ),
        (
            {"search": {"keyword_backend": "pg_textsearch", "text": {"normalization": 1}}},
            ["PORTAL_SEARCH__TEXT__NORMALIZATION"],
        ),
        ({"embedding": {"max_retries": 1}}, ["PORTAL_EMBEDDING__MAX_RETRIES"]),
        ({"embedding": {"provider": "openai", "max_retries": 1}}, []),
        (
            {"rate_limits": {"enabled": False, "get_chunk_burst": 1, "sign_in": "9 per minute"}},
            ["PORTAL_RATE_LIMITS__GET_CHUNK_BURST"],
        ),
    ],
)
def test_settings_that_cannot_apply_are_named(given: dict[str, Any], unused: list[str]) -> None:
    assert [one.name for one in find_unused(load_settings(**given))] == unused
