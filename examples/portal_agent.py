"""A LangGraph agent that searches the portal's documents as one of its users.

    export OPENAI_API_KEY=…                       # of any OpenAI-compatible endpoint
    export OPENAI_BASE_URL=http://127.0.0.1:11434/v1 PORTAL_EXAMPLE_MODEL=qwen3   # e.g. Ollama
    .venv/bin/python examples/portal_agent.py ann "How many days of leave do I have?"

The agent finds only documents that the user may see and has not switched off. With the id of a
conversation as third argument, documents switched off there are excluded too.

Needs: ./run setup --langchain; .venv/bin/python -m pip install "langchain>=1" "langchain-openai>=1"
"""

from __future__ import annotations

import os
import sys
from typing import Any

from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool, tool
from langchain_openai import ChatOpenAI
from langgraph.graph.state import CompiledStateGraph

from portal.integrations.langchain import PortalRetriever

INSTRUCTIONS = (
    "You answer from the portal's documents. Look up what you need and name the title of your "
    "source in brackets. Say so when the documents do not tell, and when a result has low "
    "confidence."
)


def as_text(found: Document) -> str:
    doubt = " (low confidence)" if found.metadata["low_confidence"] else ""
    return f"[{found.metadata['title']}]{doubt} {found.page_content}"


def look_up_with(retriever: PortalRetriever) -> BaseTool:
    """Wrap the retriever as a tool: the model gets the text, the program the documents."""

    @tool(response_format="content_and_artifact")
    def look_up(query: str) -> tuple[str, list[Document]]:
        """Find passages of the portal's documents, by a question in Chinese or English."""
        found = retriever.invoke(query)
        return "\n\n".join(map(as_text, found)) or "Nothing was found.", found

    return look_up


def build_agent(model: BaseChatModel, retriever: PortalRetriever) -> CompiledStateGraph[Any]:
    return create_agent(model, [look_up_with(retriever)], system_prompt=INSTRUCTIONS)


def ask(agent: CompiledStateGraph[Any], question: str) -> None:
    """Print the agent's answer and the passages it was given."""
    messages = agent.invoke({"messages": [("user", question)]})["messages"]
    print(messages[-1].text)
    for message in messages:
        for found in getattr(message, "artifact", None) or []:
            citation = found.metadata["citation"]
            print(f"  {citation['title']}, {citation['confidence']:.0%}: {citation['url']}")


def main(user: str, question: str, conversation: str | None = None) -> None:
    model = ChatOpenAI(model=os.environ.get("PORTAL_EXAMPLE_MODEL", "gpt-4o-mini"), temperature=0)
    retriever = PortalRetriever(user=user, conversation=conversation, k=4)
    ask(build_agent(model, retriever), question)


if __name__ == "__main__":
    main(*sys.argv[1:] or ("admin", "How many days of leave do I have?"))
