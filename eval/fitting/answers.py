"""Fit the weights of `portal.answering.quoting.relevance`: `python -m eval.fitting.answers`.

Logistic regressions over the best statement for each question of the tune half, the colloquial and
the everyday set, and of sets in further folders that are given; all sets weigh the same. With the
model that reads statements, the same in the other language where the question's own has no answer,
and by words alone. Prints the weights, how often that statement answers, and the calibration error
of weights that were fitted without the set in question.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from eval.answers import sets as answer_sets
from eval.answers.quality import engine_of
from eval.answers.sets import AnswerQuestion, Expected
from eval.measures import calibration_error
from portal.answering.quoting.relevance import (
    MIN_CHANCE,
    NO_STATEMENT,
    Candidate,
    Evidence,
    Judged,
    judge,
)
from portal.domain.answering import Source
from portal.domain.embedding import StatementReader
from portal.embeddings import create_embedder
from portal.settings import EmbeddingSettings

Floats = npt.NDArray[np.float64]
# Of features and the log odds of the best statement in the question's language.
Features = Callable[[Evidence, float], tuple[float, ...]]
_MIN_LOG_ODDS = math.log(MIN_CHANCE / (1 - MIN_CHANCE))
_RIDGE = 1e-2
PLAIN_WORDS = tuple(answer_sets.SHIPPED.parent / name for name in ("colloquial", "everyday"))


@dataclass(frozen=True, slots=True)
class Found:
    """A question with the sources that may answer it."""

    question: AnswerQuestion
    language: str
    sources: tuple[Source, ...]
    of_set: str


def find() -> list[Found]:
    """Return what a search finds for each question."""
    found = []
    folders = (*PLAIN_WORDS, *map(Path, sys.argv[1:]))
    for chosen in (*answer_sets.load_halves("tune"), *map(answer_sets.load, folders)):
        with engine_of(chosen) as engine:
            found += [
                Found(one, *engine.find_sources(one.text), chosen.name)
                for one in chosen.questions
                if one.expected is not Expected.REPLY and one.after is None
            ]
    return found


def by_reading(evidence: Evidence, _best: float) -> tuple[float, ...]:
    return (evidence.read or 0.0, evidence.own, evidence.holds, evidence.rank, 1.0)


def across(evidence: Evidence, best: float) -> tuple[float, ...]:
    return (evidence.read or 0.0, best, evidence.holds, 1.0)


def by_words(evidence: Evidence, _best: float) -> tuple[float, ...]:
    return (evidence.odds, evidence.met, evidence.own, 1.0)


def is_right(question: AnswerQuestion, source: Source, candidate: Candidate) -> bool:
    """Return whether a statement has gold words: all, or for lists and two parts any."""
    statement = candidate.statement
    share = question.share_of_gold(source.text[statement.start : statement.end])
    return bool(question.gold) and (share == 1 or (question.kind in {"list", "two"} and share > 0))


def samples(
    found: Sequence[Found], reader: StatementReader | None, features: Features, *, is_foreign: bool
) -> tuple[Floats, Floats, list[str]]:
    """Return the features of each question's best statement, whether it answers, and its set."""
    rows, right, sets = [], [], []
    for one in found:
        judged = judge(one.question.text, one.language, one.sources, reader)
        own = _best(judged, is_foreign=False)
        best = _best(judged, is_foreign=is_foreign)
        log_odds = own[1].evidence.log_odds() if own else NO_STATEMENT
        if best is not None and not (is_foreign and log_odds >= _MIN_LOG_ODDS):
            rows.append(features(best[1].evidence, log_odds))
            right.append(is_right(one.question, *best))
            sets.append(one.of_set)
    return np.array(rows), np.array(right, float), sets


def _best(judged: Sequence[Judged], *, is_foreign: bool) -> tuple[Source, Candidate] | None:
    pairs = [
        (one.source, candidate)
        for one in judged
        for candidate in one.candidates
        if candidate.chance and one.is_foreign is is_foreign
    ]
    return max(pairs, key=lambda pair: pair[1].chance, default=None)


def fit(features: Floats, right: Floats, sets: Sequence[str], steps: int = 60) -> Floats:
    """Fit weights and constant by Newton's method; all sets weigh the same."""
    found = np.zeros(features.shape[1])
    counts = Counter(sets)
    weights = np.array([len(sets) / len(counts) / counts[one] for one in sets])
    for _ in range(steps):
        chances = chances_of(features, found)
        gradient = features.T @ (weights * (chances - right)) + _RIDGE * found
        curvature = (features * (weights * chances * (1 - chances))[:, None]).T @ features
        found = found - np.linalg.solve(curvature + _RIDGE * np.eye(len(found)), gradient)
    return found


def chances_of(features: Floats, weights: Floats) -> Floats:
    chances: Floats = 1 / (1 + np.exp(-np.clip(features @ weights, -30, 30)))
    return chances


def fitted_without(features: Floats, right: Floats, sets: Sequence[str]) -> Floats:
    """Return each chance by weights fitted to the other sets."""
    chances = np.zeros(len(right))
    for one in set(sets):
        is_left_out = np.array(sets) == one
        others = [name for name in sets if name != one]
        weights = fit(features[~is_left_out], right[~is_left_out], others)
        chances[is_left_out] = chances_of(features[is_left_out], weights)
    return chances


def main() -> None:
    found = find()
    embedder = create_embedder(EmbeddingSettings())
    reader = embedder if isinstance(embedder, StatementReader) else None
    for name, used, features, is_foreign in (
        ("reading", reader, by_reading, False),
        ("reading across languages", reader, across, True),
        ("words", None, by_words, False),
    ):
        rows, right, sets = samples(found, used, features, is_foreign=is_foreign)
        error = calibration_error(fitted_without(rows, right, sets), right)
        print(f"by {name}: {np.round(fit(rows, right, sets), 2)}")
        print(f"  right {100 * right.mean():.1f} %, calibration error {error:.3f}")


if __name__ == "__main__":
    main()
