"""Metrics of several processes: gunicorn's workers and the queue's, also after they are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

from bench.cluster.programs import free_port
from tests.conftest import PASSWORD, Portal
from tests.factories.servers.endpoint import wait

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ROOT = Path(__file__).resolve().parents[4]
REQUESTS = "portal_http_request_duration_seconds_count"
Series = dict[tuple[str, tuple[tuple[str, str], ...]], float]


class Web:
    """A running `gunicorn wsgi:app -w 2`."""

    def __init__(self, process: psutil.Process, port: int) -> None:
        self.process = process
        # A new connection for each request, so that either worker may answer.
        limits = httpx.Limits(max_keepalive_connections=0)
        base_url = f"http://127.0.0.1:{port}"
        self.client = httpx.Client(base_url=base_url, timeout=30, limits=limits)

    def is_up(self) -> bool:
        try:
            return self.client.get("/health/live").status_code == 200
        except httpx.TransportError:
            return False

    def workers(self) -> set[int]:
        return {child.pid for child in self.process.children()}

    def scrape(self) -> Series:
        return {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in text_string_to_metric_families(self.client.get("/metrics").text)
            for sample in family.samples
        }


def total(series: Series, name: str, **labels: str) -> float:
    return sum(
        value
        for (found, pairs), value in series.items()
        if found == name and labels.items() <= dict(pairs).items()
    )


def counters(series: Series) -> Series:
    kinds = ("_total", "_count", "_sum", "_bucket")
    return {key: value for key, value in series.items() if key[0].endswith(kinds)}


def environment(portal: Portal) -> dict[str, str]:
    settings = portal.services.settings
    return os.environ | {
        "DATABASE_URL": str(settings.database_url),
        "PORTAL_DATA_DIR": str(settings.data_dir),
        "PORTAL_EMBEDDING__PROVIDER": "hashing",
        "PORTAL_SECRET_KEY": "a key for tests that is long enough for HS256",
        "PORTAL_ADMIN_PASSWORD": PASSWORD,
        "PORTAL_DATABASE_POOL_SIZE": "5",
        "PORTAL_RATE_LIMITS__ENABLED": "false",
        "PORTAL_METRICS_PUBLIC": "true",
        "PORTAL_METRICS__CACHED_S": "0",
    }


@contextmanager
def gunicorn(portal: Portal) -> Iterator[Web]:
    port = free_port()
    command = [sys.executable, "-m", "gunicorn", "wsgi:app", "-w", "2", "--threads", "4"]
    command += ["--bind", f"127.0.0.1:{port}", "--no-control-socket", "--log-level", "warning"]
    with subprocess.Popen(command, cwd=ROOT, env=environment(portal)) as process:
        try:
            web = Web(psutil.Process(process.pid), port)
            with web.client:
                wait(web.is_up, 90, "gunicorn did not start")
                yield web
        finally:
            process.terminate()
            process.wait(30)


def test_counts_of_web_and_queue_workers_add_up_and_outlive_them(portal: Portal) -> None:
    portal.add("the lighthouse of Alexandria")
    headers = portal.headers()

    def ask(number: int) -> int:
        if number % 3 == 0:
            return web.client.get("/api/knowledge/documents", headers=headers).status_code
        if number % 3 == 1:
            return web.client.get(f"/nowhere/{number}", headers=headers).status_code
        body = {"query": f"lighthouse {number}", "mode": "keyword"}
        return web.client.post("/api/knowledge/search", json=body, headers=headers).status_code

    with gunicorn(portal) as web:
        wait(lambda: len(web.workers()) == 2, 30, "there are not two workers")
        before = web.scrape()
        with ThreadPoolExecutor(4) as pool:
            statuses = list(pool.map(ask, range(300)))
        assert [statuses.count(status) for status in (200, 404)] == [200, 100]
        after = web.scrape()

        def grew(name: str, **labels: str) -> float:
            return total(after, name, **labels) - total(before, name, **labels)

        assert grew(REQUESTS, endpoint="knowledge.list_documents", status="200") == 100
        assert grew(REQUESTS, endpoint="knowledge.search", status="200") == 100
        assert grew(REQUESTS, endpoint="unmatched", status="404") == 100
        assert grew("portal_search_duration_seconds_count", method="keyword") == 100
        # The scrape itself is the only request in flight.
        assert total(after, "portal_http_in_flight_requests") == 1
        files = Path(portal.services.settings.data_dir, "metrics").glob("histogram_*.db")
        counting = [path for path in files if b"knowledge.search" in path.read_bytes()]
        assert len(counting) == 2, "one worker answered everything"

        for _ in range(2):
            after = killed(web, after)
        assert total(after, REQUESTS, endpoint="knowledge.search") == 100

    # All processes have ended, so a new start begins at zero.
    with gunicorn(portal) as web:
        assert total(web.scrape(), REQUESTS, endpoint="knowledge.search") == 0
        _includes_the_queue_worker(portal, web)


def killed(web: Web, before: Series) -> Series:
    """Kill a worker and return the metrics once it is replaced; check that no counter decreased."""
    victim = min(web.workers())
    os.kill(victim, signal.SIGKILL)
    last = before

    def is_whole() -> bool:
        nonlocal last
        try:
            now = web.scrape()
        except httpx.TransportError:  # The killed worker's connections are closed.
            return False
        gone_back = {key for key, value in counters(last).items() if now.get(key, 0.0) < value}
        assert not gone_back
        assert total(now, "portal_http_in_flight_requests") == 1
        last = now
        return victim not in web.workers() and len(web.workers()) == 2 and is_counting(web)

    wait(is_whole, 60, "the worker was not replaced")
    return last


def is_counting(web: Web) -> bool:
    """Return whether every worker has answered a request."""
    data_dir = web.process.environ()["PORTAL_DATA_DIR"]
    names = {path.name.split("-")[0] for path in Path(data_dir, "metrics").glob("*.alive")}
    return {str(pid) for pid in web.workers()} <= names


def _includes_the_queue_worker(portal: Portal, web: Web) -> None:
    name, done = "portal_job_duration_seconds_count", {"task": "index_document", "outcome": "ok"}
    program = str(Path(sys.executable).with_name("portal"))
    with subprocess.Popen([program, "worker"], cwd=ROOT, env=environment(portal)) as worker:
        try:
            files = {"file": ("note.txt", b"a note", "text/plain")}
            web.client.post("/api/knowledge/documents", files=files, headers=portal.headers())
            # The other job is that of the document, which this process indexed.
            wait(lambda: total(web.scrape(), name, **done) == 2, 60, "a job was not counted")
            # One process works on three queues: small files, other files, slow files.
            assert total(web.scrape(), "portal_queue_live_workers") == 3
        finally:
            worker.terminate()
            worker.wait(30)
    # The worker's counts outlive it.
    assert total(web.scrape(), name, **done) == 2
