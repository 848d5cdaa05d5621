"""Quality of search on question sets, by each method, and of its confidence."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import opencc

from eval.engine import DEFAULT, METHODS, Engine, Found
from eval.measures import auroc, calibration_error, quality
from eval.sets import Question, QuestionSet

# Questions without an answer in the corpus, from other sets.
OFF_TOPIC_QUESTIONS = 100
LOW = 0.5

OnDone = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Asked:
    """The hits of a question with or without an answer in the corpus."""

    question: Question
    found: Found
    answerable: bool

    @property
    def is_right(self) -> bool:
        return self.answerable and not self.question.relevant.isdisjoint(self.found.ids[:1])


def off_topic_questions(
    asked: QuestionSet, corpus: Sequence[QuestionSet], known: Sequence[QuestionSet]
) -> list[Question]:
    """Return questions of other sets, if the corpus has nothing under the titles of their answers;
    the same sample each time."""
    titles = {p.title or p.id for one in corpus for p in one.chunks}
    others = [
        question
        for one in known
        if one.name != asked.name
        for question in one.questions
        if not titles & {p.title or p.id for p in one.chunks if p.id in question.relevant}
    ]
    chosen = random.Random(asked.name)
    return chosen.sample(others, min(OFF_TOPIC_QUESTIONS, len(others)))


def other_script(question: str) -> str | None:
    """Convert a Chinese question to the other script; None if that changes nothing."""
    for name in ("s2t", "t2s"):
        if (converted := _converter(name).convert(question)) != question:
            return str(converted)
    return None


@cache
def _converter(name: str) -> Any:
    return opencc.OpenCC(name)


def evaluate(
    engine: Engine, asked: QuestionSet, off_topic: Sequence[Question], on_done: OnDone
) -> dict[str, Any]:
    """Measure a set: quality by each method, of Chinese questions in the other script, and how well
    confidence is calibrated."""
    answers = {method: list(_ask(engine, asked.questions, method, on_done)) for method in METHODS}
    by_method = {
        method: quality((found.ids, question.relevant) for question, found in pairs)
        for method, pairs in answers.items()
    }
    better_leg = max(by_method[leg].ndcg_at_10 for leg in ("keyword", "vector"))
    judged = [Asked(question, found, True) for question, found in answers[DEFAULT]]
    judged += [Asked(q, found, False) for q, found in _ask(engine, off_topic, DEFAULT, on_done)]
    return {
        "methods": {method: one.as_dict() for method, one in by_method.items()},
        "hybrid_below_best_leg": round(max(0.0, better_leg - by_method[DEFAULT].ndcg_at_10), 2),
        "other_script": _other_script(engine, asked.questions, on_done),
        "confidence": confidence_figures(judged),
    }


def _ask(
    engine: Engine, questions: Iterable[Question], method: str, on_done: OnDone
) -> Iterator[tuple[Question, Found]]:
    for question in questions:
        yield question, engine.ask(question.text, method)
        on_done()


def _other_script(
    engine: Engine, questions: Sequence[Question], on_done: OnDone
) -> dict[str, Any] | None:
    """Measure the questions that differ in the other Chinese script."""
    pairs = []
    for question in questions:
        if (text := other_script(question.text)) is not None:
            pairs.append((engine.ask(text, DEFAULT).ids, question.relevant))
        on_done()
    return quality(pairs).as_dict() if pairs else None


def confidence_figures(judged: Sequence[Asked]) -> dict[str, Any]:
    """Return shares of first results, None without data. Questions with and without an answer
    weigh the same in the calibration error."""
    chances = np.array([one.found.confidence or 0.0 for one in judged])
    right = np.array([one.is_right for one in judged], bool)
    answerable = np.array([one.answerable for one in judged], bool)
    flagged = np.array([one.found.off_topic or not one.found.ids for one in judged], bool)
    counts = np.where(answerable, max(1, answerable.sum()), max(1, (~answerable).sum()))
    unanswerable = bool((~answerable).any())
    return {
        "error_of_first": round(calibration_error(chances, right, weights=1 / counts), 3),
        "right_first_flagged_low": _share(chances[right] < LOW),
        "off_topic_first_flagged_low": _share(chances[~answerable] < LOW),
        "right_first_called_off_topic": _share(flagged[right]),
        "off_topic_called_so": _share(flagged[~answerable]),
        "auroc": round(auroc(chances[right], chances[~answerable]), 3)
        if unanswerable and right.any()
        else None,
        "off_topic_questions": int((~answerable).sum()),
    }


def _share(outcomes: Any) -> float | None:
    return round(float(outcomes.mean()), 3) if len(outcomes) else None
