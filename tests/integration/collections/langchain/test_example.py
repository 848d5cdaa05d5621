"""The examples of LangChain and LangGraph run as their first lines say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.factories.chat import Status, fake_chat

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture
def environment(database_url: str) -> dict[str, str]:
    url = database_url.replace("postgresql+psycopg", "postgresql")
    return os.environ | {"DATABASE_URL": url, "PORTAL_EMBEDDING__PROVIDER": "hashing"}


def run(environment: dict[str, str], example: str, question: str) -> str:
    done = subprocess.run(
        [sys.executable, f"examples/{example}", question],
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
    """What a chat endpoint answers with this message."""
    choice = {"index": 0, "message": {"role": "assistant"} | message, "finish_reason": "stop"}
    return [Status(200, {"id": "1", "object": "chat.completion", "choices": [choice]})]


def test_the_agent_looks_up_what_the_model_asks_for(environment: dict[str, str]) -> None:
    function = {"name": "look_up", "arguments": '{"query": "canteen opens at noon"}'}
    call = {"content": None, "tool_calls": [{"id": "a", "type": "function", "function": function}]}
    with fake_chat(said(call), said({"content": "At noon [canteen.md]."})) as chat:
        environment |= {"OPENAI_BASE_URL": chat.url, "OPENAI_API_KEY": "k"}
        printed = run(environment, "langgraph_agent.py", "When does the canteen open?")
        (_, first), (_, second) = chat.requests
    assert [tool["function"]["name"] for tool in first["tools"]] == ["look_up"]
    assert [message["role"] for message in first["messages"]] == ["system", "user"]
    # What the tool found in the collection went back to the model.
    assert second["messages"][-1]["role"] == "tool"
    assert "The canteen opens at noon. [canteen.md]" in second["messages"][-1]["content"]
    assert printed.rstrip().endswith("At noon [canteen.md].")
