"""The features of a statement and their weights, from logistic regressions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

# Logistic regressions, fitted by eval/fitting/answers.py. BY_READING: what the model read, the
# shared words, the kind of answer. ACROSS, for statements in another language: what it read, the
# log odds of the best statement in the question's own, the kind, the translated words. BY_WORDS,
# without a model: the confidence, the shared words. The constants come last. Those of the first two
# are raised by .3 and 1.47, chosen on the same sets: further quotations may answer too, so an
# answer is right more often than its best statement. ACROSS was fitted to earlier weights of the
# reader; fitting it to the current ones improves nothing.
BY_READING = (0.79, 1.67, 0.66, -0.43)
ACROSS = (0.9, -0.34, 2.04, 3.72, -5.32)
BY_WORDS = (0.15, 4.0, 2.3, -2.9)
# The penalty for a row of many cells, which shares words and has every kind of answer by chance.
# Set by hand, because few questions of the sets are about such rows.
_WIDE_ROW = -1.2
# The log odds of the best statement in the question's language if there is none.
NO_STATEMENT = -5.0
_MAX_CONFIDENCE = 0.999  # Beyond it log odds reflect rounding more than the source.


@dataclass(frozen=True, slots=True)
class Evidence:
    """The features of a statement. `odds` is the search confidence of its source, in log odds.
    `met` is the weighted share of the question's words that it has together with its context, `own`
    without it; in another language a word is matched by its meaning. `read` is the model's
    judgement, in log odds: NaN if others had priority, None without a model. `holds` is 1 if it has
    the wanted kind of answer, and 0 or less if not."""

    odds: float
    met: float
    own: float
    read: float | None = None
    holds: float = 1.0
    is_wide: bool = False
    """A table row of many cells."""

    @property
    def was_left_out(self) -> bool:
        """Return whether the model did not read it."""
        return self.read is not None and math.isnan(self.read)

    def log_odds(self) -> float:
        """Return the log odds that the statement answers, in the question's language."""
        if self.read is None:
            return _sum(BY_WORDS, (self.odds, self.met, self.own, 1.0))
        return _sum(BY_READING, (self.read, self.met, self.holds, 1.0)) + self._handicap

    def log_odds_across(self, best: float) -> float:
        """Return the log odds of a statement in the other language; `best` are those of the best
        statement in the question's."""
        # Without a model only the search compares across languages.
        if self.read is None:
            return self.odds
        return _sum(ACROSS, (self.read, best, self.holds, self.met, 1.0)) + self._handicap

    @property
    def _handicap(self) -> float:
        return _WIDE_ROW * self.is_wide


def chance_of(log_odds: float) -> float:
    """Return the chance with these log odds."""
    return 1 / (1 + math.exp(-log_odds))


def odds_of(confidence: float) -> float:
    """Return the log odds of a confidence, within ± those of `_MAX_CONFIDENCE`."""
    bounded = min(_MAX_CONFIDENCE, max(1 - _MAX_CONFIDENCE, confidence))
    return math.log(bounded / (1 - bounded))


def _sum(weights: Sequence[float], values: Sequence[float]) -> float:
    return sum(weight * value for weight, value in zip(weights, values, strict=True))
