"""docs/settings.md, made from the fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from portal.settings.whole import Settings, environment_name


def _fields(model: type[BaseModel], path: tuple[str, ...] = ()) -> Iterator[tuple[str, FieldInfo]]:
    for name, field in model.model_fields.items():
        nested = field.annotation
        if isinstance(nested, type) and issubclass(nested, BaseModel):
            yield from _fields(nested, (*path, name))
        else:
            yield environment_name((*path, name)), field


def _type_words(field: FieldInfo) -> str:
    text = str(field.annotation).replace("typing.", "").replace("pydantic.types.", "")
    words = {"<class 'str'>": "text", "<class 'int'>": "whole number", "<class 'float'>": "number"}
    words |= {"<class 'bool'>": "true or false", "<class 'pathlib.Path'>": "path"}
    words |= {"<class 'pathlib._local.Path'>": "path"}
    text = words.get(text, text)
    if text.startswith("Literal["):
        text = ", ".join(f"`{word.strip(chr(39))}`" for word in text[8:-1].split(", "))
    text = text.replace(" | None", "").replace("SecretStr", "secret text")
    text = {
        "str": "text",
        "tuple[str, ...]": "names",
        "tuple[float, float, float, float]": "four numbers",
        "int": "whole number",
        "pathlib.Path": "path",
    }.get(text, text)
    limits = [f"{type(m).__name__.lower()} {next(iter(vars_of(m)))}" for m in field.metadata]
    signs = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<", "minlen": "length ≥"}
    spoken = [f"{signs[k]} {v}" for k, v in (item.split(" ", 1) for item in limits) if k in signs]
    return ", ".join([text, *spoken])


def vars_of(metadata: Any) -> list[Any]:
    """Values of an annotated-types constraint such as Ge(ge=1)."""
    slots = getattr(type(metadata), "__slots__", ()) or getattr(metadata, "__dict__", {})
    return [getattr(metadata, name) for name in slots] or [""]


def settings_page() -> str:
    """docs/settings.md, from the fields."""
    lines = [
        "# Settings",
        "",
        "Made from `portal/settings` by `python -m portal.settings`; do not edit by hand.",
        "",
        "Values come from `portal.yaml` (path in `PORTAL_CONFIG`) and, above it, the environment.",
        "In YAML the levels that two underscores part are nested:",
        "`PORTAL_SEARCH__HNSW__M=24` is `search: {hnsw: {m: 24}}`.",
        "A wrong value stops the start with its name, what it got and what it takes.",
        "",
        "| setting | takes | default | what it does |",
        "|---|---|---|---|",
    ]
    for name, field in _fields(Settings):
        default = (
            "unset" if field.default in (None, ()) else f"`{field.default}`".replace("True", "true")
        )
        default = default.replace("False", "false").replace("`(", "`").replace(")`", "`")
        lines.append(f"| `{name}` | {_type_words(field)} | {default} | {field.description} |")
    return "\n".join(lines) + "\n"
