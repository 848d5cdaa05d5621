"""Conditions on the metadata of chunks, as programs write them.

::

    {"source_file": "leave.pdf", "page_number": {"$gte": 3, "$lt": 9}}
    {"$or": [{"author.name": "Ada"}, {"tags": {"$contains": "draft"}}]}
    [{"field": "page_number", "operator": "gte", "value": 3}]

Types are strict: numbers are compared with numbers, text with text, and booleans with booleans. A
missing value, or one of another type, fulfils no condition. Negations (`$ne`, `$nin`,
`$not_contains`) hold wherever the negated condition does not, so also without the field. Text is
ordered by code points.

A dot in a name leads into an object: `{"a.b": …}` is `{"a": {"b": …}}`. For a name that contains a
dot, list the path: `"field": ["a.b"]`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from portal.domain.json_values import check_json, check_number, check_text
from portal.errors import InvalidInput

MAX_CONDITIONS = 64
MAX_MEMBERS = 100
# In all conditions together: each remaining chunk is compared with every value.
MAX_VALUES = 400
MAX_NESTING = 6
MAX_KEYS = 8
MAX_KEY_LENGTH = 200
MAX_VALUE_LENGTH = 4000

Scalar = str | int | float | bool
Path = tuple[str, ...]


class Operator(StrEnum):
    EQ = "eq"
    NE = "ne"
    GT = "gt"
    GTE = "gte"
    LT = "lt"
    LTE = "lte"
    IN = "in"
    NIN = "nin"
    CONTAINS = "contains"
    NOT_CONTAINS = "not_contains"


_ORDERED = frozenset({Operator.GT, Operator.GTE, Operator.LT, Operator.LTE})
_NEGATED = {
    Operator.NE: Operator.EQ,
    Operator.NIN: Operator.IN,
    Operator.NOT_CONTAINS: Operator.CONTAINS,
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """The field is greater or less than a value of the same type; `operator` is `gt` to `lte`."""

    path: Path
    operator: Operator
    value: Scalar


@dataclass(frozen=True, slots=True)
class Membership:
    """The field is one of these values."""

    path: Path
    values: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Containment:
    """The field contains a value, by PostgreSQL's `@>`: a list has it, or all of its members if it
    is a list; an object has all its keys with values that contain its values. `value` is JSON."""

    path: Path
    value: str


@dataclass(frozen=True, slots=True)
class Not:
    part: MetadataFilter


@dataclass(frozen=True, slots=True)
class All:
    parts: tuple[MetadataFilter, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    parts: tuple[MetadataFilter, ...]


MetadataFilter = Comparison | Membership | Containment | Not | All | AnyOf


def parse_filter(
    value: Any,
    *,
    dotted: bool = True,
    max_members: int = MAX_MEMBERS,
    max_values: int = MAX_VALUES,
    max_conditions: int = MAX_CONDITIONS,
) -> MetadataFilter | None:
    """Return the filter that parsed JSON describes; None for an empty one. Without `dotted`, `a.b`
    is the name of one field. Raises InvalidInput, which names the mistake."""
    if value is None:
        return None
    if isinstance(value, list):
        parts = _from_list(value)
    else:
        parts = _from_object(value, MAX_NESTING, None if dotted else ())
    conditions = [one for part in parts for one in _conditions(part)]
    if len(conditions) > max_conditions:
        raise InvalidInput("a metadata filter has at most %(max)s conditions", max=max_conditions)
    values = [_values(one) for one in conditions]
    if max(values, default=0) > max_members:
        raise InvalidInput(
            "“in” of a metadata filter takes a list of at most %(max)s values", max=max_members
        )
    if sum(values) > max_values:
        raise InvalidInput("a metadata filter has at most %(max)s values", max=max_values)
    return _combine(parts) if parts else None


def _conditions(part: MetadataFilter) -> Iterator[MetadataFilter]:
    if isinstance(part, All | AnyOf):
        for inner in part.parts:
            yield from _conditions(inner)
    else:
        yield part


def _values(condition: MetadataFilter) -> int:
    if isinstance(condition, Not):
        return _values(condition.part)
    return len(condition.values) if isinstance(condition, Membership) else 1


def _combine(parts: Sequence[MetadataFilter]) -> MetadataFilter:
    return parts[0] if len(parts) == 1 else All(tuple(parts))


# --- the two notations ----------------------------------------------------------------------------


def _from_list(conditions: Sequence[Any]) -> list[MetadataFilter]:
    """Return the conditions of `[{"field", "operator", "value"}, …]`."""
    found: list[MetadataFilter] = []
    for one in conditions:
        if not isinstance(one, Mapping) or set(one) - {"operator"} != {"field", "value"}:
            raise InvalidInput("a condition of a metadata filter has field, operator and value")
        path = _listed_path(one["field"])
        found.append(_condition(path, str(one.get("operator", "eq")), one["value"]))
    return found


def _listed_path(field: Any) -> Path:
    if isinstance(field, str):
        return _path(field)
    if not isinstance(field, list) or not field:
        raise InvalidInput("the field of a metadata filter is a name, or a list of names")
    return _check_path(tuple(field))


def _from_object(value: Any, nesting: int, above: Path | None) -> list[MetadataFilter]:
    """Return the conditions of `{"field": value or {"$operator": value, …}, …}`. `above` is the
    path of the object with these fields, None at the top, where a dot leads into an object."""
    if not isinstance(value, Mapping):
        raise InvalidInput("a metadata filter is an object, or a list of conditions")
    if not nesting:
        raise InvalidInput("a metadata filter is nested at most %(max)s deep", max=MAX_NESTING)
    found: list[MetadataFilter] = []
    for name, wanted in value.items():
        if name in {"$and", "$or"}:
            found.append(_join(name, wanted, nesting, above))
        elif str(name).startswith("$") and not above:
            raise _unknown(name)
        else:
            found += _of_field(name, wanted, nesting, above)
    return found


def _join(name: str, wanted: Any, nesting: int, above: Path | None) -> MetadataFilter:
    listed = wanted if isinstance(wanted, list) else []
    parts = [_from_object(one, nesting - 1, above) for one in listed]
    if not parts or not all(parts):
        raise InvalidInput("“%(name)s” of a metadata filter takes a list of filters", name=name)
    joined = tuple(_combine(part) for part in parts)
    return All(joined) if name == "$and" else AnyOf(joined)


def _of_field(name: Any, wanted: Any, nesting: int, above: Path | None) -> list[MetadataFilter]:
    path = _path(name) if above is None else _check_path((*above, name))
    if not isinstance(wanted, Mapping):
        return [_condition(path, Operator.EQ, wanted)]
    operators = [str(key).startswith("$") for key in wanted]
    if not wanted or any(operators) != all(operators):
        raise InvalidInput(
            "“%(name)s” of a metadata filter mixes names and operators", name=_shorten(name)
        )
    if operators[0] and not {"$and", "$or"} & set(wanted):
        return [_condition(path, str(key)[1:], operand) for key, operand in wanted.items()]
    return _from_object(wanted, nesting - 1, path)


# --- one condition --------------------------------------------------------------------------------


def _condition(path: Path, operator: str, value: Any) -> MetadataFilter:
    try:
        known = Operator(operator.removeprefix("$"))
    except ValueError as error:
        raise _unknown(operator) from error
    if known in _NEGATED:
        return Not(_condition(path, _NEGATED[known], value))
    if known in _ORDERED:
        if isinstance(value, bool):
            raise InvalidInput("true and false have no order in a metadata filter")
        return Comparison(path, known, _scalar(value))
    if known is Operator.CONTAINS:
        check_json(value, max_characters=MAX_VALUE_LENGTH)
        return Containment(path, json.dumps(value, ensure_ascii=False, sort_keys=True))
    return Membership(path, _members(value) if known is Operator.IN else (_scalar(value),))


def _members(value: Any) -> tuple[Scalar, ...]:
    if not isinstance(value, list):
        raise InvalidInput("“in” of a metadata filter takes a list of values")
    return tuple(_scalar(one) for one in value)


def _scalar(value: Any) -> Scalar:
    if isinstance(value, str) and len(value) <= MAX_VALUE_LENGTH:
        check_text(value)
        return value
    if isinstance(value, int | float):
        check_number(value)
        return value
    raise InvalidInput(
        "a value in a metadata filter is true, false, a number, or text of at most %(max)s "
        "characters",
        max=MAX_VALUE_LENGTH,
    )


def _path(name: Any) -> Path:
    return _check_path(tuple(name.split(".")) if isinstance(name, str) else (name,))


def _check_path(path: tuple[Any, ...]) -> Path:
    if not all(isinstance(key, str) and 0 < len(key) <= MAX_KEY_LENGTH for key in path):
        raise InvalidInput(
            "a name in a metadata filter has 1 to %(max)s characters", max=MAX_KEY_LENGTH
        )
    if len(path) > MAX_KEYS:
        raise InvalidInput("a path in a metadata filter has at most %(max)s names", max=MAX_KEYS)
    for key in path:
        check_text(key)
    return path


def _unknown(operator: Any) -> InvalidInput:
    return InvalidInput(
        "“%(name)s” is not an operator of a metadata filter", name=_shorten(operator)
    )


def _shorten(name: Any) -> str:
    return str(name).encode("utf-8", "replace").decode()[:40]
