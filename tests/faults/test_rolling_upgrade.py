"""A rolling upgrade: processes of the code before the newest migration serve beside new ones."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx
import pytest

from bench import databases
from bench.cluster.nodes import wait
from bench.cluster.programs import Process, free_port
from tests.conftest import PASSWORD
from tests.faults.people import found

ROOT = Path(__file__).resolve().parents[2]
NAME = "rolling_upgrade"
_TIMEOUT_S = 120.0
_PORTAL = [sys.executable, "-c", "from portal.processes.cli import main; main()"]


def _git(*arguments: str) -> bytes | None:
    with suppress(OSError, subprocess.CalledProcessError):
        command = ["git", "-C", str(ROOT), *arguments]
        return subprocess.run(command, check=True, capture_output=True).stdout
    return None


@pytest.fixture(scope="module")
def old_code(run_dir: Path) -> Path:
    """Return the tree of the commit before the newest migration."""
    newest = max((ROOT / "migrations" / "versions").glob("0*.py")).relative_to(ROOT)
    arguments = ("log", "-1", "--format=%H", "--diff-filter=A", "--", str(newest))
    commit = (_git(*arguments) or b"").decode().strip()
    archive = _git("archive", f"{commit}~1") if commit else None
    if not archive:
        pytest.skip("the history of the repository is not here")
    folder = run_dir / "old-code"
    with tarfile.open(fileobj=io.BytesIO(archive)) as tree:
        tree.extractall(folder, filter="data")
    return folder


class Version:
    """The portal of one version: a web process, a worker and its migrations."""

    def __init__(self, code: Path, data_dir: Path, url: str) -> None:
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self._client = httpx.Client(base_url=self.address, timeout=30)
        self._code = code
        self._environment = {
            "PYTHONPATH": str(code),
            "DATABASE_URL": url,
            "PORTAL_DATA_DIR": str(data_dir),
            "PORTAL_SECRET_KEY": "one key of both versions, as long as HS256 wants it",
            "PORTAL_ADMIN_PASSWORD": PASSWORD,
            "PORTAL_EMBEDDING__PROVIDER": "hashing",
            "PORTAL_RATE_LIMITS__ENABLED": "false",
            "OMP_NUM_THREADS": "1",
        }
        web = [sys.executable, "-m", "gunicorn", "wsgi:app", "--no-control-socket"]
        self.processes = [
            Process(name, command, log=data_dir / f"{name}-{self.port}.log", cwd=code,
                    environment=self._environment)
            for name, command in (
                ("web", [*web, "--bind", f"127.0.0.1:{self.port}"]),
                ("worker", [*_PORTAL, "worker"]),
            )
        ]  # fmt: skip

    def migrate(self) -> None:
        done = subprocess.run(
            [*_PORTAL, "migrate"], cwd=self._code, env=os.environ | self._environment,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    def start(self, stack: ExitStack) -> None:
        for process in self.processes:
            stack.callback(process.kill)
            process.start()
        wait(self.answers, _TIMEOUT_S, f"no answer: {self._code}")

    def sign_in(self) -> dict[str, str]:
        body = {"username": "admin", "password": PASSWORD}
        token = self._client.post("/api/auth/token", json=body).json()["access_token"]
        return {"Authorization": f"Bearer {token}"}

    def answers(self) -> bool:
        with suppress(httpx.TransportError):
            return self._client.get("/health/live").is_success
        return False


@pytest.fixture
def url(server_url: str) -> Iterator[str]:
    with databases.temporary(server_url, NAME) as address:
        yield databases.plain(address)


def use_everything(client: httpx.Client, number: int) -> str:
    """Upload, search, read, switch, ask and delete; return the id of a document that stays."""
    word = f"lantern{number}"

    def add(name: str, text: str) -> str:
        files = {"file": (name, text.encode())}
        answer = client.post("/api/knowledge/documents", files=files)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["documents"][0]["id"])

    kept = add(f"{word}.txt", f"The keeper of {word} lives on the island of Brume.")
    gone = add(f"gone-{word}.txt", f"Draft number {number} about gulls.")
    for one in (kept, gone):
        path = f"/api/knowledge/documents/{one}"
        wait(lambda path=path: client.get(path).json()["status"] == "ready", _TIMEOUT_S, "ready")
    for mode in ("hybrid", "vector", "keyword"):
        assert kept in found(client, word, mode), mode
    assert client.get("/documents").status_code == 200
    assert client.get(f"/documents/{kept}").status_code == 200
    assert client.get(f"/search?q={word}").status_code == 200
    default = f"/api/user/document-defaults/{kept}"
    assert client.put(default, json={"enabled": False}).is_success
    assert kept not in found(client, word, "hybrid")
    assert client.delete(default).is_success
    talk = client.post("/api/conversations", json={}).json()["id"]
    asked = client.post(
        f"/api/conversations/{talk}/messages", json={"content": f"Who is the keeper of {word}?"}
    )
    assert asked.is_success, asked.text
    assert [citation["document_id"] for citation in asked.json()["citations"]] == [kept]
    assert client.delete(f"/api/knowledge/documents/{gone}").status_code == 204
    return kept


@pytest.mark.slow
def test_old_processes_serve_on_while_and_after_new_code_migrates(
    old_code: Path, run_dir: Path, url: str
) -> None:
    folders = [run_dir / f"rolling-{name}" for name in ("old", "new")]
    for folder in folders:
        folder.mkdir()
    old, new = Version(old_code, folders[0], url), Version(ROOT, folders[1], url)
    with ExitStack() as stack:
        old.migrate()
        old.start(stack)
        headers = old.sign_in()
        clients = [
            stack.enter_context(httpx.Client(base_url=version.address, headers=headers, timeout=30))
            for version in (old, new)
        ]
        kept = [use_everything(clients[0], 1)]
        new.migrate()
        kept.append(use_everything(clients[0], 2))
        new.start(stack)
        for number, client in enumerate([*clients, clients[0]], 3):
            kept.append(use_everything(client, number))
        # Each sees what the other wrote, and the old one can be ended now.
        for process in old.processes:
            process.stop()
        for number, document_id in enumerate(kept, 1):
            assert document_id in found(clients[1], f"lantern{number}", "keyword")
        assert clients[1].get("/health").json()["checks"]["schema"] == "ok"
