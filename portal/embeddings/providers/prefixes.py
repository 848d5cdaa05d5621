"""Prefixes that models were trained to see before a query and before a chunk."""

from __future__ import annotations

import re

from portal.text.characters.normalise import clean_beginning

# About 8,000 tokens of the densest script, the usual limit of endpoints. Local models read 512, and
# the rest would only keep their tokenizer busy.
MAX_CHARACTERS = 6000
# By pattern of the model's name; the first match counts. Other models include their prompts or need
# none.
FAMILIES: tuple[tuple[str, str, str], ...] = (
    ("bge-m3", "", ""),
    ("bge-.*-zh", "为这个句子生成表示以用于检索相关文章：", ""),
    ("bge-", "Represent this sentence for searching relevant passages: ", ""),
    ("e5-", "query: ", "passage: "),
)


def prefixes(model: str, *, question: str | None = None) -> tuple[str, str]:
    """Return the prefixes of queries and of chunks for a model, by its name.

    `question` replaces the first one when given, even if it is empty.
    """
    name = model.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1].lower()
    known = (prompts for pattern, *prompts in FAMILIES if re.search(pattern, name))
    own_question, chunk = next(known, ("", ""))
    return own_question if question is None else question, chunk


def prefixed(prefix: str, text: str) -> str:
    """Return a clean text of bounded length after its prefix."""
    return prefix + clean_beginning(text, MAX_CHARACTERS)
