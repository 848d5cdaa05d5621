"""A corpus as arrays and texts, from size and seed only: no database, the same on all machines."""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import chain, repeat
from multiprocessing import get_context
from uuid import UUID

import numpy as np
import numpy.typing as npt

from bench.corpus import texts
from bench.corpus.vectors import LATENT_DIMENSIONS, Space
from portal.domain.embedding import Vector
from portal.embeddings.calibration.background import LANGUAGES, Background

Integers = npt.NDArray[np.int64]

QUESTION_COUNT = 400
MEAN_CHUNKS = 5
_BLOCK_DOCUMENTS = 250
_AHEAD = 4  # Blocks per process.
# Most chunks of a document are about its topic, some about another one.
_OFF_TOPIC_SHARE = 0.2
# Streams of random numbers, one per purpose, which keeps them independent.
_PLAN, _VECTORS, _TEXTS, _IDS = range(4)


@dataclass(frozen=True, slots=True, eq=False)
class Outline:
    """The chunks of a corpus: everything but their texts.

    `document_of`, `topics` (chunks,) and `languages`, `document_topics` (documents,) are indexes;
    `vectors` (chunks, dim); `questions` (questions, dim) are answered by the chunks `targets`.
    """

    seed: int
    document_of: Integers
    topics: Integers
    languages: Integers
    document_topics: Integers
    vectors: Vector
    targets: Integers
    questions: Vector

    @property
    def document_count(self) -> int:
        return len(self.languages)

    @property
    def chunk_count(self) -> int:
        return len(self.document_of)


def make_ids(seed: int, kind: int, count: int) -> list[UUID]:
    """Return ids in random order, like the database's own; `kind` selects the series."""
    drawn = np.random.default_rng([seed, _IDS, kind]).bytes(16 * count)
    return [UUID(bytes=drawn[at : at + 16], version=4) for at in range(0, len(drawn), 16)]


@dataclass(frozen=True, slots=True)
class WrittenChunk:
    chunk: int
    content: str
    terms: str


@dataclass(frozen=True, slots=True)
class WrittenDocument:
    document: int
    title: str
    chunks: tuple[WrittenChunk, ...]


@dataclass(frozen=True, slots=True)
class WrittenBlock:
    """Documents in order, and questions by their place in `Outline.targets`."""

    documents: tuple[WrittenDocument, ...]
    questions: dict[int, str]

    @property
    def first(self) -> int:
        """Return its first document."""
        return self.documents[0].document


def outline(
    size: int, seed: int, background: Background, *, mean_chunks: int = MEAN_CHUNKS
) -> Outline:
    """Plan a corpus of `size` chunks in documents of about `mean_chunks`."""
    rng = np.random.default_rng([seed, _PLAN])
    lengths = 1 + rng.poisson(mean_chunks - 1, size=size)
    document_of = np.repeat(np.arange(size), lengths)[:size]
    documents = int(document_of[-1]) + 1
    topic_count = max(100, documents // 40)
    document_topics = rng.integers(topic_count, size=documents)
    languages = rng.integers(len(LANGUAGES), size=documents)
    topics = document_topics[document_of]
    strays = rng.random(size) < _OFF_TOPIC_SHARE
    topics[strays] = rng.integers(topic_count, size=int(strays.sum()))
    targets = rng.choice(size, size=min(QUESTION_COUNT, size), replace=False)

    rng = np.random.default_rng([seed, _VECTORS])
    space = Space.like(background, topic_count=topic_count)
    of_document = rng.normal(size=(documents, LATENT_DIMENSIONS))
    places = space.chunks(rng, topics, of_document[document_of])
    names = [LANGUAGES[i] for i in languages[document_of]]
    vectors = np.vstack(
        [
            space.embed(rng, "passage", names[start : start + 10_000], places[start:][:10_000])
            for start in range(0, size, 10_000)
        ]
    )
    asked = space.questions(rng, places[targets])
    questions = space.embed(rng, "question", [names[i] for i in targets], asked)
    return Outline(
        seed=seed,
        document_of=document_of,
        topics=topics,
        languages=languages,
        document_topics=document_topics,
        vectors=vectors,
        targets=targets,
        questions=questions,
    )


def write_all(
    plan: Outline, *, processes: int, done: Container[int] = ()
) -> Iterator[WrittenBlock]:
    """Yield the texts and terms of the whole corpus, block by block, without the blocks whose first
    documents are in `done`."""
    bounds = np.searchsorted(plan.document_of, np.arange(plan.document_count + 1))
    tasks = []
    for first in range(0, plan.document_count, _BLOCK_DOCUMENTS):
        if first in done:
            continue
        last = min(first + _BLOCK_DOCUMENTS, plan.document_count)
        low, high = int(bounds[first]), int(bounds[last])
        asked = [
            (place, int(chunk)) for place, chunk in enumerate(plan.targets) if low <= chunk < high
        ]
        tasks.append(
            _Task(
                seed=plan.seed,
                first=first,
                languages=plan.languages[first:last].tolist(),
                document_topics=plan.document_topics[first:last].tolist(),
                bounds=bounds[first : last + 1].tolist(),
                topics=plan.topics[low:high].tolist(),
                asked=tuple(asked),
            )
        )
    if processes == 1:
        yield from map(_write_block, tasks)
        return
    # Spawned: threads of the parent (connections, numpy) do not survive a fork.
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        # A few blocks ahead: all blocks of a large corpus do not fit into memory.
        ahead = deque(pool.submit(_write_block, task) for task in tasks[: _AHEAD * processes])
        for task in chain(tasks[len(ahead) :], repeat(None)):
            if not ahead:
                return
            yield ahead.popleft().result()
            if task is not None:
                ahead.append(pool.submit(_write_block, task))


@dataclass(frozen=True, slots=True)
class _Task:
    seed: int
    first: int
    languages: Sequence[int]
    document_topics: Sequence[int]
    bounds: Sequence[int]
    topics: Sequence[int]
    asked: tuple[tuple[int, int], ...]


def _write_block(task: _Task) -> WrittenBlock:
    rng = np.random.default_rng([task.seed, _TEXTS, task.first])
    places = {chunk: place for place, chunk in task.asked}
    questions: dict[int, str] = {}
    documents = []
    for offset, number in enumerate(task.languages):
        language = LANGUAGES[number]
        title = texts.write_title(rng, task.document_topics[offset], language)
        chunks = []
        for chunk in range(task.bounds[offset], task.bounds[offset + 1]):
            drafted = texts.draft(rng, task.topics[chunk - task.bounds[0]], language)
            content = texts.write(drafted)
            chunks.append(
                WrittenChunk(chunk, content, texts.terms_of(f"{title}\n{content}", language))
            )
            if chunk in places:
                questions[places[chunk]] = texts.write_question(rng, drafted)
        documents.append(WrittenDocument(task.first + offset, title, tuple(chunks)))
    return WrittenBlock(tuple(documents), questions)
