"""The portal on several machines: one cluster for all of these tests, which put faults into it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from bench.cluster import programs
from bench.cluster.machines import Cluster, Layout
from bench.cluster.nodes import wait
from tests.conftest import PASSWORD

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("cluster"),
    pytest.mark.skipif(
        bool(programs.missing()), reason=f"not installed: {' '.join(programs.missing())}"
    ),
]
_SERVER = {"fsync": "off", "full_page_writes": "off", "shared_buffers": "32MB"}
_TIMEOUT_S = 60.0
_SETTINGS = {
    "PORTAL_EMBEDDING__PROVIDER": "hashing",
    "PORTAL_RATE_LIMITS__ENABLED": "false",
    "PORTAL_ADMIN_PASSWORD": PASSWORD,
    "PORTAL_WEB__REQUESTS_AT_ONCE": "8",
}


@pytest.fixture(scope="module")
def cluster(run_dir: Path) -> Iterator[Cluster]:
    cluster = Cluster(
        run_dir / "cluster",
        Layout.of_free_ports(),
        environment=_SETTINGS,
        server_settings=_SERVER,
        workers=1,
    )
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="module")
def admin(cluster: Cluster) -> Iterator[httpx.Client]:
    client = signed_in(cluster, "admin")
    yield client
    client.close()


def signed_in(cluster: Cluster, name: str) -> httpx.Client:
    """Return a client of the proxy with a token of this user."""
    client = httpx.Client(base_url=cluster.address, timeout=30)
    answer = client.post("/api/auth/token", json={"username": name, "password": PASSWORD})
    client.headers["Authorization"] = f"Bearer {answer.json()['access_token']}"
    return client


def upload(client: httpx.Client, name: str, text: str) -> str:
    """Upload a document, and wait until it is ready."""
    answer = client.post("/api/knowledge/documents", files={"file": (name, text.encode())})
    assert answer.status_code == 202, answer.text
    document_id = str(answer.json()["documents"][0]["id"])
    path = f"/api/knowledge/documents/{document_id}"
    wait(lambda: client.get(path).json().get("status") == "ready", _TIMEOUT_S, "not ready")
    return document_id


def found(client: httpx.Client, query: str, mode: str = "hybrid") -> list[str]:
    answer = client.post("/api/knowledge/search", json={"query": query, "mode": mode})
    assert answer.status_code == 200, answer.text
    return [hit["document_id"] for hit in answer.json()["results"]]


def test_cluster_reads_and_finds_a_document_through_proxy_and_poolers(
    cluster: Cluster, admin: httpx.Client
) -> None:
    document_id = upload(admin, "lamp.txt", "The heron keeps the lighthouse lamp in the cellar.")
    for port in cluster.layout.web:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=admin.headers) as client:
            assert found(client, "lighthouse lamp") == [document_id]
    roles = sorted(state.role for state in cluster.states().values())
    assert roles == ["primary", "replica", "replica"]
