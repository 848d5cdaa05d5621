"""Generate docs/settings.md from the fields."""

from __future__ import annotations

from typing import Any

from portal.settings.all_settings import Settings
from portal.settings.fields import SettingField, iterate_fields

# Common settings, in the order in which an operator needs them.
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
_INTRODUCTION = """\
# Settings

Generated from `portal/settings` by `python -m portal.settings`; do not edit by hand.

Values come from `portal.yaml` in the current directory (set `PORTAL_CONFIG` for another path).
Environment variables override it.
In YAML, two underscores are a level of nesting:
`PORTAL_SEARCH__HNSW__M=24` is `search: {hnsw: {m: 24}}`.
If a value is wrong, the portal does not start; the error gives the setting's name, its value and
what is accepted. At start, and in `portal doctor`, you are told about settings without effect and
about variables that begin with `PORTAL_` but are not settings.

Administrators can change weights, fusion, the number of results and the size of prompts at
`/admin/search` while the portal is running.

## Common settings
"""
_TABLE = ["| setting | takes | default | what it does |", "|---|---|---|---|"]


def settings_page() -> str:
    """Return docs/settings.md: the common settings, then all others by section."""
    settings = {setting.name: setting for setting in iterate_fields(Settings)}
    lines = [_INTRODUCTION, *_TABLE, *(_row(settings.pop(name)) for name in EVERYDAY)]
    for section, heading in _HEADINGS.items():
        path = (section,) if section else ()
        rows = [_row(setting) for setting in settings.values() if setting.path[:-1][:1] == path]
        if rows:
            lines += ["", f"## {heading}", "", *_TABLE, *rows]
    return "\n".join(lines) + "\n"


def _row(setting: SettingField) -> str:
    field = setting.field
    return (
        f"| `{setting.name}` | {setting.takes} | {_default(field.default)} | {field.description} |"
    )


def _default(value: Any) -> str:
    if value in {None, ()}:
        return "unset"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple):
        return f"`{','.join(map(str, value))}`"
    return f"`{value}`"
