"""The OpenAPI document as a page reads it: groups of operations, tables of fields, commands."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_SCHEMAS = "#/components/schemas/"
# Fields of fields of fields: what lies deeper has a table of its own elsewhere on the page.
_DEEPEST = 3
_JSON = "application/json"

Spec = dict[str, Any]


@dataclass(frozen=True)
class Field:
    """A row: `results[].title`, its type and range, and what it means."""

    name: str
    type: str
    is_required: bool
    description: str
    place: str = ""


@dataclass(frozen=True)
class Body:
    """What is sent or comes back, in one media type."""

    media_type: str
    fields: list[Field]
    example: str | None


@dataclass(frozen=True)
class Answer:
    status: str
    description: str
    bodies: list[Body]
    headers: list[str]

    @property
    def is_error(self) -> bool:
        return self.status[0] in "45"


@dataclass(frozen=True)
class Operation:
    anchor: str
    method: str
    path: str
    summary: str
    description: str
    scopes: list[str] | None
    """What a token must be allowed; None: no token is needed."""
    parameters: list[Field]
    requests: list[Body]
    answers: list[Answer]
    curl: str


@dataclass(frozen=True)
class Group:
    anchor: str
    name: str
    description: str
    operations: list[Operation]


def read(spec: Spec) -> list[Group]:
    """The operations of `spec` in the order of its tags and addresses."""
    groups = [
        Group(_anchor(tag["name"]), tag["name"], tag.get("description", ""), [])
        for tag in spec.get("tags", [])
    ]
    by_name = {group.name: group for group in groups}
    for path, methods in spec["paths"].items():
        for method, operation in methods.items():
            group = by_name[operation["tags"][0]]
            group.operations.append(_operation(spec, path, method, operation))
    return [group for group in groups if group.operations]


def _anchor(name: str) -> str:
    return "group-" + re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _operation(spec: Spec, path: str, method: str, operation: Spec) -> Operation:
    security = operation.get("security", [])
    body = operation.get("requestBody", {}).get("content", {})
    return Operation(
        anchor=operation["operationId"],
        method=method.upper(),
        path=path,
        summary=operation["summary"],
        description=operation.get("description", ""),
        scopes=[name for one in security for name in next(iter(one.values()))]
        if security
        else None,
        parameters=[_parameter(spec, one) for one in operation.get("parameters", [])],
        requests=_bodies(spec, body),
        answers=[_answer(spec, status, one) for status, one in operation["responses"].items()],
        curl=_curl(path, method, operation),
    )


def _parameter(spec: Spec, parameter: Spec) -> Field:
    return Field(
        name=parameter["name"],
        type=_type(spec, parameter["schema"]),
        is_required=parameter.get("required", False),
        description=parameter.get("description", ""),
        place=parameter["in"],
    )


def _answer(spec: Spec, status: str, response: Spec) -> Answer:
    return Answer(
        status=status,
        description=response["description"],
        bodies=[] if status[0] in "45" else _bodies(spec, response.get("content", {})),
        headers=list(response.get("headers", {})),
    )


def _bodies(spec: Spec, content: Spec) -> list[Body]:
    return [
        Body(media_type, list(_fields(spec, one.get("schema", {}))), _example(one))
        for media_type, one in content.items()
    ]


def _example(content: Spec) -> str | None:
    if "example" not in content:
        return None
    example = content["example"]
    if isinstance(example, str):
        return example
    return json.dumps(example, ensure_ascii=False, indent=2)


def _resolved(spec: Spec, schema: Spec) -> Spec:
    while "$ref" in schema:
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        name = schema["$ref"].removeprefix(_SCHEMAS)
        schema = {**spec["components"]["schemas"][name], **beside}
    return schema


def _shapes(spec: Spec, schema: Spec) -> list[Spec]:
    """The alternatives of a schema, without null."""
    schema = _resolved(spec, schema)
    options = schema.get("anyOf") or schema.get("oneOf") or [schema]
    return [one for one in (_resolved(spec, option) for option in options) if not _is_null(one)]


def _is_null(schema: Spec) -> bool:
    return schema.get("type") == "null"


def _fields(spec: Spec, schema: Spec, prefix: str = "", depth: int = 1) -> Iterator[Field]:
    for shape in _shapes(spec, schema):
        required = shape.get("required", [])
        for name, field in shape.get("properties", {}).items():
            whole = _resolved(spec, field)
            yield Field(
                name=prefix + name,
                type=_type(spec, field),
                is_required=name in required,
                description=whole.get("description", ""),
            )
            if depth < _DEEPEST:
                for inner, mark in _inner(spec, whole):
                    yield from _fields(spec, inner, f"{prefix}{name}{mark}.", depth + 1)


def _inner(spec: Spec, schema: Spec) -> Iterator[tuple[Spec, str]]:
    """What has fields of its own within a field, with the mark that its rows get."""
    for shape in _shapes(spec, schema):
        if shape.get("type") == "array":
            yield shape.get("items", {}), "[]"
        elif "properties" in shape:
            yield shape, ""


def _type(spec: Spec, schema: Spec) -> str:
    whole = _resolved(spec, schema)
    options = whole.get("anyOf") or whole.get("oneOf") or [whole]
    names = [_one_type(spec, _resolved(spec, option)) for option in options]
    return " | ".join(dict.fromkeys(names))


def _one_type(spec: Spec, schema: Spec) -> str:
    if "enum" in schema:
        return " | ".join(json.dumps(value, ensure_ascii=False) for value in schema["enum"])
    if "const" in schema:
        return json.dumps(schema["const"])
    kind = schema.get("type", "any")
    if kind == "array":
        return f"array of {_type(spec, schema.get('items', {}))}"
    if "format" in schema:
        kind = f"{kind} ({schema['format']})"
    return str(kind) + _range(schema)


def _range(schema: Spec) -> str:
    """`, 1 to 200`; `, up to 300 characters`; the default."""
    words = ""
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        words += f", {low:g} to {high:g}"
    elif low is not None:
        words += f", from {low:g}"
    if "maxLength" in schema:
        words += f", up to {schema['maxLength']} characters"
    return words


def _curl(path: str, method: str, operation: Spec) -> str:
    """A command that a person can paste; `$PORTAL` and `$TOKEN` stand for theirs."""
    parameters = operation.get("parameters", [])
    for parameter in parameters:
        if parameter["in"] == "path":
            path = path.replace(f"{{{parameter['name']}}}", str(parameter.get("example", "…")))
    lines = ["curl" if method == "get" else f"curl -X {method.upper()}"]
    lines[0] += f' "$PORTAL{path}"'
    if operation.get("security"):
        lines.append('-H "Authorization: Bearer $TOKEN"')
    queries = [one for one in parameters if one["in"] == "query" and one.get("required")]
    if queries:
        lines[0] = lines[0].replace("curl", "curl --get", 1)
        pairs = (f"{one['name']}={one.get('example', '…')}" for one in queries)
        lines += [f"--data-urlencode {shlex.quote(pair)}" for pair in pairs]
    lines += _curl_body(operation.get("requestBody", {}).get("content", {}))
    return " \\\n  ".join(lines)


def _curl_body(content: Spec) -> list[str]:
    if _JSON in content:
        text = json.dumps(content[_JSON].get("example", {}), ensure_ascii=False)
        return ["-H 'Content-Type: application/json'", f"-d {shlex.quote(text)}"]
    if "multipart/form-data" in content:
        return ["-F file=@handbook.pdf"]
    return []
