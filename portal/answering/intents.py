"""What a message wants: a softmax regression over its words and runs of them, hashed.

After Joulin et al., Bag of Tricks for Efficient Text Classification, EACL 2017.
`eval/fitting/intents.py` fits the weights.
"""

from __future__ import annotations

import re
import zlib
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from portal.text.characters.folding import fold
from portal.text.characters.scripts import HAN

WEIGHTS = Path(__file__).parent / "intents.npz"
BUCKETS = 1 << 14
_WORD = re.compile(rf"[{HAN}]|[^\W\d_{HAN}]+|\d+")
_MAX_RUN = 4
# The first and the last words of a longer message say what it wants.
_MAX_FIRST, _MAX_LAST = 30, 10


class Intent(StrEnum):
    """What a message wants; all but a question get a reply without a search."""

    QUESTION = "question"
    GREETING = "greeting"
    THANKS = "thanks"
    FAREWELL = "farewell"
    COMPLAINT = "complaint"
    ABOUT = "about"
    LIST_DOCUMENTS = "list_documents"
    OUTLINE = "outline"
    COMPARISON = "comparison"
    WRITING = "writing"
    MORE = "more"
    DOUBT = "doubt"
    NOW = "now"
    ARITHMETIC = "arithmetic"


# Sums are recognised by their syntax.
TOLD_APART = tuple(one for one in Intent if one is not Intent.ARITHMETIC)


def chances(message: str) -> dict[Intent, float]:
    """Return how likely a message is to want each; the chances add up to 1."""
    weights = _weights()
    buckets = features(message)
    odds = weights[buckets].sum(0) / np.sqrt(len(buckets)) + weights[BUCKETS]
    powers = np.exp(odds - odds.max())
    return dict(zip(TOLD_APART, (powers / powers.sum()).tolist(), strict=True))


def features(message: str) -> list[int]:
    """Return the buckets of the words and runs of words of a message, at least one."""
    folded = fold(message).text.replace("summaris", "summariz")
    words = ["0" if word.isdigit() else word for word in _WORD.findall(folded)]
    if len(words) > _MAX_FIRST + _MAX_LAST:
        words[_MAX_FIRST:-_MAX_LAST] = []
    words = ["^", *words, "$"]
    runs = {
        " ".join(words[start : start + length])
        for length in range(1, _MAX_RUN + 1)
        for start in range(len(words) - length + 1)
    }
    return sorted({zlib.crc32(run.encode()) % BUCKETS for run in runs})


@cache
def _weights() -> NDArray[Any]:
    """Return the weights of each bucket and, last, the constants: (BUCKETS + 1, intents)."""
    weights: NDArray[Any] = np.load(WEIGHTS)["weights"]
    return weights.astype(np.float32)
