"""Questions with and without an answer in a collection, to fit and judge confidence.

Every set's questions are asked of its own chunks and of every other set's, of samples of them from
200 chunks down to a single one, and of several sets' in one collection. Chunks under the same title
as an answer are hidden from questions whose answer is not there, since they might hold another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from eval import sets
from eval.reference import TEXT_WEIGHT, Bm25, Floats, candidates, fuse_reference
from portal.domain.embedding import Embedder, Vector
from portal.domain.search import NEAREST_COMPARED
from portal.domain.search.fusion import MAX_COMPARED_BY_PROXIMITY
from portal.embeddings.calibration import Calibration, QueryStatistics
from portal.embeddings.calibration.confidence import ConfidenceModels, Evidence
from portal.services.documents.ingestion.chunk_storage import chunk_terms
from portal.text.language import detect_language
from portal.text.terms.analyser import query_terms
from portal.text.terms.lexicon import translated_share, translates, translations

DEPTH = 50
SHOWN = 10  # Results that compete with each other.
JUDGED = 5

# Collection sizes in chunks, and how many random collections of each size are asked.
PARTS = {200: 2, 50: 4, 20: 6, 5: 12, 1: 24}
QUESTIONS_A_PART = 24


@dataclass(frozen=True, slots=True, eq=False)
class Material:
    """All chunks and questions, with the data for ranking; `set_of_…` has the set of each row."""

    names: tuple[str, ...]
    vectors: Vector
    terms: list[list[str]]
    languages: list[str]
    titles: npt.NDArray[np.int64]
    set_of_chunk: npt.NDArray[np.int64]
    query_terms: list[tuple[str, ...]]
    statistics: list[QueryStatistics]
    likeness: Floats
    answers: list[frozenset[int]]
    set_of_question: npt.NDArray[np.int64]

    def chunks_of(self, *names: str) -> npt.NDArray[np.int64]:
        chosen = [self.names.index(name) for name in names]
        return np.flatnonzero(np.isin(self.set_of_chunk, chosen))

    def questions_of(self, name: str) -> npt.NDArray[np.int64]:
        return np.flatnonzero(self.set_of_question == self.names.index(name))


@dataclass(frozen=True, slots=True, eq=False)
class _Collection:
    """The rows of chunks, and their keyword ranking; `part` is the kind of collection."""

    part: str
    chunks: npt.NDArray[np.int64]
    bm25: Bm25


@dataclass(frozen=True, slots=True)
class Judged:
    """A judged result among the first of a search, in a collection of the kind `part`."""

    asked: str
    part: str
    answerable: bool
    features: dict[str, float]
    relevant: bool
    first: bool
    same_language: bool

    def chance(self, models: ConfidenceModels) -> float:
        return models.confidence(self.features, same_language=self.same_language)


def prepare(embedder: Embedder, calibration: Calibration, directory: Path) -> Material:
    """Load and embed every set of a directory."""
    names = tuple(sets.names(directory))
    loaded = [sets.load(directory, name) for name in names]
    chunks = [(place, p) for place, one in enumerate(loaded) for p in one.chunks]
    questions = [(place, q) for place, one in enumerate(loaded) for q in one.questions]
    rows = {(place, p.id): row for row, (place, p) in enumerate(chunks)}
    titles: dict[str, int] = {}
    vectors = embedder.embed_chunks([p.text for _, p in chunks])
    statistics = [
        calibration.query_statistics(embedder.embed_query(q.text), q.text) for _, q in questions
    ]
    return Material(
        names=names,
        vectors=vectors,
        terms=[chunk_terms(p.title, None, None, p.text).split() for _, p in chunks],
        languages=[detect_language(p.text) for _, p in chunks],
        titles=np.array([titles.setdefault(p.title or p.id, len(titles)) for _, p in chunks]),
        set_of_chunk=np.array([place for place, _ in chunks]),
        query_terms=[query_terms(q.text) for _, q in questions],
        statistics=statistics,
        likeness=np.stack([s.search_vector for s in statistics]).astype(float) @ vectors.T,
        answers=[frozenset(rows[place, one] for one in q.relevant) for place, q in questions],
        set_of_question=np.array([place for place, _ in questions]),
    )


def samples(material: Material, calibration: Calibration, *, seed: int = 0) -> list[Judged]:
    """Return judged results of all questions in all kinds of collections."""
    rng = np.random.default_rng(seed)
    found: list[Judged] = []
    for part, asked, chunks in _collections(material, rng):
        collection = _Collection(part, chunks, Bm25([material.terms[row] for row in chunks]))
        for question in asked:
            found += _ask(material, calibration, int(question), collection)
    return found


def _collections(
    material: Material, rng: np.random.Generator
) -> Iterator[tuple[str, npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """Yield the kind of each collection, its questions, and its chunks."""
    every = np.arange(len(material.query_terms))
    for name in material.names:
        whole = material.chunks_of(name)
        yield "whole", every, whole
        # Half of the subjects are removed: the rest resembles an answer but does not contain one.
        titles = np.unique(material.titles[whole])
        gone = rng.choice(titles, len(titles) // 2, replace=False)
        rest = whole[~np.isin(material.titles[whole], gone)]
        own = [q for q in material.questions_of(name) if not material.answers[q] & set(rest)]
        yield "subject gone", np.array(own, int), rest
        for size, times in PARTS.items():
            for _ in range(times):
                chunks = rng.choice(whole, min(size, len(whole)), replace=False)
                there = set(chunks.tolist())
                own = [q for q in every if material.answers[q] & there][: 4 * QUESTIONS_A_PART]
                other = rng.choice(every, QUESTIONS_A_PART, replace=False)
                yield str(size), np.unique(np.concatenate([np.array(own, int), other])), chunks
    for pair in _mixtures(material):
        asked = rng.choice(every, len(every) // 4, replace=False)
        yield "mixed", asked, material.chunks_of(*pair)
    if len(several := _largest_mixture(material)) > 2:
        yield "several mixed", every, material.chunks_of(*several)


def _mixtures(material: Material) -> Iterator[tuple[str, str]]:
    """Yield pairs of sets in different languages that share no subject."""
    for place, one in enumerate(material.names):
        for other in material.names[place + 1 :]:
            first, second = material.chunks_of(one), material.chunks_of(other)
            shared = np.intersect1d(material.titles[first], material.titles[second])
            if not len(shared) and material.languages[first[0]] != material.languages[second[0]]:
                yield one, other


def _largest_mixture(material: Material) -> list[str]:
    """Return sets that share no subject, largest first, like a library in several languages."""
    chosen: list[str] = []
    for name in sorted(material.names, key=lambda one: -len(material.chunks_of(one))):
        titles = material.titles[material.chunks_of(name)]
        if not np.isin(titles, material.titles[material.chunks_of(*chosen)]).any():
            chosen.append(name)
    return chosen


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """The result of a search before words and translations are compared. `rows` are those of the
    chunks that it may find, with their cosines and BM25; `places` are the candidates among them,
    with their fused scores."""

    rows: npt.NDArray[np.int64]
    likeness: Floats
    keyword_scores: Floats
    places: npt.NDArray[np.int64]
    fused: Floats


def rank(
    material: Material,
    calibration: Calibration,
    question: int,
    rows: npt.NDArray[np.int64],
    bm25: Bm25,
    *,
    hides_subject: bool,
) -> Ranking:
    """Rank chunks for a question, as the engine does; with `hides_subject` without those under the
    title of an answer, which might hold another."""
    statistics, terms = material.statistics[question], material.query_terms[question]
    words, likeness = bm25.scores(terms), material.likeness[question, rows]
    if hides_subject:
        about = material.titles[list(material.answers[question])]
        shown = ~np.isin(material.titles[rows], about)
        words, likeness, rows = words[shown], likeness[shown], rows[shown]
    places, seen = candidates(likeness, words, DEPTH)
    fused = fuse_reference(
        likeness[places],
        seen[places],
        v_lo=statistics.v_lo,
        v_width=statistics.v_width,
        text_floor=calibration.text_floor(len(terms), bm25.size),
    )
    return Ranking(rows, likeness, seen, np.asarray(places, np.int64), fused)


def _ask(
    material: Material,
    calibration: Calibration,
    question: int,
    collection: _Collection,
) -> list[Judged]:
    statistics, terms = material.statistics[question], material.query_terms[question]
    answerable = not material.answers[question].isdisjoint(collection.chunks.tolist())
    bm25 = collection.bm25
    ranking = rank(
        material, calibration, question, collection.chunks, bm25, hides_subject=not answerable
    )
    chunks, likeness, seen = ranking.rows, ranking.likeness, ranking.keyword_scores
    places, fused = ranking.places, ranking.fused
    if not len(chunks):
        return []
    compared = np.argsort(-fused, kind="stable")[:MAX_COMPARED_BY_PROXIMITY]
    translated = _translated(material, terms, chunks[places[compared]], statistics.language)
    for place, share in zip(compared, translated, strict=True):
        fused[place] += TEXT_WEIGHT * (share or 0.0) if fused[place] > 0 else 0.0
    share_of = dict(zip(places[compared].tolist(), translated, strict=True))
    best = [places[place] for place in np.argsort(-fused, kind="stable")[:SHOWN]]
    evidence = [
        Evidence(
            document=place,
            language=material.languages[chunks[place]],
            corrected=float(likeness[place]),
            keyword=float(seen[place]),
            coverage=coverage(terms, material.terms[chunks[place]]),
            translated=share_of.get(place),
        )
        for place in best
    ]
    nearest = np.sort(likeness)[::-1][:NEAREST_COMPARED]
    scale = calibration.text_scale(len(terms), bm25.size)
    features = calibration.features(statistics, evidence, scale, nearest.tolist())
    asked = material.names[material.set_of_question[question]]
    return [
        Judged(
            asked=asked,
            part=collection.part,
            answerable=answerable,
            features=features[rank],
            relevant=int(chunks[place]) in material.answers[question],
            first=rank == 0,
            same_language=evidence[rank].language == statistics.language,
        )
        for rank, place in enumerate(best[:JUDGED])
    ]


def _translated(
    material: Material, terms: Sequence[str], chunks: Sequence[int], language: str
) -> list[float | None]:
    """Return the share of the question's words that chunks in the other language have in
    translation; None for the other chunks."""
    is_other = [translates(language, material.languages[row]) for row in chunks]
    senses = translations(terms) if any(is_other) else []
    return [
        translated_share(terms, senses, " ".join(material.terms[row])) if other else None
        for row, other in zip(chunks, is_other, strict=True)
    ]


def coverage(terms: Sequence[str], chunk: Sequence[str]) -> float:
    """Return the share of a question's terms that are among those of a chunk."""
    found = set(chunk)
    return sum(term in found for term in terms) / max(1, len(terms))
