"""Use the portal like an AI client: search for documents, then fetch the best one.

    PORTAL_TOKEN=… .venv/bin/python examples/mcp_client.py "how long do refunds take?"
    PORTAL_TOKEN=… .venv/bin/python examples/mcp_client.py --url http://127.0.0.1:8001/mcp "…"

Without --url it starts `portal mcp` and uses standard input and output; with --url it connects to a
running `portal mcp --http`. Requires the extra: ./run setup --mcp
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

PORTAL = Path(sys.executable).with_name("portal")


async def ask_started(question: str) -> None:
    # MCP clients pass on little of their environment, so name what the portal needs.
    needs = {name: value for name, value in os.environ.items() if name.startswith("PORTAL_")}
    needs |= {name: os.environ[name] for name in ("DATABASE_URL",) if name in os.environ}
    server = StdioServerParameters(command=str(PORTAL), args=["mcp"], env=needs)
    async with Client(server) as client:
        await show_best(client, question)


async def ask_running(url: str, question: str) -> None:
    headers = {"Authorization": f"Bearer {os.environ['PORTAL_TOKEN']}"}
    async with (
        httpx2.AsyncClient(headers=headers) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        await show_best(client, question)


async def show_best(client: Client, question: str) -> None:
    found = await call(client, "search", query=question)
    for result in found["results"]:
        print(f"- {result['title']}\n  {result['url']}")
    if not found["results"]:
        print("nothing was found")
        return
    document = await call(client, "fetch", id=found["results"][0]["id"])
    print(f"\n{document['title']}\n\n{document['text']}")


async def call(client: Client, tool: str, **arguments: str) -> Any:
    """Call a tool and parse its result, a single text item that contains JSON."""
    answer = await client.call_tool(tool, arguments)
    (item,) = answer.content
    if answer.is_error:
        sys.exit(f"{tool}: {item.text}")
    return json.loads(item.text)


def main() -> None:
    parser = argparse.ArgumentParser(description="Ask a portal over MCP.")
    parser.add_argument("question")
    parser.add_argument("--url", help="of a `portal mcp --http` that is running")
    given = parser.parse_args()
    asked = ask_running(given.url, given.question) if given.url else ask_started(given.question)
    asyncio.run(asked)


if __name__ == "__main__":
    main()
