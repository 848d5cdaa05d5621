"""A LangChain chain that answers from a collection in the portal's database.

    DATABASE_URL=postgresql://… python examples/langchain_chain.py "How many days of leave?"

Without DATABASE_URL it uses the portal's embedded server. The example needs no API key: its chat
model repeats the best passage. Replace it with any other.
"""

from __future__ import annotations

import sys

from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompt_values import PromptValue
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableLambda, RunnablePassthrough

from portal.integrations.langchain import PostgresVectorStore

HANDBOOK = [
    Document("Annual leave is 24 days a year.", id="leave", metadata={"source": "leave.md"}),
    Document("The canteen opens at noon.", id="canteen", metadata={"source": "canteen.md"}),
    Document("员工每年有 24 天年假。", id="leave-zh", metadata={"source": "休假.md"}),
]
PROMPT = ChatPromptTemplate.from_template("Answer from this alone:\n{passages}\n\nQ: {question}")


def as_text(documents: list[Document]) -> str:
    return "\n".join(f"{one.page_content} [{one.metadata['source']}]" for one in documents)


def first_chunk(prompt: PromptValue) -> str:
    """Return the first passage of the prompt, in place of a chat model."""
    return prompt.to_string().splitlines()[1]


def build_chain(store: PostgresVectorStore) -> Runnable[str, str]:
    chunks = store.as_retriever(search_kwargs={"k": 2}) | as_text
    inputs = {"passages": chunks, "question": RunnablePassthrough()}
    return inputs | PROMPT | RunnableLambda(first_chunk) | StrOutputParser()


def main(question: str) -> str:
    store = PostgresVectorStore("example-handbook", collection_metadata={"hnsw:space": "cosine"})
    store.add_documents(HANDBOOK)  # Same ids each time: no duplicates.
    return build_chain(store).invoke(question)


if __name__ == "__main__":
    print(main(" ".join(sys.argv[1:]) or "How many days of leave do I have?"))
