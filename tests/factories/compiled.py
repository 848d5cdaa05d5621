"""Results that applications compute when they start, render and query, reused within a run.

Every test has its own application and engines, all with the same templates, routes and statements.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable
from copy import copy
from functools import cache
from operator import attrgetter
from pathlib import Path
from types import CodeType, MethodType
from typing import Any

import pytest
from jinja2 import BytecodeCache
from jinja2.bccache import Bucket
from sqlalchemy import Engine
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.util import LRUCache
from werkzeug.routing import Rule

from portal.domain.embedding import Embedder
from portal.embeddings.calibration import Calibration, background

# What the SQL of a statement depends on, besides the statement.
TRAITS = attrgetter("server_version_info", "default_schema_name", "_json_serializer")


class CompiledTemplates(BytecodeCache):
    """Keep the code of templates in memory, by name and source."""

    def __init__(self) -> None:
        self._codes: dict[tuple[str, str], CodeType] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        bucket.code = self._codes.get((bucket.key, bucket.checksum))

    def dump_bytecode(self, bucket: Bucket) -> None:
        assert bucket.code is not None
        self._codes[bucket.key, bucket.checksum] = bucket.code


def compiled_once(compile_rule: Callable[[Rule], None]) -> Callable[[Rule], None]:
    """Wrap `Rule.compile`, whose result depends on the rule's parts and defaults alone."""
    compiled: dict[tuple[Any, ...], Rule] = {}

    def compile_or_reuse(rule: Rule) -> None:
        key = (rule.rule, rule.host, rule.subdomain, rule.merge_slashes, repr(rule.defaults))
        if key not in compiled:
            compile_rule(rule)
            compiled[key] = rule
            return
        same = compiled[key]
        rule._parts, rule._trace, rule._converters = same._parts, same._trace, same._converters
        rule.arguments |= same.arguments
        rule._build = MethodType(same._build.__func__, rule)
        rule._build_unknown = MethodType(same._build_unknown.__func__, rule)

    return compile_or_reuse


def loaded_once(create: Callable[..., ssl.SSLContext]) -> Callable[..., ssl.SSLContext]:
    """Wrap `httpx.create_ssl_context`, which parses all certificates that the machine trusts."""

    @cache
    def load(_authorities: str | None) -> ssl.SSLContext:
        return create()

    # Callers that pass options may change the context later, so they get a new one.
    return lambda **named: create(**named) if named else load(os.environ.get("SSL_CERT_FILE"))


def calibrated_once(for_model: Callable[..., Calibration]) -> Callable[..., Calibration]:
    """Wrap `Calibration.for_model`, whose result depends on the model and its background alone."""
    made: dict[tuple[str, int], Calibration] = {}

    def calibrate_or_reuse(embedder: Embedder, cache_dir: Path | None = None) -> Calibration:
        kept = cache_dir / background.file_name(embedder) if cache_dir else None
        if kept is None or not kept.is_file():
            return for_model(embedder, cache_dir)
        key = (kept.name, kept.stat().st_mtime_ns)
        if key not in made:
            made[key] = for_model(embedder, cache_dir)
        # A copy, since each portal adopts the constants of its own corpus.
        return copy(made[key]) if made[key].ready else made.pop(key)

    return calibrate_or_reuse


def share_statements(patch: pytest.MonkeyPatch) -> None:
    """Give all engines one cache of compiled statements.

    Its keys contain the dialect, and each engine has its own, so compare dialects by value.
    """
    statements = LRUCache(5000)
    initialise = Engine.__init__

    def initialise_sharing(engine: Engine, *arguments: Any, **options: Any) -> None:
        initialise(engine, *arguments, **options)
        engine._compiled_cache = statements

    def are_equal(one: PGDialect_psycopg, other: object) -> bool:
        return type(one) is type(other) and TRAITS(one) == TRAITS(other)

    patch.setattr(Engine, "__init__", initialise_sharing)
    patch.setattr(PGDialect_psycopg, "__eq__", are_equal)
    patch.setattr(PGDialect_psycopg, "__hash__", lambda dialect: hash(type(dialect)))
