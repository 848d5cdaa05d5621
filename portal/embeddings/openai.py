"""Any server that speaks OpenAI's embeddings protocol."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import Any

import httpx

from portal.domain.embedding import Vector
from portal.embeddings.breaker import CircuitBreaker
from portal.embeddings.validation import validated
from portal.errors import EmbedderUnavailable, InvalidEmbedding
from portal.text.normalise import clean

DEFAULT_MODEL = "text-embedding-3-small"
DEFAULT_API_BASE = "https://api.openai.com/v1"
KNOWN_DIMENSIONS = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}

_BATCH = 64
_PASSAGES_TIMEOUT_S = 60.0
_MOST_ATTEMPTS = 5
_LONGEST_WAIT_S = 30.0
_RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
# About 8,000 tokens, the protocol's usual limit, of the densest script.
_MAX_CHARACTERS = 6000


class OpenAIEmbedder:
    """Vectors over HTTP. Questions get one attempt within `timeout_s` and an answer at once while
    the endpoint is known to be down; passages are retried with growing pauses.
    """

    def __init__(
        self,
        *,
        model: str | None = None,
        dimensions: int | None = None,
        api_base: str | None = None,
        api_key: str | None = None,
        timeout_s: float = 2.0,
        breaker: CircuitBreaker | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._model = model or DEFAULT_MODEL
        self._asked_dimensions = dimensions
        self._dimensions = dimensions or KNOWN_DIMENSIONS.get(self._model)
        self._timeout_s = timeout_s
        self._breaker = breaker or CircuitBreaker()
        self._sleep = sleep
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._http = httpx.Client(
            base_url=(api_base or DEFAULT_API_BASE).rstrip("/") + "/", headers=headers
        )

    @property
    def name(self) -> str:
        # The same model cut to fewer dimensions gives other vectors.
        return f"{self._model}@{self._asked_dimensions}" if self._asked_dimensions else self._model

    @property
    def dimensions(self) -> int:
        """Known from the settings or the model; else the endpoint is asked once."""
        if self._dimensions is None:
            self._dimensions = len(self._request(["dimensions"], _PASSAGES_TIMEOUT_S)[0])
        return self._dimensions

    def embed_query(self, text: str) -> Vector:
        remaining_s = self._breaker.remaining_s()
        if remaining_s > 0:
            raise EmbedderUnavailable(
                reason=f"its endpoint failed repeatedly and is left alone for {remaining_s:.0f} "
                "more seconds"
            )
        try:
            vectors = self._request([_capped(text)], self._timeout_s)
        except EmbedderUnavailable:
            self._breaker.failed()
            raise
        self._breaker.succeeded()
        vector: Vector = self._checked(vectors, 1)[0]
        return vector

    def embed_passages(self, texts: Sequence[str]) -> Vector:
        vectors: list[Any] = []
        for start in range(0, len(texts), _BATCH):
            batch = [_capped(text) for text in texts[start : start + _BATCH]]
            vectors += self._patiently(batch)
        return self._checked(vectors, len(texts))

    def _checked(self, vectors: list[Any], count: int) -> Vector:
        dimensions = self._dimensions or (len(vectors[0]) if vectors else 0)
        try:
            checked = validated(vectors, dimensions=dimensions, count=count)
        except InvalidEmbedding as error:
            # A wrong length is a wrong setting: say which.
            raise InvalidEmbedding(reason=f"“{self._model}”: {error.params['reason']}") from error
        self._dimensions = dimensions
        return checked

    def _patiently(self, texts: list[str]) -> list[Any]:
        for attempt in range(1, _MOST_ATTEMPTS + 1):
            try:
                return self._request(texts, _PASSAGES_TIMEOUT_S)
            except _WorthRetrying as error:
                if attempt == _MOST_ATTEMPTS:
                    raise
                pause_s = error.pause_s or min(_LONGEST_WAIT_S, 2.0 ** (attempt - 1))
                # Jitter keeps several workers from coming back all at once.
                self._sleep(min(_LONGEST_WAIT_S, pause_s) * random.uniform(1.0, 1.25))  # noqa: S311
        raise AssertionError("the last attempt returns or raises")

    def _request(self, texts: list[str], timeout_s: float) -> list[Any]:
        body: dict[str, Any] = {"model": self._model, "input": texts, "encoding_format": "float"}
        if self._asked_dimensions is not None:
            body["dimensions"] = self._asked_dimensions
        try:
            response = _within(timeout_s, self._http, body)
        except httpx.TimeoutException as error:
            raise _WorthRetrying(f"its endpoint took more than {timeout_s:g} seconds") from error
        except httpx.HTTPError as error:
            raise _WorthRetrying(
                f"its endpoint {self._http.base_url} cannot be reached ({error}). Check "
                "PORTAL_EMBEDDING__API_BASE"
            ) from error
        if response.status_code in _RETRIED:
            pause = response.headers.get("retry-after", "")
            raise _WorthRetrying(
                f"its endpoint answered {response.status_code}",
                pause_s=float(pause) if pause.isdecimal() else 0.0,
            )
        if not response.is_success:
            raise EmbedderUnavailable(
                reason=f"its endpoint answered {response.status_code}: {response.text[:200]}. "
                "Check PORTAL_EMBEDDING__MODEL, __API_KEY and __API_BASE"
            )
        return _vectors(response, len(texts))

    def close(self) -> None:
        self._http.close()


class _WorthRetrying(EmbedderUnavailable):
    """A failure that may be over in a moment."""

    def __init__(self, reason: str, *, pause_s: float = 0.0) -> None:
        super().__init__(reason=reason)
        self.pause_s = pause_s


def _capped(text: str) -> str:
    # The protocol refuses empty input.
    return clean(text[:_MAX_CHARACTERS])[:_MAX_CHARACTERS] or " "


def _within(timeout_s: float, http: httpx.Client, body: dict[str, Any]) -> httpx.Response:
    """The response, read whole within `timeout_s` in all: httpx counts each read anew, so that
    an endpoint that trickles could hold a search for minutes."""
    deadline = time.monotonic() + timeout_s
    request = http.build_request("POST", "embeddings", json=body, timeout=timeout_s)
    response = http.send(request, stream=True)
    try:
        parts = []
        for part in response.iter_bytes():
            parts.append(part)
            if time.monotonic() > deadline:
                raise httpx.ReadTimeout("the answer came too slowly", request=request)
    finally:
        response.close()
    return httpx.Response(
        response.status_code,
        headers={k: v for k, v in response.headers.items() if k.lower() != "content-encoding"},
        content=b"".join(parts),
        request=request,
    )


def _vectors(response: httpx.Response, count: int) -> list[Any]:
    try:
        rows = sorted(response.json()["data"], key=lambda row: row.get("index", 0))
        vectors = [row["embedding"] for row in rows]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidEmbedding(
            reason="the endpoint's answer is not what OpenAI's protocol says"
        ) from error
    if len(vectors) != count:
        raise InvalidEmbedding(reason=f"asked for {count} vectors, got {len(vectors)}")
    return vectors
