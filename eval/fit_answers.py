"""Fit the weights of `portal.answering.quoting.relevance`: `python -m eval.fit_answers`.

A logistic regression over the passages found for questions of every set in one language, each by
its best statement, with and without an answer; each set weighs the same. Prints the weights, and
the results of weights that were fitted without the set they are tested on.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from eval.answers import World, asked, read_world, retrieved
from portal.answering.quoting.relevance import MIN_CHANCE, Judged, judge
from portal.embeddings import create_embedder
from portal.settings import EmbeddingSettings

Floats = npt.NDArray[np.float64]
# A question: whether its answer is there, features of its passages, which of them is right, and
# whether it is in their language.
Sample = tuple[bool, Floats, Floats, bool]
_NO_STATEMENT = (0.0, 0.0, 0.0, 0.0, 0.0, 1.0)


def samples(world: World) -> dict[str, list[Sample]]:
    """Return the samples of every set whose questions are in the language of its passages."""
    material, embedder = world.material, create_embedder(EmbeddingSettings())
    found: dict[str, list[Sample]] = {}
    for corpus in world.corpora:
        first = int(material.questions_of(corpus.name)[0])
        if material.statistics[first].language != material.languages[corpus.rows[0]]:
            continue
        rows = set(corpus.rows.tolist())
        found[corpus.name] = []
        for question in asked(world, corpus):
            pairs = retrieved(material, world.calibration, corpus, question)
            language = material.statistics[question].language
            sources = [one for _, one in pairs]
            judged = judge(world.questions[question], language, sources, embedder)
            answers = material.answers[question]
            found[corpus.name].append(
                (
                    bool(answers & rows),
                    np.array([_features(one) for one in judged]),
                    np.array([row in answers for row, _ in pairs], float),
                    language == material.languages[corpus.rows[0]],
                )
            )
    return found


def _features(judged: Judged) -> tuple[float, ...]:
    """Return the evidence of the statement that answers best, of the right kind if there is one."""
    best = max(judged.candidates, key=lambda one: (one.holds, one.chance), default=None)
    return best.evidence.values if best else _NO_STATEMENT


def fit(by_set: Sequence[list[Sample]], steps: int = 60, ridge: float = 1e-3) -> Floats:
    """Fit weights and constant by Newton's method."""
    features = np.vstack([rows for one in by_set for _, rows, *_ in one])
    right = np.concatenate([labels for one in by_set for _, _, labels, _ in one])
    weights = np.concatenate(
        [np.full(len(r), 1000 / len(one)) for one in by_set for _, r, *_ in one]
    )
    found = np.zeros(features.shape[1])
    for _ in range(steps):
        chances = 1 / (1 + np.exp(-features @ found))
        gradient = features.T @ (weights * (chances - right)) + ridge * found
        curvature = (features * (weights * chances * (1 - chances))[:, None]).T @ features
        found = found - np.linalg.solve(curvature + ridge * np.eye(len(found)), gradient)
    return found


def shares(one: list[Sample], weights: Floats) -> tuple[float, float]:
    """Return how often the right passage is cited, and how often questions in the passages'
    language are rightly declined; NaN without any."""
    right, withheld = [], []
    for answerable, features, labels, same_language in one:
        totals = features @ weights
        best = int(totals.argmax())
        gives = 1 / (1 + np.exp(-totals[best])) >= MIN_CHANCE
        if answerable:
            right.append(bool(labels[best]) and gives)
        elif same_language:
            withheld.append(not gives)
    return _mean(right), _mean(withheld)


def _mean(outcomes: Sequence[bool]) -> float:
    return float(np.mean(outcomes)) if outcomes else float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder of sets")
    found = samples(read_world(parser.parse_args().data))
    print("odds, met, least, own, focus, constant:", np.round(fit(list(found.values())), 2))
    for name, one in found.items():
        rest = [other for other_name, other in found.items() if other_name != name]
        right, withheld = shares(one, fit(rest))
        print(
            f"{name}, fitted without it: {100 * right:.1f}% right, {100 * withheld:.1f}% withheld"
        )


if __name__ == "__main__":
    main()
