"""The LangChain and LangGraph examples run as their first lines say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from portal.domain.documents import Visibility
from tests.conftest import Portal
from tests.factories.servers.chat import Status, fake_chat

PRIVATE = Visibility.PRIVATE

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture
def environment(database_url: str, tmp_path: Path) -> dict[str, str]:
    return os.environ | {
        "DATABASE_URL": database_url.replace("postgresql+psycopg", "postgresql"),
        "PORTAL_DATA_DIR": str(tmp_path),
        "PORTAL_EMBEDDING__PROVIDER": "hashing",
    }


def run(environment: dict[str, str], example: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, f"examples/{example}", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_chain_answers_from_the_collection(environment: dict[str, str]) -> None:
    for _again in range(2):
        answer = run(environment, "langchain_chain.py", "When does the canteen open?")
        assert answer.strip() == "The canteen opens at noon. [canteen.md]"


def said(message: dict[str, Any]) -> list[Status]:
    """Return a chat endpoint's response with this message."""
    choice = {"index": 0, "message": {"role": "assistant"} | message, "finish_reason": "stop"}
    return [Status(200, {"id": "1", "object": "chat.completion", "choices": [choice]})]


def looks_up(query: str) -> list[Status]:
    """Return a chat endpoint's response that calls the tool."""
    function = {"name": "look_up", "arguments": json.dumps({"query": query})}
    call = {"id": "a", "type": "function", "function": function}
    return said({"content": None, "tool_calls": [call]})


def test_agent_searches_for_what_the_model_asks(environment: dict[str, str]) -> None:
    call = looks_up("canteen opens at noon")
    with fake_chat(call, said({"content": "At noon [canteen.md]."})) as chat:
        environment |= {"OPENAI_BASE_URL": chat.url, "OPENAI_API_KEY": "k"}
        printed = run(environment, "langgraph_agent.py", "When does the canteen open?")
        (_, first), (_, second) = chat.requests
    assert [tool["function"]["name"] for tool in first["tools"]] == ["look_up"]
    assert [message["role"] for message in first["messages"]] == ["system", "user"]
    # The tool's results from the collection were sent to the model.
    assert second["messages"][-1]["role"] == "tool"
    assert "The canteen opens at noon. [canteen.md]" in second["messages"][-1]["content"]
    assert printed.rstrip().endswith("At noon [canteen.md].")


def test_an_agent_reads_the_portal_as_one_user(environment: dict[str, str], portal: Portal) -> None:
    ann = portal.user("ann")
    open_to_all = portal.add("The canteen opens at noon.", name="canteen.md")
    switched_off = portal.add("The canteen opens at nine.", name="old.md")
    portal.add("The canteen opens for Bob.", owner=portal.user("bob"), visibility=PRIVATE)
    client = portal.client(ann)
    conversation = client.post("/api/conversations", json={}).get_json()["id"]
    path = f"/api/conversations/{conversation}/document-overrides/{switched_off.id}"
    client.put(path, json={"enabled": False})

    question = "When does the canteen open?"
    with fake_chat(looks_up("canteen opens"), said({"content": "At noon [canteen]."})) as chat:
        environment |= {"OPENAI_BASE_URL": chat.url, "OPENAI_API_KEY": "k"}
        printed = run(environment, "portal_agent.py", "ann", question, conversation)
        (_, second) = chat.requests[-1]
    told = second["messages"][-1]
    assert told["role"] == "tool"
    assert "[canteen] " in told["content"]
    assert "noon" in told["content"]
    assert not {"nine", "Bob"} & set(told["content"].replace(".", "").split())
    answer, citation = printed.strip().splitlines()
    assert answer == "At noon [canteen]."
    assert f"/documents/{open_to_all.id}?chunk=" in citation
    page = citation.split(portal.services.settings.public_url)[1]
    assert b"The canteen opens at noon." in client.get(page).data
