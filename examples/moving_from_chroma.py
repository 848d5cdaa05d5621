"""Move a program from Chroma: import its directory, change one line, get the same results.

    DATABASE_URL=postgresql://… .venv/bin/python examples/moving_from_chroma.py [DIR]

Creates a Chroma directory, imports its collection with `portal import-chroma`, and runs the same
calls on both. DIR is the directory to create; it must be new or empty, so that no data of yours is
changed or imported. Without DATABASE_URL it uses the portal's embedded server. The example needs no
API key: its model counts letters. Both sides must use the same model. Requires the extra:
./run setup --chroma
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path
from string import ascii_lowercase

from langchain_chroma import Chroma
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

from portal.integrations.langchain import PostgresVectorStore
from portal.processes.cli import main as command_line

COLLECTION = "example-moved"
COSINE = {"hnsw:space": "cosine"}
TEXTS = ["Annual leave is 24 days a year.", "The canteen opens at noon.", "Keys are at the desk."]
SOURCES = [{"source": "leave.md"}, {"source": "canteen.md"}, {"source": "keys.md"}]
IDS = ["leave", "canteen", "keys"]


class LetterCounts(Embeddings):
    """Count the letters of a text, in place of a model."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        counts = Counter(text.lower())
        return [float(counts[letter]) for letter in ascii_lowercase]


def old_store(directory: Path) -> VectorStore:
    return Chroma(
        COLLECTION,
        LetterCounts(),
        persist_directory=str(directory),
        collection_metadata=COSINE,
    )


def new_store() -> VectorStore:
    """Return the new store: the only line that changes."""
    return PostgresVectorStore(COLLECTION, LetterCounts(), collection_metadata=COSINE)


def ask(store: VectorStore) -> list[tuple[str, str, dict[str, str], float]]:
    """Run the searches of the program, the same on both stores."""
    found = store.similarity_search_with_score("how many days of leave a year?", k=2)
    found += store.similarity_search_with_score("noon", k=1, filter={"source": "canteen.md"})
    return [
        (document.id or "", document.page_content, document.metadata, round(distance, 5))
        for document, distance in found
    ]


def main(directory: Path) -> None:
    if directory.exists() and any(directory.iterdir()):
        sys.exit(f"{directory} is not empty; choose a new or empty directory")
    old = old_store(directory)
    old.add_texts(TEXTS, SOURCES, ids=IDS)
    before = ask(old)

    words = ["import-chroma", str(directory), "--collection", COLLECTION]
    command_line(words, standalone_mode=False)

    new = new_store()
    after = ask(new)
    print(f"{len(new.get_by_ids(IDS))} records")
    record_id, text, metadata, _distance = after[0]
    print(f"{record_id}: {text} {metadata}")
    if after != before:
        sys.exit(f"the answers differ:\n{before}\n{after}")
    print("the same answers, in the same order, at the same distances")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as made:
            main(Path(made))
