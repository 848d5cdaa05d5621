"""Fit the weights of `portal.answering.quoting.judging.evidence`: `python -m eval.fitting.answers`.

Logistic regressions over the best statement for each question of eleven sets that the model was
not trained on: with the model that reads statements, the same in the other language where the
question's own has no answer, and by words alone. Prints the weights, how often that statement
answers, and the calibration error of weights that were fitted without the documents in question.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from eval.answers import sets as answer_sets
from eval.answers.quality import engine_of
from eval.answers.sets import AnswerQuestion, Expected
from eval.fitting import logistic
from eval.measures import calibration_error
from eval.reference import Floats
from portal.answering.quoting.judging.evidence import NO_STATEMENT, Evidence
from portal.answering.quoting.judging.judged import Candidate, Judged
from portal.answering.quoting.judging.relevance import judge
from portal.domain.answering import Source
from portal.domain.embedding import StatementReader
from portal.embeddings import create_embedder
from portal.settings import EmbeddingSettings

# Of features and the log odds of the best statement in the question's language.
Features = Callable[[Evidence, float], tuple[float, ...]]
_COLLEAGUES = (
    *("one", "three", "five", "nine", "nineteen", "twenty-one"),
    *("thirty", "thirty-one", "thirty-two", "thirty-three", "thirty-four"),
)
SETS = tuple(answer_sets.SHIPPED.parent / "colleagues" / name for name in _COLLEAGUES)
_FOLDS = 5
_RIDGE = 1e-2


@dataclass(frozen=True, slots=True)
class Found:
    """A question with the sources that may answer it."""

    question: AnswerQuestion
    language: str
    sources: tuple[Source, ...]


def find() -> list[Found]:
    """Return what a search finds for each question."""
    found = []
    for chosen in (*answer_sets.load_halves("tune"), *map(answer_sets.load, SETS)):
        with engine_of(chosen.documents) as engine:
            found += [
                Found(one, *engine.find_sources(one.text))
                for one in chosen.questions
                if one.expected is not Expected.REPLY and not one.after
            ]
    return found


def by_reading(evidence: Evidence, _best: float) -> tuple[float, ...]:
    return (evidence.read or 0.0, evidence.met, evidence.holds, 1.0)


def across(evidence: Evidence, best: float) -> tuple[float, ...]:
    return (evidence.read or 0.0, best, evidence.holds, evidence.met, 1.0)


def by_words(evidence: Evidence, _best: float) -> tuple[float, ...]:
    return (evidence.odds, evidence.met, evidence.own, 1.0)


def is_right(question: AnswerQuestion, source: Source, candidate: Candidate) -> bool:
    """Return whether a statement has gold words: all, or for lists and two parts any."""
    statement = candidate.statement
    share = question.share_of_gold(source.text[statement.start : statement.end])
    return bool(question.gold) and (share == 1 or (question.kind in {"list", "two"} and share > 0))


def samples(
    found: Sequence[Found], reader: StatementReader | None, features: Features, *, is_foreign: bool
) -> tuple[Floats, Floats]:
    """Return the features of each question's best statement, and whether it answers."""
    rows, right = [], []
    for one in found:
        judged = judge(one.question.text, one.language, one.sources, reader)
        own = _best(judged, is_foreign=False)
        best = _best(judged, is_foreign=is_foreign)
        log_odds = own[1].evidence.log_odds() if own else NO_STATEMENT
        if best is not None and not (is_foreign and log_odds >= 0):
            rows.append(features(best[1].evidence, log_odds))
            right.append(is_right(one.question, *best))
    return np.array(rows), np.array(right, float)


def _best(judged: Sequence[Judged], *, is_foreign: bool) -> tuple[Source, Candidate] | None:
    pairs = [
        (one.source, candidate)
        for one in judged
        for candidate in one.candidates
        if candidate.chance and one.is_foreign is is_foreign
    ]
    return max(pairs, key=lambda pair: pair[1].chance, default=None)


def fit(features: Floats, right: Floats) -> Floats:
    """Fit the weights of features, the constant among them."""
    return logistic.fit(features, right, np.ones(len(right)), np.full(features.shape[1], _RIDGE))


def fitted_without(features: Floats, right: Floats) -> Floats:
    """Return each chance by weights fitted to the other parts of the samples."""
    fold = np.arange(len(right)) * _FOLDS // len(right)
    chances = np.zeros(len(right))
    for part in range(_FOLDS):
        weights = fit(features[fold != part], right[fold != part])
        chances[fold == part] = logistic.chances_of(features[fold == part], weights)
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
        rows, right = samples(found, used, features, is_foreign=is_foreign)
        error = calibration_error(fitted_without(rows, right), right)
        print(f"by {name}: {np.round(fit(rows, right), 2)}")
        print(f"  right {100 * right.mean():.1f} %, calibration error {error:.3f}")


if __name__ == "__main__":
    main()
