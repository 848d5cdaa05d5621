"""The exact results of a search: both legs by brute force, and the same fusion over them.

Independent of the engine: vectors in NumPy; BM25 from one ranking of the whole corpus, filtered
here instead of in the index; fusion from the formulas of docs/retrieval-quality.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from uuid import UUID

import numpy as np
import numpy.typing as npt
import psycopg

from bench.corpus import Corpus, Question, best_first
from bench.corpus.profiles import Profile
from portal.domain.embedding import Vector
from portal.domain.search import Fusion, Normalisation
from portal.domain.search.bm25 import SHARED_CHUNKS
from portal.domain.search.fusion import MAX_COMPARED_BY_PROXIMITY as COMPARED
from portal.domain.search.fusion import PROXIMITY
from portal.services.search import dynamic_config
from portal.text.language import detect_language
from portal.text.terms.analyser import query_terms
from portal.text.terms.lexicon import translated_share, translates, translations
from portal.text.terms.proximity import closeness

Places = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float64]


def candidates_per_leg(corpus: Corpus) -> int:
    """Return the number of candidates per leg for ten results, as an explained search reports."""
    found = corpus.search(corpus.profile("100 %"), corpus.questions[0], explain=True)
    explanation = found.explanation or {}
    return int(explanation["counts"]["vector_leg"])


@dataclass(frozen=True, slots=True)
class Fusing:
    """The portal's configuration of fusion."""

    fusion: Fusion
    normalisation: Normalisation
    vector_weight: float
    text_weight: float
    rrf_k: int

    @classmethod
    def configured(cls, corpus: Corpus) -> Fusing:
        with corpus.services.database.begin() as session:
            config = dynamic_config.read(session, corpus.services.settings.search)
        return cls(
            fusion=config.fusion,
            normalisation=config.normalisation,
            vector_weight=config.semantic_weight,
            text_weight=config.bm25_weight,
            rrf_k=config.rrf_k,
        )


class Truth:
    """Exact results over one corpus. BM25 rankings are cached, because they are slow."""

    def __init__(self, corpus: Corpus, questions: Sequence[Question]) -> None:
        self._corpus = corpus
        self._row_of = {question.text: row for row, question in enumerate(questions)}
        plain = np.stack([question.vector for question in questions])
        corrected = np.stack([corpus.search_vector(question) for question in questions])
        self._plain = plain @ corpus.vectors.T
        self._corrected = corrected @ corpus.vectors.T
        self._fusing = Fusing.configured(corpus)
        self._leg_limit = candidates_per_leg(corpus)
        self._place_of = {id_.bytes: place for place, id_ in enumerate(corpus.chunk_ids)}
        self.bm25_ranking = cache(self._bm25_ranking)

    def places(self, chunk_ids: list[UUID]) -> list[int]:
        """Return the corpus indexes of chunks."""
        return [self._place_of[id_.bytes] for id_ in chunk_ids]

    def nearest(self, question: Question, profile: Profile, k: int) -> list[int]:
        """Return the k allowed chunks nearest to the uncorrected question."""
        return _listed(self._best(self._plain, question, profile, k))

    def hybrid(self, question: Question, profile: Profile, k: int) -> list[int]:
        """Return the k best chunks by fusion of exact legs."""
        corpus = self._corpus
        statistics = corpus.services.calibration.query_statistics(question.vector, question.text)
        nearest = self._best(self._corrected, question, profile, self._leg_limit)
        matching, bm25 = self.bm25_ranking(question.text)
        is_allowed = corpus.allowed(profile)[matching]
        matching, bm25 = (
            matching[is_allowed][: self._leg_limit],
            bm25[is_allowed][: self._leg_limit],
        )
        found = np.union1d(nearest, matching)
        if not found.size:
            return []
        words = dict(zip(matching.tolist(), bm25.tolist(), strict=True))
        floor = corpus.services.calibration.text_floor(len(query_terms(question.text)), corpus.size)
        fused = self._fuse(
            likeness=self._corrected[self._row_of[question.text], found].astype(np.float64),
            bm25=np.array([words.get(place, 0.0) for place in found.tolist()]),
            vector_ranks=_ranks(found, nearest),
            text_ranks=_ranks(found, matching),
            scale=(statistics.v_lo, statistics.v_width),
            floor=floor,
        )
        order = np.argsort(-fused, kind="stable")[:COMPARED]
        fade = min(1.0, max(words.values(), default=0.0) / floor) ** 2
        places = self._near(question, found[order], fused[order], fade)
        return _listed(places[:k])

    def _near(self, question: Question, places: Places, fused: Scores, fade: float) -> Places:
        """Return the places, reordered by how close words are to each other, or translated."""
        how = self._fusing
        if (how.fusion, how.normalisation) != (Fusion.WEIGHTED, Normalisation.CALIBRATED):
            return places
        terms = query_terms(question.text)
        language, senses = detect_language(question.text), translations(terms)
        close = [
            translated_share(terms, senses, words)
            if translates(language, spoken)
            else PROXIMITY * fade * closeness(terms, words)
            for words, spoken in self._words_of(places)
        ]
        share = how.text_weight / (how.vector_weight + how.text_weight)
        added = share * np.where(fused > 0, close, 0.0)
        return places[np.argsort(-(fused + added), kind="stable")]

    def _words_of(self, places: Places) -> list[tuple[str, str]]:
        """Return the terms and the language of each chunk."""
        ids = [self._corpus.chunk_ids[place] for place in _listed(places)]
        with psycopg.connect(self._corpus.services.database.conninfo) as connection:
            query = "SELECT id, terms, language FROM document_chunks WHERE id = ANY(%s)"
            found: dict[UUID, tuple[str, str]] = {
                id_: (terms, language)
                for id_, terms, language in connection.execute(query, [ids]).fetchall()
            }
        return [found[id_] for id_ in ids]

    def _best(self, cosines: Vector, question: Question, profile: Profile, k: int) -> Places:
        row = cosines[self._row_of[question.text]]
        return best_first(np.where(self._corpus.allowed(profile), row, -np.inf), k)

    def _fuse(
        self,
        *,
        likeness: Scores,
        bm25: Scores,
        vector_ranks: Scores,
        text_ranks: Scores,
        scale: tuple[float, float],
        floor: float,
    ) -> Scores:
        how = self._fusing
        if how.fusion is Fusion.RRF:
            return 1 / (how.rrf_k + vector_ranks) + 1 / (how.rrf_k + text_ranks)
        best = max(float(bm25.max()), 1e-12)
        parts: Mapping[Normalisation, tuple[Scores, Scores]] = {
            Normalisation.RAW: (likeness, bm25 / best),
            Normalisation.MINMAX: (_minmax(likeness), _minmax(bm25)),
            Normalisation.CALIBRATED: (
                (likeness - scale[0]) / scale[1],
                bm25 / best * min(1.0, best / floor) ** 2,
            ),
        }
        vector_part, text_part = parts[how.normalisation]
        total = how.vector_weight + how.text_weight
        return (how.vector_weight * vector_part + how.text_weight * text_part) / total

    def _bm25_ranking(self, text: str) -> tuple[Places, Scores]:
        """Return every chunk with a word of the question and its score, best first."""
        index, words = SHARED_CHUNKS, " ".join(query_terms(text))
        statement = f"""
            SELECT id, distance FROM (
                SELECT chunk_id AS id, terms <@> to_bm25query(%(words)s, '{index.name}') AS distance
                  FROM {index.table}
                 ORDER BY terms <@> to_bm25query(%(again)s, '{index.name}')
                 LIMIT {self._corpus.size}
            ) ranked WHERE distance < 0
        """
        with psycopg.connect(
            self._corpus.services.database.conninfo, prepare_threshold=None
        ) as connection:
            # Without a limit the planner prefers a sequential scan that scores every row on its
            # own, which takes minutes.
            connection.execute("SET LOCAL enable_seqscan = off")
            cursor = connection.cursor(binary=True)
            rows = cursor.execute(statement.encode(), {"words": words, "again": words}).fetchall()
        places = np.array([self._place_of[id_.bytes] for id_, _ in rows], np.int64)
        return places, -np.array([distance for _, distance in rows], np.float64)


def _listed(places: Places) -> list[int]:
    return [int(place) for place in places]


def _ranks(found: Places, leg: Places) -> Scores:
    """Return ranks in a leg, from 1; infinite for chunks that it did not find."""
    rank_of = {place: rank for rank, place in enumerate(leg.tolist(), start=1)}
    return np.array([rank_of.get(place, np.inf) for place in found.tolist()])


def _minmax(scores: Scores) -> Scores:
    span = float(scores.max() - scores.min())
    return (scores - scores.min()) / span if span else np.zeros_like(scores)


def recall(found: list[int], wanted: list[int]) -> float:
    """Return the share of `wanted` that was found; 1 if there was nothing to find."""
    return len(set(found) & set(wanted)) / len(wanted) if wanted else 1.0
