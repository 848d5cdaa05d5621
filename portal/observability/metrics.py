"""All metrics of the portal, defined in this module only. Timed work is also a span.

Callers use the functions here; only this module uses Prometheus. Every metric has labels, and
every label has few values: the name of an endpoint, never an address; a code, never a message.
No label contains a query, a question or the text of a document.

If several processes serve, `portal.observability.metric_files` adds up their counts.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

from portal.observability import tracing

REGISTRY = CollectorRegistry()
disable_created_metrics()  # They double the number of series.

# The targets of the portal are among them: 0.15 s for a search, 2 s for a model, 3 s for an answer.
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 1, 2, 3, 5, 10, 30)
_HITS = (0, 1, 2, 5, 10, 20, 50, 100)

OK, ERROR, CANCELLED = "ok", "error", "cancelled"
# All methods that a client invents count as one.
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
UNMATCHED = "unmatched"
"""The endpoint of unknown addresses."""


def _counter(name: str, help_text: str, *labels: str) -> Counter:
    return Counter(name, help_text, labels, registry=REGISTRY)


def _histogram(
    name: str, help_text: str, *labels: str, buckets: Sequence[float] = _SECONDS
) -> Histogram:
    return Histogram(name, help_text, labels, buckets=buckets, registry=REGISTRY)


def _gauge(name: str, help_text: str, *labels: str) -> Gauge:
    # What dead processes had in flight must not count.
    return Gauge(name, help_text, labels, registry=REGISTRY, multiprocess_mode="livesum")


_REQUEST_SECONDS = _histogram(
    "portal_http_request_duration_seconds",
    "Time from a request's arrival until its answer begins",
    *("method", "endpoint", "status"),
)
_IN_FLIGHT = _gauge(
    "portal_http_in_flight_requests",
    "Requests that are being answered, streams among them until they end",
    "method",
)
_RATE_LIMITED = _counter(
    "portal_http_rate_limited_requests_total", "Requests refused with 429", "endpoint"
)
_ERRORS = _counter("portal_errors_total", "Errors shown to users and programs", "code", "surface")
_SEARCH_SECONDS = _histogram(
    "portal_search_duration_seconds",
    "Time of a search, including the embedding of the query and cached results",
    *("method", "outcome"),
)
_SEARCH_HITS = _histogram(
    "portal_search_result_hits", "Results of a search", "method", buckets=_HITS
)
_SEARCH_DEGRADED = _counter(
    "portal_search_degraded_total", "Searches without one of their parts", "reason"
)
_EMBEDDING_SECONDS = _histogram(
    "portal_embedding_duration_seconds",
    "Time of a call of an embedding model; retries are one call",
    *("provider", "input", "outcome"),
)
_EMBEDDED_TEXTS = _counter(
    "portal_embedded_texts_total", "Texts that an embedding model was given", "provider", "input"
)
_CHAT_FIRST_TOKEN_SECONDS = _histogram(
    "portal_chat_first_token_duration_seconds", "Time until a chat model's first word", "provider"
)
_CHAT_SECONDS = _histogram(
    "portal_chat_duration_seconds",
    "Time of a call of a chat model, from the prompt to the last word",
    *("provider", "outcome"),
)
_RERANK_SECONDS = _histogram(
    "portal_rerank_duration_seconds", "Time of a call of a re-ranking model", "outcome"
)
_CACHE_REQUESTS = _counter(
    "portal_cache_requests_total", "Cache lookups by result", "cache", "result"
)
_DEPENDENCY_FAILURES = _counter(
    "portal_dependency_failures_total", "Calls of another server that failed", "dependency"
)
_JOB_SECONDS = _histogram(
    "portal_job_duration_seconds",
    "Time of a job of the queue in the worker",
    *("task", "outcome"),
    buckets=(0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800),
)
_POOL = _gauge("portal_database_pool_in_use_connections", "Database connections in use", "pool")


# --- requests ------------------------------------------------------------------------------------


def request_began(method: str) -> None:
    _IN_FLIGHT.labels(known_method(method)).inc()


def request_answered(method: str, endpoint: str, status: int, seconds: float) -> None:
    """Count and time a request. `endpoint` is the name of the rule that matched, or UNMATCHED."""
    _REQUEST_SECONDS.labels(known_method(method), endpoint, str(status)).observe(seconds)
    if status == 429:  # noqa: PLR2004 - Too Many Requests
        _RATE_LIMITED.labels(endpoint).inc()


def request_ended(method: str) -> None:
    _IN_FLIGHT.labels(known_method(method)).dec()


def count_error(code: str, surface: str) -> None:
    """Count an error. `code` is that of a PortalError, `surface` is `page`, `api` or `job`."""
    _ERRORS.labels(code, surface).inc()


def known_method(method: str) -> str:
    """Return the HTTP method; `other` for one that a client invents."""
    return method if method in _METHODS else "other"


# --- searches ------------------------------------------------------------------------------------


@contextmanager
def searching(method: str) -> Iterator[None]:
    """Time a search. `method` is hybrid, vector or keyword, as requested."""
    with tracing.span("search", mode=method), _timing(_SEARCH_SECONDS, method):
        yield


def search_found(method: str, hits: int, degraded: Iterable[str]) -> None:
    """Count a search. `method` is what ran; `degraded` has codes for what was left out."""
    _SEARCH_HITS.labels(method).observe(hits)
    for reason in degraded:
        _SEARCH_DEGRADED.labels(reason).inc()


def cache_asked(cache: str, *, hit: bool) -> None:
    """Count a lookup. `cache` is one of few names, such as `search_results` or
    `query_embeddings`."""
    _CACHE_REQUESTS.labels(cache, "hit" if hit else "miss").inc()


def dependency_failed(dependency: str) -> None:
    """Count a call to another server, such as `redis`, that failed or was late."""
    _DEPENDENCY_FAILURES.labels(dependency).inc()


# --- models --------------------------------------------------------------------------------------


@contextmanager
def embedding(provider: str, *, texts: int, is_query: bool) -> Iterator[None]:
    """Time one call of an embedding model."""
    kind = "query" if is_query else "passages"
    _EMBEDDED_TEXTS.labels(provider, kind).inc(texts)
    span = tracing.span("embedding", provider=provider, input=kind, texts=texts)
    with span, _timing(_EMBEDDING_SECONDS, provider, kind):
        yield


@contextmanager
def reranking() -> Iterator[None]:
    """Time one call of a re-ranking model."""
    with tracing.span("reranking"), _timing(_RERANK_SECONDS):
        yield


def chat_began(provider: str, seconds: float) -> None:
    """Record the seconds from the prompt to the first word."""
    _CHAT_FIRST_TOKEN_SECONDS.labels(provider).observe(seconds)


def chat_ended(provider: str, outcome: str, seconds: float) -> None:
    """Count an answer. `outcome` is `ok`, `error`, or `cancelled` when the reader left."""
    _CHAT_SECONDS.labels(provider, outcome).observe(seconds)
    tracing.record_passed("chat", seconds, provider=provider, outcome=outcome)


# --- jobs and connections ------------------------------------------------------------------------


@contextmanager
def working(task: str) -> Iterator[None]:
    """Time one job of the queue."""
    with _timing(_JOB_SECONDS, task):
        yield


def connection_taken(count: int) -> None:
    """Add to the number of database connections in use; a negative `count` subtracts."""
    _POOL.labels("sessions").inc(count)


@contextmanager
def _timing(histogram: Histogram, *labels: str) -> Iterator[None]:
    started, outcome = time.perf_counter(), ERROR
    try:
        yield
        outcome = OK
    finally:
        histogram.labels(*labels, outcome).observe(time.perf_counter() - started)
