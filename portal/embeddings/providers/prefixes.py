"""Prefixes that models were trained to see before a question and before a chunk."""

from __future__ import annotations

from portal.text.characters.normalise import clean

# About 8,000 tokens of the densest script, the usual limit of endpoints. Local models read 512, and
# the rest would only keep their tokenizer busy.
MAX_CHARACTERS = 6000
# The first family whose name is part of the model's name counts. Other models include their prompts
# or need none.
FAMILIES: tuple[tuple[str, str, str], ...] = (
    ("bge-m3", "", ""),
    ("-zh", "为这个句子生成表示以用于检索相关文章：", ""),
    ("bge-", "Represent this sentence for searching relevant passages: ", ""),
    ("e5-", "query: ", "passage: "),
)


def prefixes(model: str, *, question: str | None = None) -> tuple[str, str]:
    """Return the prefixes of questions and of chunks for a model, by its name.

    `question` replaces the first one when given, even if it is empty.
    """
    known = _find_known(model)
    return (known[0] if question is None else question), known[1]


def prefixed(prefix: str, text: str) -> str:
    """Return a clean text of bounded length behind its prefix."""
    return prefix + clean(text[:MAX_CHARACTERS])[:MAX_CHARACTERS]


def _find_known(model: str) -> tuple[str, str]:
    name = model.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1].lower()
    for family, question, chunk in FAMILIES:
        if family == "-zh" and "bge-" not in name:
            continue
        if family in name:
            return question, chunk
    return "", ""
