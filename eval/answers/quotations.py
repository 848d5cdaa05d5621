"""Quality of quotations on question sets: `./run eval --answers --data DIR`.

Each question is asked of its own set, which has the answer, and of the other sets, which have none
(chunks under the title of the answer are hidden there). An answer is right if the first chunk that
it cites is the right one; on other sets, abstaining is right. Ranking and confidence are computed
as in the engine, but in NumPy with cached vectors, so that a run takes a minute and no database.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from eval import sets
from eval.cached_embedder import CachedEmbedder
from eval.reference import Bm25
from eval.samples import Material, coverage, prepare, rank
from eval.sets import Chunk, QuestionSet
from portal.answering import create_chat_model
from portal.answering.markers import MarkerStream
from portal.domain.answering import Abstained, ChatModel, ChatRequest, Source, TextDelta, Turn
from portal.domain.search import NEAREST_COMPARED
from portal.embeddings import create_embedder
from portal.embeddings.calibration import Calibration
from portal.embeddings.calibration.confidence import Evidence
from portal.settings import ChatSettings, EmbeddingSettings

TOP_N = 5
LOW = 0.5
# Questions of other sets, for each set.
OFF_TOPIC = 400
WITHOUT_SUBJECT = 200
_COMPARED = 10  # Results whose confidence depends on each other.
_NOWHERE = UUID(int=0)


@dataclass(frozen=True, slots=True, eq=False)
class Corpus:
    """The chunks of a set with their BM25 index."""

    name: str
    rows: npt.NDArray[np.int64]
    chunks: Sequence[Chunk]
    bm25: Bm25


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a question: the row of the first chunk cited, None after abstaining."""

    question: int
    answerable: bool
    cited: int | None
    is_right: bool
    seconds: float
    is_foreign: bool = True
    """False if the question was asked of its own set with the subject removed."""
    confidence: float = 0.0
    """The confidence of the first quotation."""


def corpora(material: Material, loaded: Sequence[QuestionSet]) -> list[Corpus]:
    found = []
    for one in loaded:
        rows = material.chunks_of(one.name)
        bm25 = Bm25([material.terms[row] for row in rows])
        found.append(Corpus(one.name, rows, one.chunks, bm25))
    return found


def retrieved(
    material: Material,
    calibration: Calibration,
    corpus: Corpus,
    question: int,
    *,
    without_subject: bool = False,
) -> list[tuple[int, Source]]:
    """Return rows and sources that a search finds, best first. Chunks under the title of the answer
    are hidden if the answer is not in the corpus, or `without_subject`."""
    statistics, terms = material.statistics[question], material.query_terms[question]
    is_foreign = material.answers[question].isdisjoint(corpus.rows.tolist())
    found = rank(
        material,
        calibration,
        question,
        corpus.rows,
        corpus.bm25,
        hides_subject=without_subject or is_foreign,
    )
    order = np.argsort(-found.fused, kind="stable")[:_COMPARED]
    best = found.places[order].tolist()
    evidence = [
        Evidence(
            document=place,
            language=material.languages[found.rows[place]],
            corrected=float(found.likeness[place]),
            keyword=float(found.keyword_scores[place]),
            coverage=coverage(terms, material.terms[found.rows[place]]),
        )
        for place in best
    ]
    nearest = np.sort(found.likeness)[::-1][:NEAREST_COMPARED]
    scale = calibration.text_scale(len(terms), corpus.bm25.size)
    confidences = calibration.confidences(statistics, evidence, scale, nearest.tolist())
    scores = found.fused[order].tolist()
    rows = [int(found.rows[place]) for place in best]
    return [
        (row, _source(number, corpus, row, score, confidence))
        for number, row, score, confidence in zip(
            range(1, TOP_N + 1), rows, scores, confidences, strict=False
        )
    ]


def _source(number: int, corpus: Corpus, row: int, score: float, confidence: float) -> Source:
    place = row - int(corpus.rows[0])
    text = corpus.chunks[place].text
    return Source(
        number=number,
        document_id=UUID(int=place + 1),
        revision_id=_NOWHERE,
        chunk_id=UUID(int=place + 1),
        title=corpus.chunks[place].title,
        media_type="text/plain",
        text=text,
        char_start=0,
        char_end=len(text),
        language="",
        score=score,
        confidence=confidence,
        low_confidence=confidence < LOW,
    )


def first_cited(
    chat: ChatModel, question: str, language: str, sources: Sequence[Source]
) -> tuple[int, float]:
    """Return the number of the source that an answer cites first, and the confidence of its first
    quotation; zeros if it abstains."""
    request = ChatRequest(
        system="",
        turns=(Turn("user", question),),
        question=question,
        language=language,
        sources=sources,
    )
    markers = MarkerStream(sources)
    confidence = 0.0
    for event in chat.stream(request):
        if isinstance(event, Abstained):
            return 0, 0.0
        if isinstance(event, TextDelta):
            markers.feed(event.text)
            if event.quoted is not None:
                confidence = confidence or event.quoted.confidence
    markers.close()
    return (markers.order[0], confidence) if markers.order else (0, 0.0)


def asked(world: World, corpus: Corpus, limit: int = OFF_TOPIC) -> list[int]:
    """Return about `limit` questions of the set, evenly chosen, and at most `limit` questions of
    other sets that its chunks do not answer."""
    material = world.material
    own = material.questions_of(corpus.name).tolist()
    about = set(material.titles[corpus.rows].tolist())
    others = [
        question
        for question in sorted({*range(len(world.questions))}.difference(own))
        if about.isdisjoint(material.titles[list(material.answers[question])].tolist())
    ]
    sampled = random.Random(corpus.name).sample(others, min(limit, len(others)))
    return [*own[:: max(1, len(own) // limit)], *sampled]


def outcomes(
    chat: ChatModel, world: World, corpus: Corpus, limit: int = OFF_TOPIC
) -> Iterator[Outcome]:
    """Yield the outcomes of every question `asked`, and of some of the set's own with all chunks
    under the title of the answer hidden."""
    for question in asked(world, corpus, limit):
        yield _outcome(chat, world, corpus, question)
    own = world.material.questions_of(corpus.name).tolist()
    for question in own[:: max(1, len(own) // min(limit, WITHOUT_SUBJECT))]:
        yield _outcome(chat, world, corpus, question, without_subject=True)


def _outcome(
    chat: ChatModel, world: World, corpus: Corpus, question: int, *, without_subject: bool = False
) -> Outcome:
    material = world.material
    found = retrieved(
        material, world.calibration, corpus, question, without_subject=without_subject
    )
    language = material.statistics[question].language
    sources = [source for _, source in found]
    began = time.process_time()
    number, confidence = first_cited(chat, world.questions[question], language, sources)
    seconds = time.process_time() - began
    cited = next((row for row, source in found if source.number == number), None)
    answers = material.answers[question]
    there = not without_subject and not answers.isdisjoint(corpus.rows.tolist())
    is_right = there and cited in answers
    return Outcome(question, there, cited, is_right, seconds, not without_subject, confidence)


def report(rows: dict[str, list[Outcome]]) -> Table:
    table = Table(title="Answers by quotation, in percent")
    headings = ("right", "of those given", "abstained: foreign", "subject gone", "ms")
    for heading in ("set", *headings):
        table.add_column(heading, justify="left" if heading == "set" else "right")
    for name, found in rows.items():
        own = [one for one in found if one.answerable]
        given = [one for one in own if one.cited is not None]
        foreign = [one for one in found if not one.answerable and one.is_foreign]
        without = [one for one in found if not one.answerable and not one.is_foreign]
        table.add_row(
            name,
            _percent([one.is_right for one in own]),
            _percent([one.is_right for one in given]),
            _percent([one.cited is None for one in foreign]),
            _percent([one.cited is None for one in without]),
            f"{1000 * float(np.median([one.seconds for one in found])):.1f}",
        )
    return table


def _percent(outcomes_: Sequence[bool]) -> str:
    return f"{100 * sum(outcomes_) / len(outcomes_):.1f}" if outcomes_ else "–"


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """All sets, loaded and embedded."""

    material: Material
    calibration: Calibration
    corpora: list[Corpus]
    questions: list[str]


def read_world(data: Path | None) -> World:
    directory = sets.data_dir(data)
    embedder = CachedEmbedder(create_embedder(EmbeddingSettings()))
    calibration = Calibration.for_model(embedder)
    material = prepare(embedder, calibration, directory)
    loaded = [sets.load(directory, name) for name in material.names]
    return World(
        material=material,
        calibration=calibration,
        corpora=corpora(material, loaded),
        questions=[question.text for one in loaded for question in one.questions],
    )


def measure(data: Path | None, limit: int | None = None) -> int:
    """Print the table for all sets of a folder, with at most `limit` questions of each kind."""
    chat = create_chat_model(ChatSettings(), create_embedder(EmbeddingSettings()))
    world = read_world(data)
    rows = {
        corpus.name: list(outcomes(chat, world, corpus, limit or OFF_TOPIC))
        for corpus in world.corpora
    }
    Console().print(report(rows))
    return 0
