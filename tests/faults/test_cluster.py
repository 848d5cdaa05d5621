"""The portal on several machines: one cluster for all of these tests, which put faults into it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest

from bench.cluster import programs
from bench.cluster.machines import Cluster, Layout
from bench.cluster.nodes import Node, wait
from portal.container import build_services
from portal.domain.people import User
from portal.services import Services
from portal.services.people import accounts, sessions
from tests.conftest import PASSWORD, make_settings
from tests.faults.conftest import Tally
from tests.faults.people import found

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        bool(programs.missing()), reason=f"not installed: {' '.join(programs.missing())}"
    ),
]
_SERVER = {"fsync": "off", "shared_buffers": "32MB"}
_TIMEOUT_S = 180.0
# What a reader may have to try again when a server dies.
_NOTICED_WITHIN_S = 30.0
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
def services(cluster: Cluster) -> Iterator[Services]:
    """Yield services on the primary, as of a worker."""
    key = cluster.environment("test")["PORTAL_SECRET_KEY"]
    folder = cluster.folder / "test"
    services = build_services(make_settings(folder, cluster.direct_url, secret_key=key))
    yield services
    services.database.dispose()


@pytest.fixture(scope="module")
def admin(cluster: Cluster, services: Services) -> Iterator[httpx.Client]:
    with client_of(cluster, services, accounts.find_user(services, "admin")) as client:
        yield client


@contextmanager
def client_of(cluster: Cluster, services: Services, user: User) -> Iterator[httpx.Client]:
    """Yield a client of the proxy with a token of this user."""
    token = sessions.token_for(services, user, ttl_s=3600)
    headers = {"Authorization": f"Bearer {token}", "Accept-Language": "zh-CN"}
    with httpx.Client(base_url=cluster.address, headers=headers, timeout=30) as client:
        yield client


def upload(client: httpx.Client, name: str, text: str) -> str:
    """Upload a document, and wait until it is ready."""
    answer = client.post("/api/knowledge/documents", files={"file": (name, text.encode())})
    assert answer.status_code == 202, answer.text
    document_id = str(answer.json()["documents"][0]["id"])
    wait(lambda: status(client, document_id) == "ready", _TIMEOUT_S, "not ready")
    return document_id


def status(client: httpx.Client, document_id: str) -> str | None:
    found = client.get(f"/api/knowledge/documents/{document_id}").json().get("status")
    return None if found is None else str(found)


def reads_of(node: Node) -> int:
    """Return how often documents were looked up on this server."""
    query = """SELECT coalesce(sum(seq_scan + idx_scan), 0) FROM pg_stat_user_tables
               WHERE relname = 'documents'"""
    with node.connect() as connection:
        row = connection.execute(query).fetchone()
        return int(row[0]) if row else 0


@contextmanager
def replay_paused(cluster: Cluster) -> Iterator[None]:
    """Let all replicas receive what is written, and show none of it."""
    replicas = cluster.replicas
    for node in replicas:
        with node.connect() as connection:
            connection.execute("SELECT pg_wal_replay_pause()")
    for node in replicas:
        wait(lambda node=node: _is_paused(node), 10, "replay is not paused")
    try:
        yield
    finally:
        for node in replicas:
            with node.connect() as connection:
                connection.execute("SELECT pg_wal_replay_resume()")


def _is_paused(node: Node) -> bool:
    with node.connect() as connection:
        row = connection.execute("SELECT pg_get_wal_replay_pause_state()").fetchone()
    return bool(row) and row[0] == "paused"


def states(client: httpx.Client) -> list[str]:
    """Return the states of all servers, as a web process sees them."""
    return states_in(client.get("/health/vector_store").json())


def states_in(health: dict[str, Any]) -> list[str]:
    """Return the states of all servers in an answer of `/health/vector_store`."""
    # It has none while the machine is too busy for an answer in half a second.
    return [one["state"] for one in health.get("replicas", {}).get("states", [])]


def test_cluster_reads_and_finds_a_document_through_proxy_and_poolers(
    cluster: Cluster, admin: httpx.Client
) -> None:
    document_id = upload(admin, "lamp.txt", "The heron keeps the lighthouse lamp in the cellar.")
    for port in cluster.layout.web:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=admin.headers) as client:
            assert found(client, "lighthouse lamp") == [document_id]
            assert found(client, "lighthouse lamp", "keyword") == [document_id]
            assert found(client, "lighthouse lamp", "vector") == [document_id]
    roles = sorted(state.role for state in cluster.states().values())
    assert roles == ["primary", "replica", "replica"]
    # What pg_textsearch 1.0.0 knows, only the primary knows.
    health: dict[str, Any] = {}

    def all_are_read_from() -> bool:
        health.update(admin.get("/health/vector_store").json())
        return states_in(health) == ["ok"] * 3

    wait(all_are_read_from, _TIMEOUT_S, "not all servers are read from")
    assert health["replicas"]["words"] == "primary"
    assert health["hybrid"] is True


def test_replicas_are_read_from(cluster: Cluster, admin: httpx.Client) -> None:
    before = sum(map(reads_of, cluster.replicas))

    def is_read() -> bool:
        assert admin.get("/api/knowledge/documents").status_code == 200
        return sum(map(reads_of, cluster.replicas)) > before

    wait(is_read, _TIMEOUT_S, "no replica is read from")


def test_nothing_that_was_taken_away_is_seen_on_a_replica_that_lags(
    cluster: Cluster, services: Services, admin: httpx.Client
) -> None:
    """A removed member, a deleted document, a switch, a revoked token: a moment later, with both
    replicas still showing the past."""
    ada = accounts.create_user(services, name=f"ada{uuid4().hex[:6]}", password=PASSWORD)
    secret = upload(admin, "secret.txt", "The otter hides the silver compass under the bridge.")
    trashed = upload(admin, "trashed.txt", "A walrus paints the harbour wall in green.")
    folder = admin.post("/api/folders", json={"name": f"f{ada.name}", "visibility": "members"})
    folder_id = folder.json()["id"]
    members = f"/api/folders/{folder_id}/members"
    member = {"kind": "user", "name": ada.name, "role": "reader"}
    assert admin.put(members, json=member).status_code == 200
    moved = admin.put(f"/api/knowledge/documents/{secret}/folder", json={"folder_id": folder_id})
    assert moved.is_success, moved.text
    with client_of(cluster, services, ada) as client:
        assert found(client, "silver compass", "vector")[:1] == [secret]
        assert status(client, secret) == "ready"
        conversation = client.post("/api/conversations", json={}).json()["id"]
        overrides = f"/api/conversations/{conversation}/document-overrides"
        with replay_paused(cluster):
            removed = admin.delete(f"{members}/{ada.id}")
            assert removed.status_code == 204, removed.text
            assert client.get(f"/api/knowledge/documents/{secret}").status_code == 404
            for mode in ("vector", "keyword", "hybrid"):
                assert secret not in found(client, "silver compass", mode)
            assert admin.delete(f"/api/knowledge/documents/{trashed}").status_code == 204
            assert trashed not in found(client, "walrus harbour", "vector")
            listed = client.get("/api/knowledge/documents").json()
            assert trashed not in str(listed)
            # One's own write is read back at once.
            client.put(f"{overrides}/{trashed}", json={"enabled": False})
            other = client.post("/api/conversations", json={}).json()["id"]
            assert client.get(f"/api/conversations/{other}").status_code == 200
            assert client.post("/api/auth/revoke", json={}).status_code == 204
            assert client.get("/api/knowledge/documents").status_code == 401
        wait(lambda: set(states(admin)) == {"ok"}, _TIMEOUT_S, "the replicas are not read again")


def test_killed_replica_pooler_redis_and_web_process_cost_one_retry_at_most(
    cluster: Cluster, admin: httpx.Client
) -> None:
    replica = cluster.replicas[0]
    faults = {
        "replica": replica.kill,
        "pooler": cluster.pooler.restart,
        "redis": cluster.redis.kill,
        "web": cluster.web[0].kill,
    }
    for name, fault in faults.items():
        with Readers(cluster, admin) as readers:
            fault()
            readers.go_on(25)
        assert readers.worst_streak <= 1, (name, readers.failures)
    wait(lambda: "unavailable" in states(admin), _NOTICED_WITHIN_S, "the dead replica is not seen")
    replica.start()
    cluster.redis.start()
    cluster.web[0].start()
    wait(lambda: set(states(admin)) == {"ok"}, _TIMEOUT_S, "the replica does not return")
    wait(cluster.answers, _TIMEOUT_S, "the web process does not return")


class Readers:
    """A user who reads and searches repeatedly, and retries what failed."""

    def __init__(self, cluster: Cluster, client: httpx.Client) -> None:
        self._base_url, self._headers = cluster.address, client.headers
        self._stopping = threading.Event()
        self._done = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._read)
        self.failures: list[str] = []
        self.worst_streak = 0

    def __enter__(self) -> Readers:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def go_on(self, requests: int) -> None:
        for _ in range(requests):
            assert self._done.acquire(timeout=_TIMEOUT_S), self.failures

    def _read(self) -> None:
        streak = 0
        with httpx.Client(base_url=self._base_url, headers=self._headers, timeout=20) as client:
            while not self._stopping.is_set():
                answer = client.get("/api/knowledge/documents")
                if answer.is_success:
                    streak = 0
                else:
                    streak += 1
                    self.failures.append(f"{answer.status_code} {answer.text[:150]}")
                    # As Retry-After says, and no sooner.
                    self._stopping.wait(float(answer.headers.get("Retry-After", 1)))
                self.worst_streak = max(self.worst_streak, streak)
                self._done.release()


def test_without_the_primary_reading_continues_and_after_a_promotion_writing(
    cluster: Cluster, admin: httpx.Client, counts: dict[str, int], tally: Tally
) -> None:
    for _ in range(counts["promotion"]):
        lose_the_primary(cluster, admin, tally)


def lose_the_primary(cluster: Cluster, admin: httpx.Client, tally: Tally) -> None:
    primary, word = cluster.primary, f"quay{uuid4().hex[:8]}"
    assert primary is not None
    document_id = upload(admin, "quay.txt", f"The badger counts the barrels on the {word}.")
    acknowledged: list[str] = []
    stopping = threading.Event()

    def write() -> None:
        number = 0
        with httpx.Client(base_url=cluster.address, headers=admin.headers, timeout=30) as client:
            while not stopping.is_set():
                number += 1
                name = f"{word}-{number}.txt"
                answer = client.post(
                    "/api/knowledge/documents",
                    files={"file": (name, f"Report {number} of {word}.".encode())},
                    headers={"Idempotency-Key": name},
                )
                if answer.status_code == 202:
                    acknowledged.append(answer.json()["documents"][0]["id"])
                stopping.wait(0.05)

    writing = threading.Thread(target=write)
    writing.start()
    try:
        wait(lambda: len(acknowledged) > 2, _TIMEOUT_S, "nothing is acknowledged")
        primary.kill()
        wait(
            lambda: found_or_none(admin, f"barrels {word}", "keyword"), _NOTICED_WITHIN_S, "search"
        )
        assert document_id in found(admin, f"barrels {word}", "keyword")
        assert document_id in found(admin, f"barrels {word}", "vector")
        assert status(admin, document_id) == "ready"
        page = admin.get("/documents")
        assert page.status_code == 200
        refused = admin.post("/api/conversations", json={})
        assert refused.status_code == 503
        assert refused.json()["error"]["code"] == "writing_unavailable"
        assert "只能读取" in refused.json()["error"]["message"]
        is_read_only = lambda: admin.get("/health").json()["status"] == "read_only"  # noqa: E731
        wait(is_read_only, _NOTICED_WITHIN_S, "health does not say so")
        began, count = time.monotonic(), len(acknowledged)
        promoted = cluster.promote()
        wait(lambda: len(acknowledged) > count, _TIMEOUT_S, "writing does not go on")
        tally.note("primary killed, a replica promoted", recovery_s=time.monotonic() - began)
    finally:
        stopping.set()
        writing.join()
    wait(lambda: admin.get("/health").json()["status"] == "ok", _TIMEOUT_S, "health")
    # None of what was acknowledged is lost, and all of it is read and found by words again.
    for one in acknowledged:
        with suppress(TimeoutError):
            wait(lambda one=one: status(admin, one) == "ready", _TIMEOUT_S, "not ready")
        document = admin.get(f"/api/knowledge/documents/{one}").json()
        assert document.get("status") == "ready", document
    hybrid = lambda: admin.get("/health/vector_store").json().get("hybrid")  # noqa: E731
    wait(hybrid, _TIMEOUT_S, "the keyword index is not rebuilt")
    assert document_id in found(admin, f"barrels {word}", "keyword")
    primary.rejoin(promoted)
    wait(lambda: set(states(admin)) == {"ok"}, _TIMEOUT_S, "the former primary does not follow")
    # Without its log it cannot be rewound: it is copied from the primary.
    primary.kill()
    for segment in (primary.cluster / "pg_wal").glob("?" * 24):
        segment.unlink()
    primary.rejoin(promoted)
    wait(lambda: set(states(admin)) == {"ok"}, _TIMEOUT_S, "the copied primary does not follow")


def found_or_none(client: httpx.Client, query: str, mode: str) -> bool:
    answer = client.post("/api/knowledge/search", json={"query": query, "mode": mode})
    return answer.is_success


def test_no_log_holds_words_passwords_or_tokens(cluster: Cluster, admin: httpx.Client) -> None:
    """After all that was done to it: logs of all processes and servers, and the metrics."""
    upload(admin, "zanzibar.txt", "The zanzibar canary sings of qwertzuiop at dawn.")
    assert found(admin, "zanzibar qwertzuiop")
    admin.get("/search", params={"q": "zanzibar"})
    talk = admin.post("/api/conversations", json={}).json()["id"]
    asked = {"content": "Who sings of qwertzuiop?", "stream": True}
    answer = admin.post(f"/api/conversations/{talk}/messages", json=asked)
    assert "event: done" in answer.text
    fail_in_many_ways(cluster, admin)
    client = httpx.Client(base_url=cluster.address)
    for password in (PASSWORD, "canary password"):
        client.post("/api/auth/token", json={"username": "admin", "password": password})
    client.close()
    token = admin.headers["Authorization"].removeprefix("Bearer ")
    key = cluster.environment("test")["PORTAL_SECRET_KEY"]
    canaries = ["zanzibar", "qwertzuiop", "silver compass", PASSWORD, "canary password", token, key]
    logs = [*cluster.folder.glob("*.log"), *cluster.folder.glob("node*/postgres/server.log")]
    texts = {str(path): path.read_text(errors="replace") for path in logs}
    texts["metrics"] = admin.get(f"http://127.0.0.1:{cluster.layout.web[0]}/metrics").text
    assert len(texts) >= 10
    assert "portal_" in texts["metrics"]
    leaks = [
        (name, canary) for name, text in texts.items() for canary in canaries if canary in text
    ]
    assert leaks == []
    assert any("duplicate key" in text for text in texts.values()), "no error was logged"


def fail_in_many_ways(cluster: Cluster, admin: httpx.Client) -> None:
    """Let the portal, its readers and the database refuse values that have a canary in them."""
    for path, body in (
        ("/api/knowledge/search", {"query": "zanzibar", "mode": "zanzibar", "top_n": "zanzibar"}),
        ("/api/folders", {"name": "zanzibar" * 100}),
    ):
        assert admin.post(path, json=body).status_code in {400, 403, 422}, path
    files = {"file": ("zanzibar.pdf", b"%PDF-1.7 zanzibar qwertzuiop")}
    refused = admin.post("/api/knowledge/documents", files=files)
    if refused.status_code == 202:
        document_id = refused.json()["documents"][0]["id"]
        wait(lambda: status(admin, document_id) == "failed", _TIMEOUT_S, "not failed")
    primary = cluster.primary
    assert primary is not None
    with primary.connect() as connection, suppress(psycopg.errors.UniqueViolation):
        # What a race of two requests for one name comes to.
        query = "INSERT INTO groups (id, name) VALUES (gen_random_uuid(), %s)"
        for _ in range(2):
            connection.execute(query, ["zanzibar"])
