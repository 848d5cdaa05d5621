"""What applications compile when they start, render and query, kept for the next of the run.

Every test has an application and engines of its own, all with the same templates, routes and
statements.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from types import CodeType
from typing import Any

import pytest
from jinja2 import BytecodeCache
from jinja2.bccache import Bucket
from sqlalchemy import Engine
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.util import LRUCache
from werkzeug.routing import Rule

# What the SQL of a statement depends on, besides the statement.
TRAITS = attrgetter("server_version_info", "default_schema_name", "_json_serializer")
Builder = Callable[..., tuple[str, str]]


class CompiledTemplates(BytecodeCache):
    """Keep the code of templates in memory, by name and source."""

    def __init__(self) -> None:
        self._codes: dict[tuple[str, str], CodeType] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        bucket.code = self._codes.get((bucket.key, bucket.checksum))

    def dump_bytecode(self, bucket: Bucket) -> None:
        assert bucket.code is not None
        self._codes[bucket.key, bucket.checksum] = bucket.code


def compiled_once(compile_builder: Callable[[Rule, bool], Builder]) -> Callable[..., Builder]:
    """Wrap `Rule._compile_builder`, whose result depends on the rule's parts and defaults alone."""
    builders: dict[tuple[Any, ...], Builder] = {}

    def compile_or_reuse(rule: Rule, append_unknown: bool = True) -> Builder:
        key = (rule.rule, tuple(rule._trace), repr(rule.defaults), append_unknown)
        if key not in builders:
            builders[key] = compile_builder(rule, append_unknown)
        return builders[key]

    return compile_or_reuse


def share_statements(patch: pytest.MonkeyPatch) -> None:
    """Give all engines one cache of compiled statements.

    Its keys hold the dialect, of which each engine has its own: equal ones count as the same.
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
