"""What all JSON bodies share."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


class RequestModel(BaseModel):
    """A body or a query string: unknown names are refused, so that a typo is not ignored."""

    model_config = ConfigDict(extra="forbid")


class ResponseModel(BaseModel):
    model_config = ConfigDict(from_attributes=True)


def _storable(value: Any) -> Any:
    """Text without what PostgreSQL cannot store: NUL and lone surrogates."""
    if isinstance(value, str):
        return value.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")
    return value


CleanText = Annotated[str, BeforeValidator(_storable)]


class ErrorDetail(ResponseModel):
    """What happened, in the reader's language."""

    code: str = Field("", examples=["not_found"], description="stable, for programs")
    message: str = Field("", description="what happened, why, and what to do")
    request_id: str = Field("", description="finds the server's log line")
    details: dict[str, Any] | None = Field(None, description="which values are not right")


class ErrorBody(ResponseModel):
    error: ErrorDetail = ErrorDetail()


ERROR_WORDS = {
    400: "the request could not be read",
    401: "no valid token",
    403: "not allowed",
    404: "not there, or not to be seen by this person",
    409: "clashes with what is there",
    413: "too large",
    415: "not a format that is taken",
    422: "a value is not right",
    429: "too many requests; see Retry-After",
    503: "not available right now",
}


def error_responses(*codes: int) -> Any:
    """The `responses` of an endpoint's documentation for these status codes."""
    return {
        str(code): {
            "description": ERROR_WORDS[code],
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorBody"}}},
        }
        for code in codes
    }


def complete_spec(spec: dict[str, Any]) -> None:
    """Add what the endpoints refer to, and mark bodies as needed."""
    reference = "#/components/schemas/{model}"
    schema = ErrorBody.model_json_schema(ref_template=reference, mode="serialization")
    schemas = spec.setdefault("components", {}).setdefault("schemas", {})
    schemas |= schema.pop("$defs", {}) | {"ErrorBody": schema}
    for path in spec["paths"].values():
        for operation in path.values():
            if isinstance(operation, dict) and "requestBody" in operation:
                operation["requestBody"]["required"] = True
