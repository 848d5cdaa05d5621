"""Which words of a question a text has: as written, in a longer form, or translated."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import rjieba
from numpy.typing import NDArray

from portal.answering.quoting.questions import IT, Word, find_dates
from portal.answering.quoting.rules.groups.weekdays import find_weekdays
from portal.text.characters.folding import fold
from portal.text.characters.scripts import HAN
from portal.text.terms.analyser import index_terms
from portal.text.terms.lexicon import Sense, share_of_best

# What a Chinese word counts if a text has it in a longer form or without its verb, and the max
# length of a word with longer forms.
_BY_OTHER_FORM, _MAX_SHORT_FORM = 0.8, 4
_MIN_PART = 2
# The dictionary has 交租金 as a word, where texts say 租金按季度支付.
_BEFORE_NOUN = "交付领缴"

Shares = NDArray[np.float32]


def _longer_form(word: Word) -> re.Pattern[str] | None:
    """Return a pattern for the longer forms of a Chinese word: 物业服务费 for 物业费."""
    is_short = word.is_han and 1 < len(word.text) <= _MAX_SHORT_FORM
    return _in_longer_words(word.text) if is_short else None


# `re` caches 512 patterns, fewer than a long question needs.
@lru_cache(maxsize=4096)
def _in_longer_words(text: str) -> re.Pattern[str]:
    return re.compile(f"[{HAN}]{{0,{min(len(text) - 1, 2)}}}".join(text))


def _known_part(word: Word) -> tuple[str, float]:
    """Return the end of a Chinese word that is in no dictionary or begins with a verb, and what it
    counts: 专票 of 开专票, 租金 of 交租金. Empty for other words."""
    text = word.text
    if not word.is_han or len(text) <= _MIN_PART:
        return "", 0.0
    begins_with_verb = text[0] in _BEFORE_NOUN
    if rjieba.has_word(text) and not (begins_with_verb and rjieba.has_word(text[1:])):
        return "", 0.0
    return text[-_MIN_PART:], _BY_OTHER_FORM if begins_with_verb else _MIN_PART / len(text)


def shares_of_words(
    words: Sequence[Word],
    texts: Sequence[str],
    means: Sequence[Sequence[Sense]] | None = None,
) -> Shares:
    """Return how much of each word each text has: (texts, words) in [0, 1]. The word itself counts
    1; a longer form, a part or a translation may count less."""
    # Chinese words match as substrings, because next to other characters they may be segmented
    # differently.
    found = np.zeros((len(texts), len(words)), np.float32)
    longer = [_longer_form(word) for word in words]
    parts = [_known_part(word) for word in words]
    days = {
        column: asked for column, word in enumerate(words) if (asked := find_weekdays(word.text))
    }
    for row, text in enumerate(texts):
        terms = {*index_terms(text).split(), *(one.term for one in find_dates(text))}
        terms.update(IT.findall(text))
        folded = fold(text).text
        for column, word in enumerate(words):
            if word.term in terms or (word.is_han and len(word.text) > 1 and word.text in folded):
                found[row, column] = 1
            elif (form := longer[column]) and form.search(folded):
                found[row, column] = _BY_OTHER_FORM
            elif parts[column][0] and parts[column][0] in folded:
                found[row, column] = parts[column][1]
            elif means is not None:
                found[row, column] = share_of_best(means[column], terms)
        # "Weekend" includes "Saturday".
        if days and (said := find_weekdays(text)):
            for column, asked in days.items():
                if asked & said:
                    found[row, column] = 1
    return found


def weighted_means(shares: Shares, weights: Shares) -> Shares:
    """Return the weighted mean of each text's shares: (texts,)."""
    if not len(weights):
        return np.zeros(len(shares), np.float32)
    means: Shares = shares @ weights / weights.sum()
    return means
