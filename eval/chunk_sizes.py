"""Compare lengths and overlaps of chunks: `./run eval --chunking`.

Passages of a set are joined, in a fixed shuffled order, into documents of 20, which the portal's
splitter cuts in each size. Search works as in the engine, but in NumPy. A hit counts if it overlaps
the passage that answers. Longer chunks overlap more easily and cost more tokens, so the last
columns show how much of that passage is in the first five, and in as many as fit `BUDGET_TOKENS`.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from eval.cached_embedder import CachedEmbedder
from eval.reference import Bm25, candidates, cosines, fuse_reference
from eval.sets import Chunk, QuestionSet
from portal.domain.documents import ExtractedText
from portal.embeddings import create_embedder
from portal.embeddings.calibration import Calibration, QueryStatistics
from portal.ingest.chunking import split
from portal.settings import EmbeddingSettings
from portal.text.counting.tokens import token_weight
from portal.text.layout.sentences import sentence_spans
from portal.text.terms.analyser import index_terms, query_terms

SIZES = (100, 200, 300, 400, 600)
OVERLAPS = (0.0, 0.1, 0.2)
QUESTIONS = 80
BUDGET_TOKENS = 1_500
_CHUNKS = 100  # of a set, with those that answer.
_CHUNKS_PER_DOCUMENT = 20
_DEPTH = 100  # of each leg, as in the engine.
_BREAK = "\n\n"
_SEED = 7


@dataclass(frozen=True, slots=True)
class Piece:
    """Characters `start` to `end` of a document."""

    document: int
    start: int
    end: int
    text: str

    def shared(self, other: Piece) -> int:
        """Return the number of characters that both have."""
        if self.document != other.document:
            return 0
        return max(0, min(self.end, other.end) - max(self.start, other.start))


@dataclass(frozen=True, slots=True)
class Figures:
    """Means over questions, in percent; `chunks` is the number of chunks."""

    size: int
    overlap: int
    chunks: int
    hit_at_1: float
    hit_at_5: float
    ndcg_at_10: float
    found_in_5: float
    found_in_budget: float


@dataclass(frozen=True, slots=True)
class Corpus:
    """Documents made of the passages of a set, and the place of each passage."""

    texts: list[str]
    places: dict[str, Piece]


def corpus_of(one: QuestionSet) -> Corpus:
    texts, places = [], {}
    shuffled = _chosen(one)
    for number, first in enumerate(range(0, len(shuffled), _CHUNKS_PER_DOCUMENT)):
        text = ""
        for chunk in shuffled[first : first + _CHUNKS_PER_DOCUMENT]:
            start = len(text) + len(_BREAK) if text else 0
            text = f"{text}{_BREAK}{chunk.text}" if text else chunk.text
            places[chunk.id] = Piece(number, start, len(text), chunk.text)
        texts.append(text)
    return Corpus(texts, places)


def _chosen(one: QuestionSet) -> list[Chunk]:
    """Return the passages that answer and others, up to `_CHUNKS`, shuffled."""
    needed = frozenset().union(*(question.relevant for question in one.questions))
    rng = random.Random(_SEED)
    shuffled = rng.sample(one.chunks, len(one.chunks))
    shuffled.sort(key=lambda chunk: chunk.id not in needed)
    chosen = shuffled[: max(_CHUNKS, len(needed))]
    return rng.sample(chosen, len(chosen))


def cut(corpus: Corpus, size: int, overlap: float) -> list[Piece]:
    """Cut chunks of about `size` tokens, the overlap included."""
    found = []
    for number, text in enumerate(corpus.texts):
        extracted = ExtractedText(text=text, extractor="eval")
        starts = [start for start, _ in sentence_spans(text)]
        for chunk in split(extracted, target_tokens=round(size * (1 - overlap))):
            start, end = chunk.char_start or 0, chunk.char_end or 0
            start = _repeated(text, starts, start, size * overlap)
            found.append(Piece(number, start, end, text[start:end]))
    return found


def _repeated(text: str, sentence_starts: Sequence[int], start: int, tokens: float) -> int:
    """Return the start of a chunk extended by whole sentences of at most `tokens`."""
    if not tokens:
        return start
    begins = start
    for earlier in reversed([one for one in sentence_starts if one < start]):
        if token_weight(text[earlier:start]) > tokens:
            break
        begins = earlier
    return begins


def measure(
    one: QuestionSet, embedder: CachedEmbedder, calibration: Calibration, size: int, overlap: float
) -> Figures:
    corpus = corpus_of(one)
    chunks = cut(corpus, size, overlap)
    vectors = embedder.embed_chunks([chunk.text for chunk in chunks])
    bm25 = Bm25([index_terms(chunk.text).split() for chunk in chunks])
    judged = []
    for question in one.questions:
        answer = corpus.places[min(question.relevant)]
        statistics = calibration.query_statistics(
            embedder.embed_query(question.text), question.text
        )
        order = _ranked(calibration, statistics, question.text, vectors, bm25)
        judged.append(list(_judged([chunks[place] for place in order], answer)))
    means = [round(float(mean), 1) for mean in 100 * np.mean(judged, axis=0)]
    return Figures(size, round(100 * overlap), len(chunks), *means)


def _ranked(
    calibration: Calibration,
    statistics: QueryStatistics,
    question: str,
    vectors: np.ndarray[tuple[int, int], np.dtype[np.float32]],
    bm25: Bm25,
) -> list[int]:
    terms = query_terms(question)
    likeness = cosines(vectors, statistics.search_vector)
    places, seen = candidates(likeness, bm25.scores(terms), _DEPTH)
    fused = fuse_reference(
        likeness[places],
        seen[places],
        v_lo=statistics.v_lo,
        v_width=statistics.v_width,
        text_floor=calibration.text_floor(len(terms), bm25.size),
    )
    return [places[place] for place in np.argsort(-fused, kind="stable")]


def _judged(ranking: Sequence[Piece], answer: Piece) -> Iterator[float]:
    """Yield the measures of a question, in the order of `Figures`."""
    first = next((rank for rank, chunk in enumerate(ranking, 1) if chunk.shared(answer)), math.inf)
    yield float(first == 1)
    yield float(first <= 5)
    yield 1 / math.log2(1 + first) if first <= 10 else 0.0
    yield _share(ranking[:5], answer)
    yield _share(_affordable(ranking), answer)


def _affordable(ranking: Sequence[Piece]) -> list[Piece]:
    taken: list[Piece] = []
    tokens = 0.0
    for chunk in ranking:
        tokens += token_weight(chunk.text)
        if tokens > BUDGET_TOKENS and taken:
            break
        taken.append(chunk)
    return taken


def _share(chunks: Sequence[Piece], answer: Piece) -> float:
    """Return the share of the answer's passage that the chunks contain."""
    there = np.zeros(answer.end - answer.start, bool)
    for chunk in chunks:
        if chunk.shared(answer):
            there[max(0, chunk.start - answer.start) : chunk.end - answer.start] = True
    return float(there.mean())


def run(
    console: Console,
    loaded: Sequence[QuestionSet],
    *,
    provider: str | None,
    path: Path | None,
) -> int:
    """Measure each set with each size and overlap; print tables, and write the figures as JSON."""
    settings = EmbeddingSettings(provider=provider) if provider else EmbeddingSettings()
    embedder = CachedEmbedder(create_embedder(settings))
    calibration = Calibration.for_model(embedder)
    figures: dict[str, list[Figures]] = {one.name: [] for one in loaded}
    kinds = [(size, overlap) for overlap in OVERLAPS for size in SIZES]
    for size, overlap in track(kinds, "sizes and overlaps", console=console, transient=True):
        for one in loaded:
            figures[one.name].append(measure(one, embedder, calibration, size, overlap))
        if path:  # Kept in case the rest is interrupted.
            rows = {name: [asdict(row) for row in found] for name, found in figures.items()}
            path.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    for name, found in figures.items():
        console.print(_table(name, found))
    console.print(_table("mean of all", _means(list(figures.values()))))
    return 0


def _means(figures: Sequence[Sequence[Figures]]) -> list[Figures]:
    """Return means over sets, and the sum of chunks."""
    means = []
    for rows in zip(*figures, strict=True):
        values = np.mean([list(asdict(row).values())[3:] for row in rows], axis=0)
        chunks = sum(row.chunks for row in rows)
        rounded = [round(float(value), 1) for value in values]
        means.append(Figures(rows[0].size, rows[0].overlap, chunks, *rounded))
    return means


def _table(name: str, found: Sequence[Figures]) -> Table:
    table = Table(title=f"{name}, in percent")
    headings = ("tokens", "overlap", "chunks", "hit@1", "hit@5", "nDCG@10", "answer in 5",
                f"in {BUDGET_TOKENS} tokens")  # fmt: skip
    for heading in headings:
        table.add_column(heading, justify="right")
    for row in found:
        table.add_row(*(str(value) for value in asdict(row).values()))
    return table
