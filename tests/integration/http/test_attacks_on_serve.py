"""`portal serve` with an empty data directory and default settings, under attack."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from bench.cluster.programs import free_port
from tests.conftest import PASSWORD
from tests.factories.attacks import ATTACKER, PART_OF_A_HEAD, ask, head, stalled

PROJECT = Path(__file__).parents[3]
JSON = {"Content-Type": "application/json"}
QUESTION = b'{"query": "leave"}'
FLOOD = b'{"query": "leave", "extra": [' + b"{}," * 10_000_000 + b"{}]}"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def rss_mb(pid: int) -> int:
    """Return the memory of a process and its descendants."""
    total = 0
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":\t", 1) for line in status.read_text().splitlines())
        except (OSError, ValueError):
            continue
        if int(fields["PPid"]) == pid or status.parent.name == str(pid):
            own = int(fields.get("VmRSS", "0 kB").split()[0]) // 1024
            is_child = status.parent.name != str(pid)
            total += rss_mb(int(status.parent.name)) if is_child else own
    return total


def test_floods_and_stalled_clients_do_not_stop_the_portal(tmp_path: Path) -> None:
    port = free_port()
    command = "import sys; from portal.processes.cli import main; sys.exit(main())"
    with subprocess.Popen(
        [sys.executable, "-c", command, "--data-dir", str(tmp_path), "serve", "--port", str(port)],
        cwd=PROJECT,
        env=os.environ | {"PORTAL_ADMIN_PASSWORD": PASSWORD},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert any("The portal is ready" in line for line in process.stdout)
            address = f"http://127.0.0.1:{port}"
            credentials = json.dumps({"username": "admin", "password": PASSWORD}).encode()
            given = ask(address, "/api/auth/token", method="POST", body=credentials, headers=JSON)
            token = f"Bearer {json.loads(given.body)['access_token']}"
            headers = JSON | {"Authorization": token}
            search = partial(ask, address, "/api/knowledge/search", method="POST", headers=headers)
            assert search(body=QUESTION).status == 200
            before = rss_mb(process.pid)
            refused = search(body=FLOOD)
            assert refused.status == 413
            # Parsed, its objects would take a gigabyte. The database warms up meanwhile.
            assert rss_mb(process.pid) - before < 300
            body = head("/api/knowledge/search", f"Authorization: {token}", "Content-Length: 9999")
            for sent in (PART_OF_A_HEAD, body):
                with stalled(address, 125, sent):
                    assert ask(address, "/health/live", source=ATTACKER).seconds < 2
                    found = search(body=QUESTION)
                    assert (found.status, found.seconds < 5) == (200, True)
        finally:
            process.send_signal(signal.SIGTERM)
