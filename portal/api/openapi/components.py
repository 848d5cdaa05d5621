"""Schemas, headers and errors that operations share."""

from __future__ import annotations

import json
import re
from typing import Any

from portal.api.schemas import ErrorBody, ErrorEnvelope

SCHEMAS = "#/components/schemas/"

HEADERS: dict[str, dict[str, Any]] = {
    "X-Request-ID": {
        "description": "identifies this request in the server's log",
        "schema": {"type": "string", "minLength": 8, "maxLength": 64},
        "example": "3f6c1d2e9b7a4c58a1e0d4b2c3f5a697",
    },
    "X-RateLimit-Limit": {
        "description": "requests allowed in the window; present while limits are enabled",
        "schema": {"type": "integer", "minimum": 0},
        "example": 60,
    },
    "X-RateLimit-Remaining": {
        "description": "requests left in the window",
        "schema": {"type": "integer", "minimum": 0},
        "example": 59,
    },
    "X-RateLimit-Reset": {
        "description": "when the window ends, in seconds since 1970",
        "schema": {"type": "number", "minimum": 0},
        "example": 1767225600,
    },
    "Retry-After": {
        "description": "seconds to wait",
        "schema": {"type": "integer", "minimum": 0},
        "example": 12,
    },
    "WWW-Authenticate": {
        "description": "how to sign in",
        "schema": {"type": "string"},
        "example": "Bearer",
    },
}


def header(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/headers/{name}"}


def add_shared(spec: dict[str, Any]) -> None:
    """Add the two shapes of an error and the headers."""
    shared = spec.setdefault("components", {})
    shared["headers"] = HEADERS
    schemas = shared.setdefault("schemas", {})
    for model in (ErrorBody, ErrorEnvelope):
        schema = model.model_json_schema(ref_template=SCHEMAS + "{model}", mode="serialization")
        schemas |= {**schema.pop("$defs", {}), model.__name__: schema}
    for schema in schemas.values():
        _drop_field_titles(schema)


def _drop_field_titles(schema: dict[str, Any]) -> None:
    """Drop the titles that pydantic derives from field names."""
    for field in schema.get("properties", {}).values():
        field.pop("title", None)


def name_schemas(spec: dict[str, Any]) -> None:
    """Give each model one name. APIFlask adds a copy for each model that contains it, such as
    `SearchResponse.ResultModel`, and a generated client would have all of them."""
    schemas = spec.get("components", {}).get("schemas", {})
    bodies: dict[str, set[str]] = {}
    for name, schema in schemas.items():
        bodies.setdefault(_short(name), set()).add(_shorten(json.dumps(schema, sort_keys=True)))
    alike = {short for short, different in bodies.items() if len(different) == 1}
    text = json.dumps({"paths": spec["paths"], "schemas": schemas}, ensure_ascii=False)

    def rename(match: re.Match[str]) -> str:
        short = _short(match[1])
        return f'"{SCHEMAS}{short if short in alike else match[1]}"'

    renamed = json.loads(re.sub(rf'"{SCHEMAS}([^"]+)"', rename, text))
    spec["paths"] = renamed["paths"]
    spec["components"]["schemas"] = {
        _short(name) if _short(name) in alike else name: schema
        for name, schema in renamed["schemas"].items()
    }


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def _shorten(text: str) -> str:
    return re.sub(rf'"{SCHEMAS}([^"]+)"', lambda match: f'"{SCHEMAS}{_short(match[1])}"', text)


def drop_unused(spec: dict[str, Any]) -> None:
    """Drop schemas that nothing refers to, such as the framework's own errors."""
    schemas = spec["components"]["schemas"]
    found = _references(spec["paths"])
    waiting = set(found)
    while waiting:
        waiting = _references(schemas.get(waiting.pop(), {})) - found | waiting
        found |= waiting
    spec["components"]["schemas"] = {name: schemas[name] for name in sorted(found & set(schemas))}


def _references(part: Any) -> set[str]:
    return set(re.findall(rf'"{SCHEMAS}([^"]+)"', json.dumps(part)))
