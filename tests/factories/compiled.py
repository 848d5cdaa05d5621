"""What applications compile when they start and render, kept for the next application of the run.

Every test has an application of its own, all of them with the same templates and routes.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import Any

from jinja2 import BytecodeCache
from jinja2.bccache import Bucket
from werkzeug.routing import Rule

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
