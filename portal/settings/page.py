"""Generate docs/settings.md from the fields."""

from __future__ import annotations

import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from portal.settings.all_settings import Settings, environment_name

# Common settings, in the order in which an operator meets them.
EVERYDAY = (
    "PORTAL_DATA_DIR",
    "PORTAL_ADMIN_PASSWORD",
    "PORTAL_PUBLIC_URL",
    "PORTAL_TRUSTED_PROXIES",
    "PORTAL_REGISTRATION",
    "DATABASE_URL",
    "REDIS_URL",
    "PORTAL_SECRET_KEY",
    "PORTAL_MAX_UPLOAD_MB",
    "PORTAL_QUOTA_MB",
    "PORTAL_TRASH_DAYS",
    "PORTAL_EMBEDDING__PROVIDER",
    "PORTAL_EMBEDDING__MODEL",
    "PORTAL_EMBEDDING__API_BASE",
    "PORTAL_EMBEDDING__API_KEY",
    "PORTAL_CHAT__PROVIDER",
    "PORTAL_CHAT__MODEL",
    "PORTAL_CHAT__API_BASE",
    "PORTAL_CHAT__API_KEY",
    "PORTAL_OIDC__ISSUER",
    "PORTAL_OIDC__CLIENT_ID",
    "PORTAL_OIDC__CLIENT_SECRET",
    "PORTAL_BACKUP__RECIPIENTS",
    "PORTAL_METRICS__TOKEN",
)
# Headings of the sections, by their field in Settings; "" is Settings itself.
_HEADINGS = {
    "": "General",
    "web": "Web server",
    "embedding": "Embedding model",
    "rerank": "Re-ranking",
    "chat": "Chat model",
    "search": "Search",
    "ingest": "Reading documents",
    "uploads": "Uploads",
    "sources": "Sources of folders",
    "jwt": "Tokens",
    "passwords": "Passwords",
    "sign_in": "Sign-in",
    "oidc": "Sign-in through OpenID Connect",
    "rate_limits": "Rate limits",
    "mcp": "MCP",
    "chroma": "Chroma",
    "audit": "Audit log",
    "backup": "Backups",
    "metrics": "Metrics",
    "tracing": "Traces",
}
_TYPES = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    Path: "path",
    SecretStr: "secret text",
}
_INTRODUCTION = """\
# Settings

Generated from `portal/settings` by `python -m portal.settings`; do not edit by hand.

Values come from `portal.yaml` (path in `PORTAL_CONFIG`) and, above it, the environment.
In YAML, two underscores are a level of nesting:
`PORTAL_SEARCH__HNSW__M=24` is `search: {hnsw: {m: 24}}`.
A wrong value stops the start with its name, the value and what is accepted. A setting without
effect is named at the start and by `portal doctor`.

Administrators change weights, fusion, the number of results and the size of prompts at
`/admin/search` while the portal serves.

## Common settings
"""
_TABLE = ["| setting | takes | default | what it does |", "|---|---|---|---|"]


@dataclass(frozen=True, slots=True)
class _Setting:
    name: str
    section: str
    field: FieldInfo

    @property
    def row(self) -> str:
        return (
            f"| `{self.name}` | {_takes(self.field)} | {_default(self.field.default)} "
            f"| {self.field.description} |"
        )


def settings_page() -> str:
    """Return docs/settings.md: the settings that people set, then all others by group."""
    settings = {setting.name: setting for setting in _settings(Settings)}
    lines = [_INTRODUCTION, *_TABLE, *(settings.pop(name).row for name in EVERYDAY)]
    for section, heading in _HEADINGS.items():
        rows = [setting.row for setting in settings.values() if setting.section == section]
        if rows:
            lines += ["", f"## {heading}", "", *_TABLE, *rows]
    return "\n".join(lines) + "\n"


def _settings(model: type[BaseModel], path: tuple[str, ...] = ()) -> Iterator[_Setting]:
    for name, field in model.model_fields.items():
        nested = field.annotation
        if isinstance(nested, type) and issubclass(nested, BaseModel):
            yield from _settings(nested, (*path, name))
        else:
            yield _Setting(environment_name((*path, name)), path[0] if path else "", field)


def _takes(field: FieldInfo) -> str:
    bounds = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<", "min_length": "length ≥"}
    limits = [
        f"{sign} {value}"
        for rule in field.metadata
        for bound, sign in bounds.items()
        if (value := getattr(rule, bound, None)) is not None
    ]
    return ", ".join([_type(field.annotation), *limits])


def _type(annotation: Any) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return ", ".join(f"`{choice}`" for choice in arguments)
    if origin is tuple:
        return "names" if arguments[-1] is ... else f"{len(arguments)} numbers"
    if origin in {types.UnionType, Union}:
        return _type(next(argument for argument in arguments if argument is not type(None)))
    return _TYPES[annotation]


def _default(value: Any) -> str:
    if value in {None, ()}:
        return "unset"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple):
        return f"`{','.join(map(str, value))}`"
    return f"`{value}`"
