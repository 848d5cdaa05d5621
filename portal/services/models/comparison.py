"""Comparison of two models on questions with known answers.

The questions are an operator's own set or, because the portal does not store users' queries,
sentences sampled from its chunks: does each model find the chunk that a sentence is in? That
favours models that match words, so it shows whether a model works here rather than which one is
better; use a set of real questions for that.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from portal.errors import EmbedderUnavailable, InvalidEmbedding, InvalidInput
from portal.services import Services
from portal.services.models import catalog, question_sets
from portal.services.models.question_sets import Question
from portal.store.embedding_models import builds as build_store
from portal.store.embedding_models import nearby, registry
from portal.store.embedding_models.nearby import Neighbour, SampledChunk
from portal.store.embedding_models.registry import RegisteredModel
from portal.text.layout.sentences import sentence_spans

SAMPLED_QUESTIONS = 40
DEPTH = 10

_MIN_SENTENCE_LENGTH = 12
_MAX_SENTENCE_LENGTH = 160


@dataclass(frozen=True, slots=True)
class ModelScore:
    """A model's results: shares of questions whose answer came first or among ten, the mean
    reciprocal rank, and median times to embed a question and to search."""

    name: str
    hit_1: float
    hit_10: float
    mrr_10: float
    embed_ms: float
    search_ms: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two models on the same questions; `overlap_10` is the share of the ten nearest chunks that
    both have in common. `kind` is ``sampled`` or ``set``."""

    kind: str
    questions: int
    scores: tuple[ModelScore, ModelScore]
    overlap_10: float


def compare(
    services: Services, first: str, second: str, *, questions_dir: Path | None = None
) -> Comparison:
    """Compare two registered models on a folder of question sets in the format of `./run eval`, or
    on sentences of stored chunks. Raises NoSuchModel, EmbedderUnavailable, InvalidInput when there
    are no questions."""
    pair = catalog.find(services, first), catalog.find(services, second)
    with services.database.begin() as session:
        if questions_dir is None:
            asked = list(map(_question, nearby.sample_chunks(session, limit=SAMPLED_QUESTIONS)))
        else:
            # Only questions whose answer is stored; documents are named by title or file stem.
            names = nearby.document_names(session)
            asked = [one for one in question_sets.read(questions_dir) if one.relevant & names]
    if not asked:
        raise InvalidInput("none of the questions has its answer stored here")
    for model in pair:
        # Unlike a search, a command or a worker can wait for a model to load; load both first, so
        # that the loading is not counted in the times.
        catalog.loaded(services, model).embedder.embed_chunks([asked[0].text])
    found = [[_nearest(services, model, question) for question in asked] for model in pair]
    scores = tuple(_score(model, asked, own) for model, own in zip(pair, found, strict=True))
    overlaps = [_overlap(*pair) for pair in zip(*found, strict=True)]
    return Comparison(
        kind="set" if questions_dir else "sampled",
        questions=len(asked),
        scores=(scores[0], scores[1]),
        overlap_10=statistics.fmean(overlaps),
    )


def compare_with_serving(services: Services, model: RegisteredModel) -> None:
    """Compare a new model with the active one, and store the result. Without chunks, or with a
    model that does not answer, there is nothing to store."""
    with services.database.begin() as session:
        active = registry.find_active(session)
    if active is None or active.id == model.id:
        return
    try:
        comparison = compare(services, active.name, model.name)
    except (EmbedderUnavailable, InvalidEmbedding, InvalidInput):
        return
    with services.database.begin() as session:
        build_store.note_comparison(session, model, asdict(comparison))


@dataclass(frozen=True, slots=True)
class _Found:
    neighbours: Sequence[Neighbour]
    embed_s: float
    search_s: float


def _nearest(services: Services, model: RegisteredModel, question: Question) -> _Found:
    started = time.perf_counter()
    vector = catalog.loaded(services, model).embedder.embed_query(question.text)
    embedded = time.perf_counter()
    with services.database.begin() as session:
        neighbours = nearby.nearest(
            session, model, vector, search=services.settings.search, limit=DEPTH
        )
    return _Found(neighbours, embedded - started, time.perf_counter() - embedded)


def _overlap(one: _Found, other: _Found) -> float:
    ids = [{neighbour.chunk_id for neighbour in found.neighbours} for found in (one, other)]
    return len(ids[0] & ids[1]) / max(1, *map(len, ids))


def _score(
    model: RegisteredModel, questions: Sequence[Question], found: Sequence[_Found]
) -> ModelScore:
    ranks = [_rank(question, own) for question, own in zip(questions, found, strict=True)]
    return ModelScore(
        name=model.name,
        hit_1=statistics.fmean(rank == 1 for rank in ranks),
        hit_10=statistics.fmean(rank is not None for rank in ranks),
        mrr_10=statistics.fmean(1 / rank if rank else 0.0 for rank in ranks),
        embed_ms=1000 * statistics.median(own.embed_s for own in found),
        search_ms=1000 * statistics.median(own.search_s for own in found),
    )


def _rank(question: Question, found: _Found) -> int | None:
    """Return the rank of the first relevant chunk, from 1."""
    for place, neighbour in enumerate(found.neighbours, start=1):
        if {str(neighbour.chunk_id), neighbour.title, neighbour.file_stem} & question.relevant:
            return place
    return None


def _question(chunk: SampledChunk) -> Question:
    """Return a question for a whole sentence from the middle of a chunk, or for its beginning if
    there is none."""
    sentences = [chunk.content[start:end].strip() for start, end in sentence_spans(chunk.content)]
    whole = [s for s in sentences if _MIN_SENTENCE_LENGTH <= len(s) <= _MAX_SENTENCE_LENGTH]
    text = whole[len(whole) // 2] if whole else chunk.content[:_MAX_SENTENCE_LENGTH]
    return Question(text, frozenset({str(chunk.id)}))
