"""Fit the confidence of an answer: `python -m eval.fit_answer_confidence --data DIR`.

`portal.answering.quoting.relevance` judges statements by a chance that says which is best, not how
often it is right. This fits two numbers that make a confidence of it (Platt, 1999), for documents
in the question's language and in another one, on quoted answers to questions of the tune half of
eval/data/team and of the sets in DIR: with an answer, without one, and about other subjects. Prints
the numbers, and the calibration error on each set of numbers that were fitted without it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from eval import answer_quality, answer_sets, answers
from eval.answer_sets import Expected
from eval.fit_confidence import Floats, logistic
from eval.measures import calibration_error
from portal.answering import create_chat_model
from portal.answering.quoting import relevance
from portal.embeddings import create_embedder
from portal.settings import ChatSettings, EmbeddingSettings

TEAM, TEAM_ACROSS = "team", "team, other language"
_ACROSS = "cross"
# Questions of each kind and public set.
LIMIT = 100

# Chances of quoted answers, and whether each was right.
Samples = tuple[Floats, Floats]


def read_samples(data: Path | None, limit: int) -> dict[bool, dict[str, Samples]]:
    """Ask all questions, with the chance itself as the confidence; return the samples of each set
    by whether its questions are in the language of its documents."""
    relevance.CONFIDENCE = dict.fromkeys((True, False), (1.0, 0.0))
    found: dict[bool, dict[str, Samples]] = {True: {}, False: {}}
    (tune,) = answer_sets.load_halves(answer_sets.HALVES[0])
    team = answer_quality.ask_all(tune)
    for same, name in ((True, TEAM), (False, TEAM_ACROSS)):
        found[same][name] = _as_samples(
            (one.confidence, one.is_right)
            for one in team
            if one.question.expected is not Expected.REPLY
            and (one.question.kind == _ACROSS) is not same
        )
    world = answers.read_world(data)
    chat = create_chat_model(ChatSettings(), create_embedder(EmbeddingSettings()))
    for corpus in world.corpora:
        asked = answers.outcomes(chat, world, corpus, limit)
        first = int(world.material.questions_of(corpus.name)[0])
        language = world.material.statistics[first].language
        same = language == world.material.languages[corpus.rows[0]]
        samples = _as_samples((one.confidence, one.is_right) for one in asked)
        found[same][corpus.name] = samples
    return found


def _as_samples(pairs: Iterable[tuple[float, bool]]) -> Samples:
    quoted = [(chance, is_right) for chance, is_right in pairs if chance]
    return np.array([chance for chance, _ in quoted]), np.array(
        [right for _, right in quoted], float
    )


def fit(samples: Mapping[str, Samples]) -> tuple[float, float]:
    """Return slope and constant of the log odds of being right."""
    chances = np.concatenate([chances for chances, _ in samples.values()])
    right = np.concatenate([right for _, right in samples.values()])
    odds = np.log(chances / (1 - chances))[:, None]
    slope, constant = logistic(odds, right, np.ones(len(right)))
    return float(slope), float(constant)


def error(samples: Samples, numbers: tuple[float, float]) -> float:
    """Return the calibration error of confidences that these numbers give."""
    chances, right = samples
    slope, constant = numbers
    odds = slope * np.log(chances / (1 - chances)) + constant
    return calibration_error(1 / (1 + np.exp(-odds)), right)


def report(samples: Mapping[str, Samples]) -> None:
    """Print the numbers, and the errors on sets left out."""
    print("slope, constant:", np.round(fit(samples), 2))
    for name, one in samples.items():
        rest = {other: each for other, each in samples.items() if other != name}
        stated = f"{error(one, fit(rest)):.3f}, of the chance itself {error(one, (1.0, 0.0)):.3f}"
        print(f"{name}: {len(one[0])} answers, {one[1].mean():.0%} right, error {stated}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder of public sets")
    parser.add_argument("--limit", type=int, default=LIMIT, help="questions of each kind and set")
    options = parser.parse_args()
    for same, samples in read_samples(options.data, options.limit).items():
        print("the question's language" if same else "another language")
        report(samples)


if __name__ == "__main__":
    main()
