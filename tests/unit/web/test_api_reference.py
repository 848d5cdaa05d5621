"""The OpenAPI document as tables and commands."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from portal.web.operations.api_docs import code_spans
from portal.web.operations.api_reference import Operation, read

NOTE = {
    "type": "object",
    "required": ["title"],
    "properties": {
        "title": {"type": "string", "maxLength": 300, "description": "of the `note`"},
        "tags": {"type": "array", "items": {"$ref": "#/components/schemas/Tag"}},
        "pages": {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 9}, {"type": "null"}]},
    },
}
TAG = {"type": "object", "properties": {"word": {"enum": ["a", "b"]}}}
ANSWER = {"200": {"description": "a note", "headers": {}}, "404": {"description": "none"}}
SPEC: dict[str, Any] = {
    "tags": [{"name": "Notes & more", "description": "They are kept."}, {"name": "Empty"}],
    "components": {"schemas": {"Note": NOTE, "Tag": TAG}},
    "paths": {
        "/notes/{note_id}": {
            "put": {
                "operationId": "change_note",
                "tags": ["Notes & more"],
                "summary": "Change a note",
                "security": [{"bearer": ["write"]}],
                "parameters": [
                    {"name": "note_id", "in": "path", "schema": {"type": "string"}, "example": "7"}
                ],
                "requestBody": {
                    "content": {
                        "application/json": {
                            "schema": {"$ref": "#/components/schemas/Note"},
                            "example": {"title": "it's"},
                        }
                    }
                },
                "responses": ANSWER,
            },
            "get": {
                "operationId": "find_note",
                "tags": ["Notes & more"],
                "summary": "Find notes",
                "security": [],
                "parameters": [
                    {
                        "name": "q",
                        "in": "query",
                        "required": True,
                        "schema": {"type": "string"},
                        "example": "a b",
                    }
                ],
                "responses": ANSWER,
            },
        }
    },
}


@pytest.fixture
def operations() -> dict[str, Operation]:
    [group] = read(SPEC)
    assert group.anchor == "group-notes-more"
    return {operation.anchor: operation for operation in group.operations}


def test_fields_of_fields_have_rows_of_their_own(operations: dict[str, Operation]) -> None:
    [body] = operations["change_note"].requests
    rows = {field.name: (field.type, field.is_required) for field in body.fields}
    assert rows == {
        "title": ("string, up to 300 characters", True),
        "tags": ("array of object", False),
        "tags[].word": ('"a" | "b"', False),
        "pages": ("integer, 1 to 9 | null", False),
    }


def test_command_is_one_that_a_shell_reads(operations: dict[str, Operation]) -> None:
    put = shlex.split(operations["change_note"].curl.replace("\\\n", ""))
    assert put[:4] == ["curl", "-X", "PUT", "$PORTAL/notes/7"]
    assert put[-1] == '{"title": "it\'s"}'
    get = shlex.split(operations["find_note"].curl.replace("\\\n", ""))
    assert get[1] == "--get"
    assert get[-2:] == ["--data-urlencode", "q=a b"]
    assert "-H" not in get


def test_what_a_token_must_be_allowed_is_told(operations: dict[str, Operation]) -> None:
    assert operations["change_note"].scopes == ["write"]
    assert operations["find_note"].scopes is None


def test_words_between_backticks_are_code() -> None:
    assert code_spans("a `b` c") == [(False, "a "), (True, "b"), (False, " c")]
