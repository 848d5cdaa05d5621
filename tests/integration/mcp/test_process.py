"""`portal mcp` as a process, and the example that calls it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from portal.errors import InvalidToken
from portal.services.people import tokens
from tests.conftest import Portal

pytestmark = pytest.mark.mcp
pytest.importorskip("mcp", reason="not installed: ./run setup --mcp")
pytest.importorskip("httpx2")

from tests.factories.servers.mcp import MCP, PROJECT, PUBLIC_URL  # noqa: E402
from tests.integration.mcp.visiting import HANDBOOK, reading_token  # noqa: E402


def test_stdio_ends_with_its_input_or_at_a_signal(
    portal: Portal, environment: dict[str, str]
) -> None:
    environment |= {"PORTAL_TOKEN": reading_token(portal), "PORTAL_LOG_LEVEL": "debug"}
    hello = (
        '{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion":'
        ' "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}\n'
    )
    for number in (None, signal.SIGINT, signal.SIGTERM):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with subprocess.Popen(MCP, env=environment, text=True, **pipes) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(hello)
            process.stdin.flush()
            assert '"knowledge-portal"' in process.stdout.readline()
            if number is not None:
                # Standard input stays open, so that only the signal ends the process.
                process.send_signal(number)
                assert process.wait(20) == 0
            left, errors = process.communicate(timeout=20)
            assert (process.returncode, left) == (0, "")
            assert "Traceback" not in errors


def run_mcp(environment: dict[str, str], *options: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [*MCP, *options],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.returncode, done.stdout, done.stderr.strip().splitlines()[-1]


def test_stdio_does_not_start_without_a_good_token(
    portal: Portal, environment: dict[str, str]
) -> None:
    status, output, words = run_mcp(environment)
    assert (status, output) == (1, "")
    assert words.startswith("portal: PORTAL_TOKEN is not set")
    token = reading_token(portal)
    tokens.revoke(portal.services, tokens.authenticate(portal.services, token), token)
    for wrong in (token, "nonsense"):
        status, output, words = run_mcp(environment | {"PORTAL_TOKEN": wrong})
        assert (status, output, words) == (1, "", f"portal: {InvalidToken()}")


def test_a_port_that_is_taken_is_reported_in_a_line(
    portal: Portal, environment: dict[str, str], http_url: str
) -> None:
    port = http_url.rsplit(":", 1)[1].removesuffix("/mcp")
    status, output, words = run_mcp(environment, "--http", "--port", port)
    assert (status, output) == (1, "")
    assert f"127.0.0.1:{port}" in words


def test_missing_extra_is_reported_in_one_line(environment: dict[str, str]) -> None:
    code = "import sys; sys.modules['mcp'] = None; from portal.processes.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "mcp"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "portal: this needs the extra: ./run setup --mcp\n"


def test_serving_pages_does_not_load_the_protocol() -> None:
    code = (
        "import sys, portal.processes.cli, portal.processes.worker\n"
        "import portal.processes.serving.supervisor\n"
        "import portal.web, portal.api\n"
        "sys.exit(any(name in sys.modules for name in ('mcp', 'mcp_types', 'starlette')))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, check=False)
    assert done.returncode == 0


def test_the_example_reads_the_best_document_both_ways(
    portal: Portal, environment: dict[str, str], http_url: str
) -> None:
    portal.add(HANDBOOK, title="Handbook")
    environment |= {"PORTAL_TOKEN": reading_token(portal), "HOME": os.environ.get("HOME", "/")}
    for options in ([], ["--url", http_url]):
        done = subprocess.run(
            [sys.executable, str(PROJECT / "examples/mcp_client.py"), *options, "refunds"],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        assert f"- Handbook\n  {PUBLIC_URL}/documents/" in done.stdout
        assert done.stdout.endswith(f"Handbook\n\n{HANDBOOK}\n")
