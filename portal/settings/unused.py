"""Settings that are set but have no effect, given the others."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from pydantic import BaseModel

from portal.settings.all_settings import Settings
from portal.settings.fields import environment_name, iterate_fields


@dataclass(frozen=True, slots=True)
class UnusedSetting:
    """A setting without effect: its `name` in the environment, and the reason."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class _Rule:
    """The `fields` (empty: all) of the section at `path` have no effect while `is_unused`."""

    path: tuple[str, ...]
    is_unused: Callable[[Settings], bool]
    reason: str
    fields: tuple[str, ...] = ()


_RULES = (
    _Rule(
        ("search", "hnsw"),
        lambda settings: settings.search.index != "hnsw",
        "PORTAL_SEARCH__INDEX is ivfflat",
    ),
    _Rule(
        ("search", "hnsw"),
        lambda settings: not settings.search.hnsw.enabled,
        "PORTAL_SEARCH__HNSW__ENABLED is false",
        fields=("m", "ef_construction", "ef_search"),
    ),
    _Rule(
        ("search", "ivfflat"),
        lambda settings: settings.search.index != "ivfflat",
        "PORTAL_SEARCH__INDEX is hnsw",
    ),
    _Rule(
        ("search",),
        lambda settings: settings.search.keyword_backend in {"tsvector", "off"},
        "PORTAL_SEARCH__KEYWORD_BACKEND says that BM25 does not rank words",
        fields=("bm25_k1", "bm25_b"),
    ),
    _Rule(
        ("embedding",),
        lambda settings: settings.embedding.provider != "openai",
        "PORTAL_EMBEDDING__PROVIDER is not openai",
        fields=("api_base", "api_key", "max_retries"),
    ),
    _Rule(
        ("rerank",),
        lambda settings: settings.rerank.provider == "off",
        "PORTAL_RERANK__PROVIDER is off",
        fields=("model", "candidates", "timeout_s"),
    ),
    _Rule(
        ("chat",),
        lambda settings: settings.chat.provider == "extractive",
        "PORTAL_CHAT__PROVIDER is extractive",
        fields=("model", "api_base", "api_key", "first_token_timeout_s", "max_tokens"),
    ),
    _Rule(
        ("web",),
        lambda settings: settings.trusted_proxies > 0,
        "PORTAL_TRUSTED_PROXIES says that connections are the proxy's",
        fields=("connections_per_address",),
    ),
    _Rule(
        ("rate_limits",),
        lambda settings: not settings.rate_limits.enabled,
        "PORTAL_RATE_LIMITS__ENABLED is false",
        fields=tuple(
            f"{name}{suffix}"
            for name in (
                *("default", "search_semantic", "search_text", "search_hybrid"),
                *("search_similar", "search_batch", "list_chunks", "get_chunk"),
            )
            for suffix in ("", "_burst")
        ),
    ),
)
_RANKED_BY_TSVECTOR = _Rule(
    ("search", "text"),
    lambda _: True,
    "words are ranked by BM25; it needs PORTAL_SEARCH__KEYWORD_BACKEND=tsvector",
    fields=("weights", "normalization"),
)

# Variables of commands, clients, examples and tests.
_NO_SETTINGS = frozenset(
    f"PORTAL_{name}"
    for name in (
        *("CONFIG", "EVAL_DATA", "EXAMPLE_MODEL", "TOKEN", "URL", "USER", "PASSWORD"),
        *("ORACLE_STATES", "SCHEMATHESIS_EXAMPLES", "SCHEMATHESIS_ONLY", "TEST_CHROMIUM"),
    )
)
# Kubernetes sets these in each container for a service whose name begins with "portal".
_SERVICE_LINK = re.compile(r"\w+_(SERVICE_(HOST|PORT\w*)=.*|PORT_\d+_\w+=.*|PORT=\w+://.*)")
_MIN_SIMILARITY = 0.8


def find_unknown(environment: Mapping[str, str]) -> list[UnusedSetting]:
    """Return the variables that begin with PORTAL_ and are not settings, with the nearest one."""
    paths = [setting.path for setting in iterate_fields(Settings)]
    names = [environment_name(path) for path in paths]
    # A section may be given as a whole, in JSON, and each setting with the prefix.
    known = _NO_SETTINGS | {
        "PORTAL_" + "__".join(path[:depth]).upper()
        for path in paths
        for depth in range(1, len(path) + 1)
    }
    unknown = []
    for name, value in sorted(environment.items()):
        wanted = name.upper()
        if not wanted.startswith("PORTAL_") or wanted in known:
            continue
        if _SERVICE_LINK.fullmatch(f"{wanted}={value}"):
            continue
        near = difflib.get_close_matches(wanted, names, n=1, cutoff=_MIN_SIMILARITY)
        hint = f"; did you mean {near[0]}?" if near else " (docs/settings.md lists them)"
        unknown.append(UnusedSetting(name, f"there is no such setting{hint}"))
    return unknown


def find_unused(settings: Settings, *, ranks_by_bm25: bool | None = None) -> list[UnusedSetting]:
    """Return the settings that are set but have no effect. `ranks_by_bm25` is None if the server is
    unknown."""
    if ranks_by_bm25 is None:
        ranks_by_bm25 = settings.search.keyword_backend == "pg_textsearch"
    rules = [rule for rule in _RULES if rule.is_unused(settings)]
    if ranks_by_bm25:
        rules.append(_RANKED_BY_TSVECTOR)
    return [unused for rule in rules for unused in _find_given(settings, rule)]


def given_fields(settings: Settings, path: tuple[str, ...]) -> set[str]:
    """Return the fields of a section that the environment or the file sets."""
    section: BaseModel = settings
    for name in path:
        if name not in section.model_fields_set:
            return set()
        section = getattr(section, name)
    return section.model_fields_set


def _find_given(settings: Settings, rule: _Rule) -> Iterator[UnusedSetting]:
    given = given_fields(settings, rule.path)
    for name in sorted(given.intersection(rule.fields) if rule.fields else given):
        yield UnusedSetting(environment_name((*rule.path, name)), rule.reason)
