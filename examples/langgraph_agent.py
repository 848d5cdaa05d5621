"""A LangGraph agent that searches a collection in the portal's database.

    export OPENAI_API_KEY=…                       # of any OpenAI-compatible endpoint
    export OPENAI_BASE_URL=http://127.0.0.1:11434/v1 PORTAL_EXAMPLE_MODEL=qwen3   # e.g. Ollama
    .venv/bin/python examples/langgraph_agent.py "How many days of leave do I have?"

The store's retriever is a tool: the model decides when to search and for what, and answers from the
passages it gets. Every step is printed.

Needs: ./run setup --langchain
       .venv/bin/python -m pip install "langchain>=1" "langchain-openai>=1"
"""

from __future__ import annotations

import os
import sys
from typing import Any

from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.prompts import PromptTemplate
from langchain_core.tools import create_retriever_tool
from langchain_openai import ChatOpenAI
from langgraph.graph.state import CompiledStateGraph

from portal.integrations.langchain import PostgresVectorStore

HANDBOOK = [
    Document("Annual leave is 24 days a year.", id="leave", metadata={"source": "leave.md"}),
    Document("The canteen opens at noon.", id="canteen", metadata={"source": "canteen.md"}),
    Document("员工每年有 24 天年假。", id="leave-zh", metadata={"source": "休假.md"}),
]
INSTRUCTIONS = (
    "You answer questions of employees. Look up what you need in the handbook, answer from what "
    "you found alone, and name its source in brackets. Say so when the handbook does not tell."
)
PASSAGE = PromptTemplate.from_template("{page_content} [{source}]")


def build_agent(model: BaseChatModel, store: PostgresVectorStore) -> CompiledStateGraph[Any]:
    """Build a graph in which the model and its tools alternate until the model answers."""
    look_up = create_retriever_tool(
        store.as_retriever(search_kwargs={"k": 2}),
        "look_up",
        "Find passages of the handbook, by a question or by words, in Chinese or English.",
        document_prompt=PASSAGE,
    )
    return create_agent(model, [look_up], system_prompt=INSTRUCTIONS)


def ask(agent: CompiledStateGraph[Any], question: str) -> str:
    """Print every step of the agent and return its answer."""
    messages = []
    for state in agent.stream({"messages": [("user", question)]}, stream_mode="values"):
        messages = state["messages"]
        messages[-1].pretty_print()
    return str(messages[-1].text)


def main(question: str) -> None:
    model = ChatOpenAI(model=os.environ.get("PORTAL_EXAMPLE_MODEL", "gpt-4o-mini"), temperature=0)
    store = PostgresVectorStore("example-handbook", collection_metadata={"hnsw:space": "cosine"})
    store.add_documents(HANDBOOK)  # Same ids each time: no duplicates.
    ask(build_agent(model, store), question)


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]) or "How many days of leave do I have?")
