"""Test which settings are reported as having no effect."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from portal.settings import load_settings
from portal.settings.unused import find_unknown, find_unused


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


@pytest.mark.parametrize(
    ("name", "value", "hint"),
    [
        ("PORTAL_MAX_UPLOADMB", "500", "did you mean PORTAL_MAX_UPLOAD_MB?"),
        ("PORTAL_SEARCH_HNSW_M", "24", "did you mean PORTAL_SEARCH__HNSW__M?"),
        ("PORTAL_ADMIN_USERNAME", "ada", "docs/settings.md"),
        ("PORTAL_PORT", "8000", "docs/settings.md"),
    ],
)
def test_misspelled_variable_is_named_with_the_nearest_setting(
    name: str, value: str, hint: str
) -> None:
    (unknown,) = find_unknown({name: value})
    assert unknown.name == name
    assert hint in unknown.reason


def test_variables_of_settings_and_of_kubernetes_are_known() -> None:
    known = {
        "PORTAL_MAX_UPLOAD_MB": "500",
        "portal_max_upload_mb": "500",
        "PORTAL_DATABASE_URL": "postgresql://db/portal",
        "PORTAL_SEARCH__HNSW": '{"m": 24}',
        "PORTAL_SERVICE_HOST": "10.0.0.1",
        "PORTAL_WEB_SERVICE_PORT_HTTP": "8000",
        "PORTAL_PORT": "tcp://10.0.0.1:8000",
        "PORTAL_PORT_8000_TCP_ADDR": "10.0.0.1",
        "PATH": "/usr/bin",
    }
    assert find_unknown(known) == []


def test_variables_that_the_repository_reads_are_known() -> None:
    root = Path(__file__).parents[3]
    read = re.compile(r"""(?:environ(?:\.get)?[\[(]\s*|\$\{?|VARIABLE = )["']?(PORTAL_[A-Z_]+)""")
    names = {
        name
        for folder in ("portal", "eval", "examples", "bench", "e2e", "deploy", "tests")
        for path in (root / folder).rglob("*")
        if path.suffix in {".py", ".sh"}
        for name in read.findall(path.read_text(encoding="utf-8"))
    }
    assert {"PORTAL_TOKEN", "PORTAL_EVAL_DATA", "PORTAL_ORACLE_STATES"} <= names
    assert find_unknown(dict.fromkeys(names, "x")) == []
