"""Timing in alternating rounds, so that disturbances of the machine affect all contenders alike."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle
from statistics import median
from typing import TypeVar

import numpy as np

from bench.corpus import Question

Search = Callable[[Question], object]
Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Contender:
    """A search to time; `before` runs untimed before each search."""

    search: Search
    before: Callable[[], object] = lambda: None


# Short enough that contenders alternate every second or so, long enough for caches to settle.
_ROUND_S = 0.5
_MIN_SEARCHES = 5


@dataclass(slots=True)
class Samples:
    """Seconds of single searches, by round."""

    rounds: list[list[float]] = field(default_factory=list)

    @property
    def all(self) -> list[float]:
        return [sample for one in self.rounds for sample in one]

    @property
    def median_ms(self) -> float:
        """Return the median of the rounds' medians, which ignores outlying rounds."""
        return 1000 * median(median(one) for one in self.rounds)

    def percentile_ms(self, percent: float) -> float:
        return 1000 * float(np.percentile(self.all, percent))

    def as_dict(self) -> dict[str, float]:
        return {
            "p50_ms": round(self.median_ms, 3),
            "p95_ms": round(self.percentile_ms(95), 3),
            "p99_ms": round(self.percentile_ms(99), 3),
            "searches": len(self.all),
        }


def alternate(
    contenders: Mapping[Name, Contender], questions: Sequence[Question], *, seconds: float
) -> dict[Name, Samples]:
    """Time each contender for about `seconds`, in rounds that alternate (ABAB). Each goes through
    the questions in the same order, and runs once untimed before."""
    samples = {name: Samples() for name in contenders}
    streams = {name: cycle(questions) for name in contenders}
    for contender in contenders.values():
        contender.search(questions[0])
    rounds = max(3, round(seconds / _ROUND_S))
    for number in range(rounds):
        # Reverse the order every other round, so that no contender always follows the same one.
        order = list(contenders)[:: 1 if number % 2 == 0 else -1]
        for name in order:
            samples[name].rounds.append(
                _one_round(contenders[name], streams[name], seconds / rounds)
            )
    return samples


def _one_round(contender: Contender, questions: Iterator[Question], seconds: float) -> list[float]:
    taken: list[float] = []
    end = time.perf_counter() + seconds
    while len(taken) < _MIN_SEARCHES or time.perf_counter() < end:
        question = next(questions)
        contender.before()
        started = time.perf_counter()
        contender.search(question)
        taken.append(time.perf_counter() - started)
    return taken


@contextmanager
def repeating(action: Callable[[], object], *, pause_s: float = 0.0) -> Iterator[None]:
    """Call `action` again and again in a thread, until the block ends."""
    ending = threading.Event()

    def repeat() -> None:
        while not ending.wait(pause_s):
            action()

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()
