"""Generate examples from the schemas, so that the two cannot differ.

A field's own example (`Field(examples=[…])`) comes first. Otherwise the example follows from the
field's type and, for words and numbers that should make sense, from its name.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid5

from portal.api.openapi.components import SCHEMAS

_NAMESPACE = UUID("6ba7b811-9dad-11d1-80b4-00c04fd430c8")  # RFC 9562's for addresses.
_SHA256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
_TIME = "2026-05-04T08:30:00Z"

WORDS: dict[str, Any] = {
    "access_token": "eyJhbGciOiJIUzI1NiIs…",
    "refresh_token": "eyJhbGciOiJIUzI1NiIs…",
    "token": "eyJhbGciOiJIUzI1NiIs…",
    "title": "员工手册",
    "query": "年假有多少天？",
    "excerpt": "年假为每年十五天，入职满一年后可用。",
    "content": "年假为每年十五天。[1]",
    "text": "员工手册\n\n年假为每年十五天，入职满一年后可用。",
    "body": "年假为每年十五天，入职满一年后可用。",
    "answer": "年假为每年十五天。[1]",
    "heading": "年假",
    "domain": "人事",
    "owner": "ada",
    "username": "ada",
    "file_name": "员工手册.pdf",
    "file": "年假为每年十五天。",
    "code": "unavailable",
    "message": "Temporarily unavailable. Try again in a moment.",
    "url": "/documents/7d8e5f0c-3b53-5c0e-9a57-6f2f7a0c1b42",
    "language": "zh",
    "name": "nightly import",
    "reason": "bm25_unavailable",
    "provider": "bundled",
    "reranker": "off",
    "embedding_model": "multilingual-e5-small",
}
FIGURES: dict[str, float] = {
    "score": 0.82,
    "vector_score": 0.87,
    "text_score": 0.7,
    "confidence": 0.93,
    "bytes": 48213,
    "expires_in": 3600,
    "char_start": 0,
    "char_end": 9,
}
FALLBACK = "…"


def request_example(schema: dict[str, Any], schemas: dict[str, Any]) -> Any:
    """Return an example body with the fields that are required or have an example."""
    schema = _resolve(schema, schemas)
    if schema.get("examples"):
        return schema["examples"][0]
    required = schema.get("required", [])
    return {
        name: example_of(field, schemas, name)
        for name, field in schema.get("properties", {}).items()
        if name in required or "examples" in field or field.get("default") not in (None, "")
    }


def example_of(schema: dict[str, Any], schemas: dict[str, Any], name: str = "") -> Any:
    """Return a value that fits `schema`, which may refer to `schemas` by name."""
    schema = _resolve(schema, schemas)
    if schema.get("examples"):
        return schema["examples"][0]
    for key in ("const", "default"):
        if schema.get(key) not in (None, "", []):
            return schema[key]
    if "enum" in schema:
        return schema["enum"][0]
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema:
            shown = [variant for variant in schema[key] if variant.get("type") != "null"]
            return example_of(shown[0] if shown else schema[key][0], schemas, name)
    return _of_type(schema, schemas, name)


def _resolve(schema: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    """Resolve a reference; keys beside the reference take precedence."""
    while "$ref" in schema:
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**schemas[schema["$ref"].removeprefix(SCHEMAS)], **beside}
    return schema


def _of_type(schema: dict[str, Any], schemas: dict[str, Any], name: str) -> Any:
    kind = schema.get("type")
    if kind == "object" or "properties" in schema:
        return {
            key: example_of(field, schemas, key)
            for key, field in schema.get("properties", {}).items()
        }
    if kind == "array":
        items = schema.get("prefixItems") or [schema.get("items", {})]
        count = max(schema.get("minItems", 1), len(items))
        found = [example_of(item, schemas, name.removesuffix("s")) for item in items]
        return (found * count)[:count]
    if kind in {"integer", "number"}:
        return _figure(schema, name, whole=kind == "integer")
    if kind == "boolean":
        return False
    return _word(schema, name) if kind == "string" else None


def _figure(schema: dict[str, Any], name: str, *, whole: bool) -> float:
    figure = FIGURES.get(name, 1 if whole else 0.82)
    figure = max(figure, schema.get("minimum", figure))
    figure = min(figure, schema.get("maximum", figure))
    return int(figure) if whole else figure


def _word(schema: dict[str, Any], name: str) -> str:
    match schema.get("format"):
        case "uuid":
            return str(uuid5(_NAMESPACE, name))
        case "date-time":
            return _TIME
        case "date":
            return _TIME[:10]
    if name.endswith(("sha256", "_hash")):
        return _SHA256
    word = str(WORDS.get(name, FALLBACK))
    return word[: schema.get("maxLength", len(word))]
