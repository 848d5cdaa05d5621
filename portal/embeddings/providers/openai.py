"""Embedding models on any server with OpenAI's embeddings protocol."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

import httpx
import numpy as np

from portal.domain.embedding import Vector
from portal.domain.openai_protocol import (
    DEFAULT_API_BASE,
    RETRIED_STATUSES,
    authorization,
    retry_after_s,
)
from portal.embeddings.providers.breaker import CircuitBreaker
from portal.embeddings.providers.endpoint import Answer, AnswerTooLarge, Endpoint
from portal.embeddings.providers.prefixes import prefixed, prefixes
from portal.embeddings.validation import validated
from portal.errors import N_, EmbedderUnavailable, InvalidEmbedding, Message
from portal.text.server_errors import MAX_READ_LENGTH, shown_error, strip_echo

DEFAULT_MODEL = "text-embedding-3-small"
KNOWN_DIMENSIONS = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}

_BATCH = 64
_CHUNKS_TIMEOUT_S = 60.0
_MAX_WAIT_S = 30.0
# 16,000 numbers as JSON are about 350 kB; the rest of an answer is small.
_MAX_BYTES = 256 * 1024
_MAX_BYTES_PER_TEXT = 512 * 1024


class OpenAIEmbedder:
    """Vectors over HTTP.

    A query gets one attempt within `timeout_s` in total, and fails at once while the endpoint is
    known to be down; chunks are retried with growing delays.
    """

    def __init__(
        self,
        *,
        model: str | None = None,
        dimensions: int | None = None,
        api_base: str | None = None,
        api_key: str | None = None,
        query_prefix: str | None = None,
        timeout_s: float = 2.0,
        max_retries: int = 3,
        breaker: CircuitBreaker | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._model = model or DEFAULT_MODEL
        self._asked_dimensions = dimensions
        self._dimensions = dimensions or KNOWN_DIMENSIONS.get(self._model)
        self._question, self._chunk = prefixes(self._model, question=query_prefix)
        self._timeout_s = timeout_s
        self._max_retries = max_retries
        self._breaker = breaker or CircuitBreaker()
        self._sleep = sleep
        self._failure: Message | None = None
        self._key = (api_key or "").strip()
        self._endpoint = Endpoint(api_base or DEFAULT_API_BASE, headers=authorization(self._key))

    @property
    def name(self) -> str:
        # The same model cut to fewer dimensions gives other vectors.
        return f"{self._model}@{self._asked_dimensions}" if self._asked_dimensions else self._model

    @property
    def dimensions(self) -> int:
        """Return the dimensions; if they are not known yet, embed a query to find out.

        Raises EmbedderUnavailable, InvalidEmbedding.
        """
        return self._dimensions or len(self.embed_query("?"))

    def fix_length(self, dimensions: int) -> None:
        """Require this length instead of that of earlier answers.

        It is not sent in requests: many endpoints reject the parameter.
        """
        self._dimensions = dimensions

    def embed_query(self, text: str) -> Vector:
        remaining_s = self._breaker.remaining_s()
        if remaining_s > 0:
            raise EmbedderUnavailable(
                "its endpoint failed repeatedly and is paused for %(seconds)s more seconds; "
                "last error: %(reason)s",
                seconds=f"{remaining_s:.0f}",
                reason=self._failure,
            )
        try:
            vectors = self._request([prefixed(self._question, text)], self._timeout_s)
            vector: Vector = self._check(vectors, 1)[0]
        except (EmbedderUnavailable, InvalidEmbedding) as error:
            # Calls during the pause fail with this reason.
            self._failure = error.reason
            self._breaker.failed()
            raise
        self._breaker.succeeded()
        return vector

    def embed_chunks(self, texts: Sequence[str]) -> Vector:
        if not texts:
            return np.empty((0, self._dimensions or 0), dtype=np.float32)
        vectors: list[Any] = []
        for start in range(0, len(texts), _BATCH):
            batch = [prefixed(self._chunk, text) for text in texts[start : start + _BATCH]]
            vectors += self._request_with_retries(batch)
        return self._check(vectors, len(texts))

    def close(self) -> None:
        """Close the connections to the endpoint."""
        self._endpoint.close()

    def _check(self, vectors: list[Any], count: int) -> Vector:
        dimensions = self._dimensions or _length(vectors[0])
        try:
            checked = validated(vectors, dimensions=dimensions, count=count)
        except InvalidEmbedding as error:
            # A wrong length means a wrong setting, so the message names the model.
            reason = N_("“%(name)s”: %(reason)s", name=self._model, reason=error.reason)
            raise InvalidEmbedding(reason) from error
        self._dimensions = dimensions
        return checked

    def _request_with_retries(self, texts: list[str]) -> list[Any]:
        for attempt in range(self._max_retries + 1):
            try:
                return self._request(texts, _CHUNKS_TIMEOUT_S)
            except _RetryableError as error:
                if attempt == self._max_retries:
                    raise
                pause_s = error.pause_s or min(_MAX_WAIT_S, 2.0**attempt)
                # Jitter keeps several workers from coming back all at once.
                self._sleep(min(_MAX_WAIT_S, pause_s) * random.uniform(1.0, 1.25))  # noqa: S311
        raise AssertionError("the last attempt returns or raises")

    def _request(self, texts: list[str], timeout_s: float) -> list[Any]:
        # The protocol rejects empty input.
        body: dict[str, Any] = {
            "model": self._model,
            "input": [text or " " for text in texts],
            "encoding_format": "float",
        }
        if self._asked_dimensions is not None:
            body["dimensions"] = self._asked_dimensions
        answer = self._ask(body, timeout_s, _MAX_BYTES + len(texts) * _MAX_BYTES_PER_TEXT)
        self._require_success(answer, texts)
        return _vectors(answer, len(texts))

    def _ask(self, body: dict[str, Any], timeout_s: float, max_bytes: int) -> Answer:
        address = self._endpoint.base_url
        try:
            return self._endpoint.post("embeddings", body, timeout_s=timeout_s, max_bytes=max_bytes)
        except TimeoutError as error:
            raise _RetryableError(
                N_(
                    "its endpoint did not answer within %(seconds)s seconds",
                    seconds=f"{timeout_s:g}",
                )
            ) from error
        except AnswerTooLarge as error:
            raise InvalidEmbedding(
                "the endpoint answered with more than %(limit)s kB", limit=max_bytes // 1024
            ) from error
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise EmbedderUnavailable(
                "“%(address)s” is not a valid endpoint address. Set "
                "PORTAL_EMBEDDING__API_BASE to one that begins with http:// or https://",
                address=address,
            ) from error
        except httpx.HTTPError as error:
            raise _RetryableError(
                N_(
                    "its endpoint %(address)s cannot be reached (%(error)s). Check "
                    "PORTAL_EMBEDDING__API_BASE",
                    address=str(httpx.URL(address)),
                    error=strip_echo(str(error), body["input"]),
                )
            ) from error

    def _require_success(self, answer: Answer, texts: list[str]) -> None:
        if answer.status in RETRIED_STATUSES:
            raise _RetryableError(
                N_("its endpoint answered %(status)s", status=answer.status),
                pause_s=retry_after_s(answer.headers.get("retry-after", "")),
            )
        if httpx.codes.is_redirect(answer.status):
            raise EmbedderUnavailable(
                "its endpoint redirects to %(address)s, and the key is not sent after it. "
                "Set PORTAL_EMBEDDING__API_BASE to the address that answers",
                address=answer.headers.get("location", "nowhere"),
            )
        if not httpx.codes.is_success(answer.status):
            raise EmbedderUnavailable(
                "its endpoint answered %(status)s: %(said)s. Check PORTAL_EMBEDDING__MODEL, "
                "__API_KEY, __API_BASE and __DIMENSIONS",
                status=answer.status,
                said=shown_error(answer.text[:MAX_READ_LENGTH], texts, self._key),
            )


class _RetryableError(EmbedderUnavailable):
    """A failure that may be temporary."""

    def __init__(self, reason: Message, *, pause_s: float = 0.0) -> None:
        super().__init__(reason)
        self.pause_s = pause_s


def _length(vector: Any) -> int:
    return len(vector) if isinstance(vector, list) else 0


def _vectors(answer: Answer, count: int) -> list[Any]:
    """Return the vectors in the order of the input, by their `index`."""
    try:
        rows = json.loads(answer.content)["data"]
        indexes = [row.get("index", place) for place, row in enumerate(rows)]
        vectors = [row["embedding"] for row in rows]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        kind = answer.headers.get("content-type", "").split(";")[0] or "something"
        raise InvalidEmbedding(
            "the endpoint's answer (%(kind)s) is not what OpenAI's protocol says. Does "
            "PORTAL_EMBEDDING__API_BASE lead to the API, such as https://host/v1?",
            kind=kind,
        ) from error
    if len(vectors) != count:
        raise InvalidEmbedding(
            "asked for %(count)s vectors, got %(got)s", count=count, got=len(vectors)
        )
    by_index = dict(zip(map(str, indexes), vectors, strict=True))
    if by_index.keys() != {str(place) for place in range(count)}:
        raise InvalidEmbedding("the endpoint does not say which vector belongs to which text")
    return [by_index[str(place)] for place in range(count)]
