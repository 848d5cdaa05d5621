"""Metrics for Prometheus: the counters of all processes, and gauges read from the database.

When the database does not answer, its gauges are left out and `portal_database_up` is 0.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from importlib.metadata import version
from threading import Condition, Lock
from typing import NamedTuple

from cachetools import TLRUCache, TTLCache, cached
from prometheus_client import CollectorRegistry, Metric
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from portal.errors import DatabaseUnavailable
from portal.observability import metric_files
from portal.services import Services
from portal.services.operations import health
from portal.store.operations import health as health_store
from portal.store.operations.health import QueueMetrics

# A worker without a heartbeat for this long counts as dead.
_SILENT_AFTER_S = 20.0
_TIMEOUT_S = 0.5
# The state of the index takes a scan of all chunks, and changes slowly.
_INDEX_FOR_S = 30.0


def exposition(services: Services, accept: str) -> tuple[bytes, str]:
    """Return the metrics and their media type, in the format that `accept` prefers. Computed once
    for concurrent requests and reused for `metrics.cached_s` seconds: merging the files of all
    processes and counting in the database is slow."""
    encode, media_type = choose_encoder(accept)
    kind = _Format(services.database.url, media_type, services.settings.metrics.cached_s)
    return _encoded(services, encode, kind), media_type


class _Format(NamedTuple):
    """The key that an exposition is cached under."""

    database_url: str
    media_type: str
    kept_s: float


@cached(
    TLRUCache(maxsize=8, ttu=lambda kind, _answer, now: now + kind.kept_s),
    key=lambda _services, _encode, kind: kind,
    condition=Condition(),
)
def _encoded(
    services: Services, encode: Callable[[CollectorRegistry], bytes], _kind: _Format
) -> bytes:
    registry = CollectorRegistry()
    registry.register(metric_files.collector())
    registry.register(_Database(services))
    return encode(registry)


class _Database(Collector):
    def __init__(self, services: Services) -> None:
        self._services = services

    def describe(self) -> Iterable[Metric]:
        return ()  # Otherwise the registry collects once to learn the names.

    def collect(self) -> Iterator[Metric]:
        return of_database(self._services)


def of_database(services: Services) -> Iterator[Metric]:
    """Yield the gauges that are read from the database at each scrape."""
    yield _build_info()
    try:
        queue, rehearsal = services.database.probe(
            lambda session: (
                health_store.read_queue(session, silent_after_s=_SILENT_AFTER_S),
                health_store.read_rehearsal(session),
            ),
            timeout_s=_TIMEOUT_S,
        )
    except DatabaseUnavailable:
        yield _gauge("portal_database_up", _UP, 0)
        return
    yield _gauge("portal_database_up", _UP, 1)
    yield from _queue_metrics(queue)
    yield from _rehearsal_metrics(rehearsal)
    yield from _index_metrics(services)


_UP = "Whether the database answers in time; without it the gauges of queue and index are left out"


def _build_info() -> Metric:
    """Return the versions of the portal and of Python."""
    return InfoMetricFamily(
        "portal_build",
        "Version of the portal and of Python",
        value={"version": version("knowledge-portal"), "python": platform.python_version()},
    )


def _queue_metrics(queue: QueueMetrics) -> Iterator[Metric]:
    jobs = GaugeMetricFamily("portal_queue_jobs", "Jobs in the queue", labels=("queue", "status"))
    for (name, status), count in sorted(queue.jobs.items()):
        jobs.add_metric((name, status), count)
    yield jobs
    documents = GaugeMetricFamily(
        "portal_stored_documents", "Documents outside of the trash", labels=("status",)
    )
    for status, count in sorted(queue.documents.items()):
        documents.add_metric((status,), count)
    yield documents
    yield _gauge(
        "portal_queue_oldest_wait_seconds",
        "Wait of the oldest upload that no worker has begun to read",
        queue.oldest_wait_s,
    )
    yield _gauge("portal_queue_live_workers", "Workers with a recent heartbeat", queue.live_workers)


def _rehearsal_metrics(rehearsal: Mapping[str, str] | None) -> Iterator[Metric]:
    """Yield metrics of the last rehearsed restore, without a value before the first."""
    success = GaugeMetricFamily(
        "portal_rehearsal_success", "Whether the last rehearsed restore succeeded", labels=()
    )
    time = GaugeMetricFamily(
        "portal_rehearsal_timestamp_seconds", "Time of the last rehearsed restore", labels=()
    )
    if rehearsal is not None:
        success.add_metric((), int(rehearsal["status"] == "ok"))
        time.add_metric((), datetime.fromisoformat(rehearsal["at"]).timestamp())
    yield from (success, time)


@cached(
    TTLCache(maxsize=8, ttl=_INDEX_FOR_S), key=lambda services: services.database.url, lock=Lock()
)
def _index_metrics(services: Services) -> tuple[Metric, ...]:
    state = health.check_vector_store(services)
    if state["status"] == "unavailable":
        return ()
    keyword = GaugeMetricFamily(
        "portal_keyword_index_ready",
        "Whether hybrid search uses words, and what ranks them",
        labels=("backend",),
    )
    keyword.add_metric((state["keyword_backend"],), int(state["hybrid"]))
    vector = _gauge(
        "portal_vector_index_ready",
        "Whether the serving model's vectors have their index",
        int(state["vector_index"] != "missing"),
    )
    counts = state["counts"]
    if counts is None:
        return (keyword, vector)
    chunks = _gauge("portal_index_chunks", "Chunks of documents", counts["chunks"])
    missing = _gauge(
        "portal_index_missing_embeddings",
        "Chunks without a vector of the serving model",
        counts["missing_embeddings"],
    )
    return (keyword, vector, chunks, missing)


def _gauge(name: str, help_text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, help_text, value=value)
