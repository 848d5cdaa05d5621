"""A metadata filter as a condition on `document_chunks c`.

Values and names are bound, never written into the statement. Equality and containment test the
whole of `metadata` with `@>`, which can use its index (jsonb_path_ops); comparisons are evaluated
on each remaining chunk. No condition can raise an error: a value of another type does not match.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from portal.domain.search.metadata_filter import (
    All,
    AnyOf,
    Comparison,
    Containment,
    Membership,
    MetadataFilter,
    Not,
    Operator,
    Path,
)

# With more values than this, the index does not help, and a statement that lists each takes long to
# plan.
_MAX_ALTERNATIVES = 100
_SIGNS = {Operator.GT: ">", Operator.GTE: ">=", Operator.LT: "<", Operator.LTE: "<="}


def metadata_condition(wanted: MetadataFilter, binds: dict[str, Any]) -> str:
    """Return the condition, never NULL; its values are added to `binds` under names
    ``f_meta_…``."""
    if isinstance(wanted, All):
        return _joined(" AND ", wanted.parts, binds)
    if isinstance(wanted, AnyOf):
        return _joined(" OR ", wanted.parts, binds)
    if isinstance(wanted, Not):
        return f"NOT {metadata_condition(wanted.part, binds)}"
    if isinstance(wanted, Membership):
        return _is_one_of(wanted, binds)
    if isinstance(wanted, Containment):
        return _contains(wanted, binds)
    return _compares(wanted, binds)


def _joined(word: str, parts: Iterable[MetadataFilter], binds: dict[str, Any]) -> str:
    return f"({word.join(metadata_condition(part, binds) for part in parts)})"


def _any(conditions: Iterable[str]) -> str:
    return f"({' OR '.join(conditions) or 'FALSE'})"


def _is_one_of(wanted: Membership, binds: dict[str, Any]) -> str:
    """Return the condition that the field is one of the values."""
    # Few are looked up in the index, many in one hash table.
    if len(wanted.values) <= _MAX_ALTERNATIVES:
        return _any(_holds(wanted.path, value, binds) for value in wanted.values)
    values = _bound(json.dumps(wanted.values, ensure_ascii=False), binds)
    members = f"SELECT jsonb_array_elements(CAST({values} AS jsonb))"
    return f"COALESCE({_field(wanted.path, binds)} IN ({members}), FALSE)"


def _holds(path: Path, value: Any, binds: dict[str, Any]) -> str:
    """Return the condition that `metadata` has this value at the end of this path."""
    for key in reversed(path):
        value = {key: value}
    return f"c.metadata @> CAST({_bound(json.dumps(value, ensure_ascii=False), binds)} AS jsonb)"


def _contains(wanted: Containment, binds: dict[str, Any]) -> str:
    value = json.loads(wanted.value)
    whole = _holds(wanted.path, value, binds)
    if isinstance(value, dict | list):
        return f"({whole})"
    # `@>` finds a single value in a top-level list, but not in a list below a key.
    return _any([whole, _holds(wanted.path, [value], binds)])


def _compares(wanted: Comparison, binds: dict[str, Any]) -> str:
    field = _field(wanted.path, binds)
    sign = _SIGNS[wanted.operator]
    if isinstance(wanted.value, str):
        value = _bound(wanted.value, binds)
        compared = f"({field} #>> '{{}}') COLLATE \"C\" {sign} CAST({value} AS text)"
        return f"COALESCE(jsonb_typeof({field}) = 'string' AND {compared}, FALSE)"
    compared = f"({field}) {sign} CAST({_bound(json.dumps(wanted.value), binds)} AS jsonb)"
    return f"COALESCE(jsonb_typeof({field}) = 'number' AND {compared}, FALSE)"


def _field(path: Path, binds: dict[str, Any]) -> str:
    # With a name, `->` descends into objects only, as the path of an equality does.
    return "c.metadata" + "".join(f" -> CAST({_bound(key, binds)} AS text)" for key in path)


def _bound(value: str, binds: dict[str, Any]) -> str:
    name = f"f_meta_{len(binds)}"
    binds[name] = value
    return f":{name}"
