"""Deterministic embedding models for tests, based on words."""

from __future__ import annotations

import hashlib
import re

import numpy as np
from langchain_core.embeddings import Embeddings


class WordEmbeddings(Embeddings):
    """Embed a text as the sum of its words' vectors."""

    def __init__(self, size: int = 64) -> None:
        self.size = size

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        total = np.zeros(self.size)
        for word in re.findall(r"\w+", text.lower()) or [""]:
            seed = int.from_bytes(hashlib.sha256(word.encode("utf-8", "replace")).digest()[:4])
            total += np.random.default_rng(seed).normal(size=self.size)
        return [float(number) for number in total]
