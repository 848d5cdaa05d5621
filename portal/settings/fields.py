"""All fields of the settings: their environment variables, and the values that they take."""

from __future__ import annotations

import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

_WITHOUT_PREFIX = {"database_url", "database_replica_url", "redis_url", "use_hybrid_search"}
_TYPES = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    Path: "path",
    SecretStr: "secret text",
}
_BOUNDS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<", "min_length": "length ≥"}


@dataclass(frozen=True, slots=True)
class SettingField:
    """A setting at `path`, such as ("search", "max_top_k")."""

    path: tuple[str, ...]
    field: FieldInfo

    @property
    def name(self) -> str:
        return environment_name(self.path)

    @property
    def takes(self) -> str:
        """Return the type and the range, such as "whole number, ≥ 1, ≤ 10240"."""
        limits = [
            f"{sign} {value}"
            for rule in self.field.metadata
            for bound, sign in _BOUNDS.items()
            if (value := getattr(rule, bound, None)) is not None
        ]
        return ", ".join([_type(self.field.annotation), *limits])


def environment_name(path: tuple[str, ...]) -> str:
    """Return the variable of a setting, such as PORTAL_SEARCH__MAX_TOP_K."""
    prefix = "" if len(path) == 1 and path[0] in _WITHOUT_PREFIX else "PORTAL_"
    return prefix + "__".join(path).upper()


def iterate_fields(model: type[BaseModel], path: tuple[str, ...] = ()) -> Iterator[SettingField]:
    """Yield the settings of a model and of the sections in it."""
    for name, field in model.model_fields.items():
        nested = field.annotation
        if isinstance(nested, type) and issubclass(nested, BaseModel):
            yield from iterate_fields(nested, (*path, name))
        else:
            yield SettingField((*path, name), field)


def _type(annotation: Any) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return ", ".join(f"`{choice}`" for choice in arguments)
    if origin is tuple:
        return "names" if arguments[-1] is ... else f"{len(arguments)} numbers"
    if origin in {types.UnionType, Union}:
        return _type(next(argument for argument in arguments if argument is not type(None)))
    return _TYPES[annotation]
