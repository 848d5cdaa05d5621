"""`portal mcp` as its own process, and the SDK's own client on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult

PROJECT = Path(__file__).resolve().parents[3]
MCP = [sys.executable, "-c", "from portal.processes.cli import main; main()", "mcp"]
PUBLIC_URL = "https://portal.example.org"


def mcp_environment(database_url: str, data_dir: Path, secret_key: str) -> dict[str, str]:
    """Return the environment in which the process uses a test's database."""
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(PROJECT),
        "DATABASE_URL": database_url,
        "PORTAL_CONFIG": os.devnull,
        "PORTAL_DATA_DIR": str(data_dir),
        "PORTAL_SECRET_KEY": secret_key,
        "PORTAL_EMBEDDING__PROVIDER": "hashing",
        "PORTAL_PUBLIC_URL": PUBLIC_URL,
        "PORTAL_RATE_LIMITS__ENABLED": "false",
    }


@contextmanager
def http_process(environment: dict[str, str], *options: str) -> Iterator[tuple[str, Any]]:
    """Run `portal mcp --http` on a free port; yield its address and the process."""
    command = [*MCP, "--http", "--port", "0", *options]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[0], process
        finally:
            process.terminate()


@dataclass(frozen=True)
class Door:
    """Access to a server: over HTTP if there is an address, else one process for each client."""

    environment: dict[str, str]
    url: str | None = None

    @asynccontextmanager
    async def enter(self, token: str, *, mode: str = "auto") -> AsyncIterator[Client]:
        if self.url is None:
            server = StdioServerParameters(
                command=MCP[0], args=MCP[1:], env=self.environment | {"PORTAL_TOKEN": token}
            )
            async with Client(server, mode=mode) as client:
                yield client
            return
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            Client(streamable_http_client(self.url, http_client=http), mode=mode) as client,
        ):
            yield client


def text_of(result: CallToolResult) -> str:
    """Return the text of the only item, which connectors read."""
    (item,) = result.content
    assert item.type == "text"
    return item.text


async def ask(client: Client, tool: str, **arguments: Any) -> Any:
    """Return the JSON of a tool's result; check that it equals the structured content."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text_of(result)
    answer = json.loads(text_of(result))
    assert answer == result.structured_content
    return answer


async def refusal(client: Client, tool: str, **arguments: Any) -> str:
    """Return the text with which a tool refuses."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, text_of(result)
    return text_of(result)
