"""The base of all groups of settings."""

from __future__ import annotations

from typing import Annotated, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, field_validator
from pydantic_settings import NoDecode

Value = TypeVar("Value")


def _split(value: object) -> object:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value


Listed = Annotated[tuple[Value, ...], NoDecode, BeforeValidator(_split)]
"""Several values, separated by commas in the environment."""

LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})


def http_address(value: str) -> str:
    """Return an address with http or https and without credentials. Raises ValueError."""
    try:
        parts = urlsplit(value)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("an address that begins with http:// or https://")
    if "@" in parts.netloc:
        # The address is shown when the endpoint fails, and a password would be shown with it.
        raise ValueError("an address without a name or password; a key goes to …__API_KEY")
    return value


def https_address(value: str) -> str:
    """Return an address with https, or with http on this machine. Raises ValueError."""
    parts = urlsplit(http_address(value))
    if parts.scheme == "http" and parts.hostname not in LOOPBACK_HOSTS:
        raise ValueError("an address that begins with https://")
    return value


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    @field_validator("api_base", "endpoint", check_fields=False)
    @classmethod
    def _is_http_address(cls, value: str | None) -> str | None:
        return value if value is None else http_address(value)
