"""Base classes and fields of JSON bodies."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from flask import has_request_context, request
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from portal.domain.documents.selection import AskScope
from portal.errors import N_
from portal.text.characters.storable import storable

# The format of `next_cursor` (see `portal.store.cursors`), or empty for the first page. It is only
# described here: a cursor in another format gets the same error as an invalid one.
TIME_CURSOR = "^([0-9]{1,17}[.][0-9a-f]{32})?$"
TEXT_CURSOR = "^([A-Za-z0-9_-]{0,1900}[.][0-9a-f]{32})?$"

# Every JSON parser represents whole numbers up to here exactly.
_EXACT = 2**53


class RequestModel(BaseModel):
    """The base of bodies and query strings. Unknown names are refused, so that a typo is noticed.

    Values in a body must have their JSON types: `"5"` is not a number, and `1` is not true. In a
    query string, where everything is text, values are parsed.
    """

    model_config = ConfigDict(extra="forbid")

    @classmethod
    def model_validate(cls, obj: Any, **options: Any) -> Self:
        text = _json_of(obj)
        if text is None:
            return super().model_validate(obj, **options)
        return cls.model_validate_json(text, strict=True)


def _json_of(value: Any) -> bytes | None:
    """Return the request's JSON if `value` was parsed from it, None for a query string.

    Pydantic can be strict about JSON only if it parses the JSON itself: ids and dates are text
    there. Lone surrogates, which UTF-8 cannot encode, become question marks.
    """
    if not has_request_context():
        return None
    sent = request.get_json(force=True, silent=True)
    # APIFlask treats the body `null` as an empty object.
    if sent is None and value == {} and request.get_data().strip() == b"null":
        return b"null"
    if sent is None or sent is not value:
        return None
    return json.dumps(_whole(sent), ensure_ascii=False).encode("utf-8", "replace")


def _whole(value: Any) -> Any:
    """Convert 5.0 to 5: it is an integer to JSON Schema, but not to pydantic."""
    if isinstance(value, dict):
        return {key: _whole(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_whole(part) for part in value]
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) < _EXACT
    return int(value) if is_whole else value


class ResponseModel(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    @classmethod
    def of(cls, record: object, **others: Any) -> Self:
        """Return the model of a record: its attributes with the names of fields, and `others`."""
        names = cls.model_fields.keys() - others.keys()
        same = {name: getattr(record, name) for name in names if hasattr(record, name)}
        return cls.model_validate(same | others)


def _storable(value: Any) -> Any:
    """Replace what PostgreSQL cannot store in text: NUL and lone surrogates."""
    return storable(value) if isinstance(value, str) else value


CleanText = Annotated[str, BeforeValidator(_storable)]


class ScopeBody(RequestModel):
    """The scope of a question: at least one document, folder or tag."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {"required": [name], "properties": {name: {"minItems": 1}}}
                for name in ("documents", "folders", "tags")
            ]
        }
    )

    documents: list[UUID] = Field([], max_length=100)
    folders: list[UUID] = Field([], max_length=100, description="including everything below them")
    tags: list[CleanText] = Field([], max_length=100)

    @model_validator(mode="after")
    def _require_entry(self) -> Self:
        """Refuse an empty scope, which would otherwise mean everything."""
        if not self.to_scope():
            raise ValueError(N_("must name at least one document, folder or tag"))
        return self

    def to_scope(self) -> AskScope:
        return AskScope(tuple(self.documents), tuple(self.folders), tuple(self.tags))


# The field `scope` of a question or a search.
SCOPE: Any = Field(
    None,
    description="limit this to these, among what is switched on; default: everything",
    examples=[None],
)


_MAX_LISTED = 100
_ID = "[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_IDS = f"^{_ID}(,{_ID}){{0,99}}$"


def _scope_field(description: str, pattern: str | None = None) -> Any:
    schema: Any = {"pattern": pattern} if pattern else None
    return Field(None, max_length=4000, description=description, json_schema_extra=schema)


class ScopeQuery(RequestModel):
    """A scope in an address: lists are separated by commas."""

    documents: CleanText | None = _scope_field("only in these documents, ids with commas", _IDS)
    folders: CleanText | None = _scope_field("only in these folders and below, as ids", _IDS)
    tags: CleanText | None = _scope_field("only in documents with one of these tags, with commas")

    @field_validator("documents", "folders")
    @classmethod
    def _require_ids(cls, value: str | None) -> str | None:
        """Refuse anything but a list of ids."""
        for identifier in _split_list(value):
            UUID(identifier)
        return value

    def to_scope(self) -> AskScope | None:
        scope = AskScope(
            tuple(UUID(identifier) for identifier in _split_list(self.documents)),
            tuple(UUID(identifier) for identifier in _split_list(self.folders)),
            tuple(_split_list(self.tags)),
        )
        return scope if any((scope.documents, scope.folders, scope.tags)) else None


def _split_list(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()][:_MAX_LISTED]


def read_scope(body: ScopeBody | None) -> AskScope | None:
    return body.to_scope() if body else None


def cursor_field(pattern: str, *, max_length: int = 300) -> Any:
    """Return the field for the position in a list to continue from."""
    return Field(
        None,
        max_length=max_length,
        description="`next_cursor` of the previous page; empty for the first page",
        json_schema_extra={"pattern": pattern},
    )


class PageQuery(RequestModel):
    """The query string of a list sorted by time; each list adds its own limit."""

    cursor: CleanText | None = cursor_field(TIME_CURSOR)


PageLabel = Annotated[
    str | None,
    Field(description="label printed on the page, if it differs from its number", examples=["iv"]),
]


class ErrorDetail(ResponseModel):
    """What happened, in the reader's language."""

    code: str = Field(examples=["not_found"], description="stable code for programs")
    message: str = Field(description="what happened, why, and what to do")
    request_id: str = Field(description="identifies the request in the server's log")
    details: dict[str, Any] | None = Field(None, description="the invalid values")


class ErrorBody(ResponseModel):
    error: ErrorDetail


class ErrorEnvelope(ResponseModel):
    """An error under `ENVELOPE_PREFIX`."""

    success: Literal[False]
    data: None
    error: ErrorDetail


# Responses under this path have the form {success, data, error}.
ENVELOPE_PREFIX = "/api/v1/"

ERROR_WORDS = {
    400: "malformed request",
    401: "no valid token",
    403: "not allowed",
    404: "does not exist, or is not visible to this user",
    409: "conflicts with the current state",
    408: "the body did not arrive in time",
    413: "too large",
    414: "the address, with its query string, is too long",
    415: "unsupported format",
    422: "invalid value",
    429: "too many requests; see Retry-After",
    500: "internal error; give the request id to your administrator",
    502: "the embedding model returned an unusable vector",
    503: "unavailable; see Retry-After where waiting helps",
    507: "the server's disk is full",
}


def file_response_doc(description: str, *media_types: str) -> Any:
    """Return the `responses` of an endpoint that serves a file of one of these types."""
    binary = {"type": "string", "format": "binary"}
    return {
        "200": {
            "description": description,
            "content": {media_type: {"schema": binary} for media_type in media_types},
            "headers": {
                "Content-Disposition": {
                    "description": "the file's name",
                    "schema": {"type": "string"},
                    "example": "attachment; filename*=UTF-8''notes.md",
                }
            },
        }
    }
