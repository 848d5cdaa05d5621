"""A portal that was stopped or killed restarts with all acknowledged data and the same results."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import psutil
import pytest

from bench.cluster.programs import free_port
from tests.conftest import PASSWORD
from tests.factories.servers.endpoint import wait

DOCUMENTS = 12
QUESTIONS = ("budget of section 7", "预算", "lighthouse", "第三章")
_START_TIMEOUT_S = 90.0
# A killed worker's job is retried after twenty seconds without a heartbeat.
_READY_TIMEOUT_S = 120.0


class ServingPortal:
    """`portal serve` in separate processes, with a data directory that outlives them."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.port = free_port()
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=30)

    def start(self) -> None:
        environment = os.environ | {
            "PORTAL_DATA_DIR": str(self.data_dir),
            "PORTAL_ADMIN_PASSWORD": PASSWORD,
            "PORTAL_EMBEDDING__PROVIDER": "hashing",
        }
        command = [str(Path(sys.executable).with_name("portal")), "serve"]
        self.process = subprocess.Popen(
            [*command, "--port", str(self.port)],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait(self.is_healthy, _START_TIMEOUT_S, "the portal did not start")
        answer = self.client.post(
            "/api/auth/token", json={"username": "admin", "password": PASSWORD}
        )
        self.client.headers["Authorization"] = f"Bearer {answer.json()['access_token']}"

    def is_healthy(self) -> bool:
        try:
            return self.client.get("/health").status_code == 200
        except httpx.TransportError:
            return False

    def stop(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=60)

    def kill_everything(self) -> None:
        """Kill every process at once with SIGKILL, including the database's."""
        ours = psutil.Process(self.process.pid).children(recursive=True)
        ours.append(self.postmaster())
        for process in [psutil.Process(self.process.pid), *ours]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self.process.wait()

    def postmaster(self) -> psutil.Process:
        pid_file = self.data_dir / "postgres" / "postmaster.pid"
        return psutil.Process(int(pid_file.read_text().splitlines()[0]))

    def kill_all_but_the_database(self) -> None:
        ours = psutil.Process(self.process.pid).children(recursive=True)
        for process in [psutil.Process(self.process.pid), *ours]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self.process.wait()

    def statuses(self) -> list[str]:
        listed = self.client.get("/api/knowledge/documents").json()["documents"]
        return [document["status"] for document in listed]

    def answers(self, *modes: str) -> list[object]:
        found = []
        for question in QUESTIONS:
            for mode in modes or ("hybrid", "vector", "keyword"):
                body = {"query": question, "mode": mode, "top_n": 10}
                answer = self.client.post("/api/knowledge/search", json=body).json()
                results = answer.get("results", [])
                found.append([(r["chunk_id"], round(r["score"], 6)) for r in results])
        return found


@pytest.fixture
def serving(tmp_path: Path):
    portal = ServingPortal(tmp_path / "data")
    yield portal
    if portal.process.poll() is None:
        portal.stop()


def text_of(number: int) -> bytes:
    chinese = f"第{'一二三四五六七八九十'[number % 10]}章 预算与灯塔。" * 20
    return f"Section {number}. The budget of the lighthouse.\n\n{chinese}\n\n".encode() * 12


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("kill", ["kill_everything", "kill_all_but_the_database"])
def test_killed_while_reading_nothing_is_lost_and_searches_stay_the_same(
    serving: ServingPortal, kill: str
) -> None:
    serving.start()
    for number in range(DOCUMENTS):
        answer = serving.client.post(
            "/api/knowledge/documents", files={"file": (f"{number}.txt", text_of(number))}
        )
        assert answer.status_code == 202
    wait(lambda: "ready" in serving.statuses(), _READY_TIMEOUT_S, "nothing became ready")
    getattr(serving, kill)()

    serving.start()
    assert len(serving.statuses()) == DOCUMENTS
    wait(
        lambda: serving.statuses() == ["ready"] * DOCUMENTS,
        _READY_TIMEOUT_S,
        "a document was stuck",
    )
    assert all(serving.answers())
    # What the kill rolled back still counts in BM25's statistics, until the next start of the
    # server rebuilds its indexes.
    nearest = serving.answers("vector")
    if kill == "kill_all_but_the_database":
        return

    assert serving.stop() == 0
    serving.start()
    assert serving.answers("vector") == nearest
    before = serving.answers()

    serving.kill_everything()
    serving.start()
    assert serving.answers() == before

    serving.postmaster().kill()
    wait(lambda: not serving.is_healthy(), 10, "the portal did not notice")
    wait(serving.is_healthy, _START_TIMEOUT_S, "the database was not started again")
    wait(lambda: serving.answers() == before, 20, "searches changed with the database's restart")
