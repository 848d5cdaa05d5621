"""Settings of the web server and of rate limits."""

from __future__ import annotations

from typing import Any

from pydantic import Field, ValidationInfo, field_validator

from portal.settings.base import Section

_MAX_SIGN_INS_PER_SECOND = 2


def _rates(limits: str) -> list[float]:
    """Return how many times per second each of these limits allows on average."""
    # Importing it takes as long as the rest of a command's start, and few installations set limits.
    from limits import parse_many

    try:
        found = parse_many(limits)
    except ValueError:
        found = []
    if not found or not all(limit.amount for limit in found):
        raise ValueError("limits such as “30 per minute” or “10 per minute; 100 per hour”")
    return [limit.amount / limit.get_expiry() for limit in found]


class WebSettings(Section):
    """The max load of a web process; requests beyond it get 503 and Retry-After."""

    requests_at_once: int = Field(16, ge=1, le=1000, description="requests that run at once")
    requests_waiting: int = Field(
        64, ge=0, le=1000, description="requests that may wait; more get 503"
    )
    patience_s: float = Field(
        3.0,
        ge=0,
        le=60,
        description="how long a request may wait, then 503; sign-ins wait three times as long",
    )
    header_timeout_s: float = Field(
        10.0, gt=0, le=300, description="time limit for receiving a request's headers"
    )
    client_patience_s: float = Field(
        20.0,
        gt=0,
        le=600,
        description="grace period for a client that is slow to send a body or read a response",
    )
    min_rate_kb_s: float = Field(
        8.0, gt=0, le=10_000, description="minimum rate after the grace period, in kB per second"
    )
    connections_per_address: int = Field(
        200,
        ge=0,
        le=100_000,
        description="connections from one address; at the limit, idle ones are closed for new "
        "ones. 0: no limit. Has no effect with PORTAL_TRUSTED_PROXIES",
    )
    bodies_per_user: int = Field(
        8,
        ge=1,
        le=1000,
        description="long request bodies that a user may send at once; more get 429",
    )
    bodies_per_address: int = Field(
        32,
        ge=1,
        le=1000,
        description="long request bodies that an address may send at once; more get 429",
    )


def _burst(default: int) -> Any:
    return Field(
        default,
        ge=0,
        le=1000,
        description="maximum of these running at once; more get 429. 0: no limit",
    )


class RateLimitSettings(Section):
    """How many requests a user may make."""

    enabled: bool = Field(True, description="false: no limits except those of sign-in")
    sign_in: str = Field(
        "10 per minute", description="failed attempts from one address with one name"
    )
    sign_in_address: str = Field("60 per minute", description="failed attempts from one address")
    sign_in_name: str = Field(
        "100 per hour", description="failed attempts with one name, from new browsers"
    )
    sign_in_confirmation: str = Field(
        "5 per 15 minutes; 20 per day",
        description="wrong passwords while a session confirms its password",
    )
    sign_in_registration: str = Field(
        "20 per hour",
        description="attempts to create an account from one address, with "
        "`PORTAL_REGISTRATION=open`",
    )
    default: str = Field("600 per minute", description="all other endpoints")
    default_burst: int = _burst(0)
    pages: str = Field("3000 per minute", description="pages of documents and their images")
    pages_burst: int = _burst(0)
    search_semantic: str = Field("30 per minute", description="POST /api/v1/search/semantic")
    search_semantic_burst: int = _burst(5)
    search_text: str = Field("60 per minute", description="POST /api/v1/search/text")
    search_text_burst: int = _burst(10)
    search_hybrid: str = Field(
        "20 per minute", description="POST /api/v1/search/hybrid; `search` via MCP"
    )
    search_hybrid_burst: int = _burst(3)
    search_similar: str = Field("40 per minute", description="GET /api/v1/search/similar")
    search_similar_burst: int = _burst(5)
    search_batch: str = Field("10 per minute", description="POST /api/v1/search/batch")
    search_batch_burst: int = _burst(0)
    list_chunks: str = Field("100 per minute", description="GET /api/v1/jobs/{id}/chunks")
    list_chunks_burst: int = _burst(10)
    get_chunk: str = Field(
        "200 per minute", description="GET /api/v1/jobs/{id}/chunks/{id}; `fetch` via MCP"
    )
    get_chunk_burst: int = _burst(20)

    @field_validator("*")
    @classmethod
    def _is_limit(cls, value: str | int, info: ValidationInfo) -> str | int:
        if isinstance(value, str):
            rates = _rates(value)
            is_sign_in = str(info.field_name).startswith("sign_in")
            if is_sign_in and min(rates) > _MAX_SIGN_INS_PER_SECOND:
                raise ValueError(
                    f"at most {_MAX_SIGN_INS_PER_SECOND} attempts a second: sign-in is never free"
                )
        return value
