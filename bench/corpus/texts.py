"""Synthetic texts with the shape of real ones: words by Zipf's law, some of them a topic's own.

The commonest words are those of the background texts that come with the portal, so that stop words
and dictionary words are where they are in real text; rarer ones are made up.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from portal.embeddings.calibration.background import LANGUAGES, texts
from portal.text.terms.analyser import analyse, index_terms

Tokens = npt.NDArray[np.int64]

VOCABULARY_SIZE = 30_000
# Zipf–Mandelbrot: the shift flattens the very top, as in natural text.
_ZIPF_SHIFT = 2.7
_TOPIC_WORDS = 80
_TOPIC_WORDS_FROM_RANK = 200
_TOPIC_SHARE = 0.3
# About 300 tokens of a language model, the length of the portal's chunks.
_WORDS_PER_CHUNK = {"en": 190, "zh": 230}
_WORDS_A_SENTENCE = {"en": 14, "zh": 9}
_ENGLISH_WORD = re.compile("[a-z]+")
_SYLLABLES = [c + v for c in "bcdfghklmnprstvz" for v in ("a", "e", "i", "o", "u", "er", "in")]


@dataclass(frozen=True, slots=True)
class Draft:
    """A chunk before its words are written out: indexes into the vocabulary, and which of them are
    the topic's own."""

    language: str
    words: Tokens
    is_topical: npt.NDArray[np.bool_]


@cache
def vocabulary(language: str) -> tuple[str, ...]:
    """Return words by rank, commonest first; the same in every run."""
    counted: Counter[str] = Counter()
    for text in texts(language, "passages"):
        last_end = 0
        for token in analyse(text):
            if token.start >= last_end:  # Tokens of compounds overlap.
                counted[text[token.start : token.end].lower()] += 1
                last_end = token.end
    known = [word for word, _ in counted.most_common() if word.isalpha()]
    invented = _invented_chinese(known) if language == "zh" else _invented_english()
    return tuple(dict.fromkeys([*known, *invented]))[:VOCABULARY_SIZE]


def _invented_english() -> list[str]:
    rng = np.random.default_rng(1)
    drawn = rng.integers(len(_SYLLABLES), size=(2 * VOCABULARY_SIZE, 4)).tolist()
    lengths = rng.integers(2, 5, size=2 * VOCABULARY_SIZE).tolist()
    return [
        "".join(_SYLLABLES[i] for i in word[:length])
        for word, length in zip(drawn, lengths, strict=True)
    ]


def _invented_chinese(known: list[str]) -> list[str]:
    rng = np.random.default_rng(2)
    characters = sorted(set("".join(known)))
    pairs = rng.integers(len(characters), size=(2 * VOCABULARY_SIZE, 2)).tolist()
    return [characters[first] + characters[second] for first, second in pairs]


@cache
def _cumulated(size: int) -> npt.NDArray[np.float64]:
    weights = 1 / (np.arange(size) + 1 + _ZIPF_SHIFT)
    total: npt.NDArray[np.float64] = np.cumsum(weights / weights.sum())
    return total


def _zipf(rng: np.random.Generator, size: int, count: int) -> Tokens:
    ranks = np.searchsorted(_cumulated(size), rng.random(count))
    return np.minimum(ranks, size - 1)


@cache
def topic_words(topic: int, language: str) -> Tokens:
    """Return the words that texts on a topic use more than others, by rank."""
    rng = np.random.default_rng([3, topic, LANGUAGES.index(language)])
    ranks = np.arange(_TOPIC_WORDS_FROM_RANK, len(vocabulary(language)))
    return rng.choice(ranks, size=_TOPIC_WORDS, replace=False)


def draft(rng: np.random.Generator, topic: int, language: str) -> Draft:
    """Return the draft of a chunk on a topic."""
    mean = _WORDS_PER_CHUNK[language]
    count = int(np.clip(rng.normal(mean, mean / 4), mean / 3, 1.6 * mean))
    is_topical = rng.random(count) < _TOPIC_SHARE
    words = _zipf(rng, len(vocabulary(language)), count)
    own = topic_words(topic, language)
    words[is_topical] = own[_zipf(rng, _TOPIC_WORDS, int(is_topical.sum()))]
    return Draft(language, words, is_topical)


def write(chunk: Draft) -> str:
    """Return a chunk as text, in sentences."""
    length = _WORDS_A_SENTENCE[chunk.language]
    cuts = [*range(0, len(chunk.words), length), len(chunk.words)]
    join, stop = ("", "。") if chunk.language == "zh" else (" ", ". ")
    known = vocabulary(chunk.language)
    return stop.join(join.join(known[i] for i in chunk.words[a:b]) for a, b in pairwise(cuts))


def write_title(rng: np.random.Generator, topic: int, language: str) -> str:
    """Return a title of three words of the topic."""
    known = vocabulary(language)
    words = [known[i] for i in rng.choice(topic_words(topic, language), size=3, replace=False)]
    return "".join(words) if language == "zh" else " ".join(words).capitalize()


def write_question(rng: np.random.Generator, chunk: Draft) -> str:
    """Return three to twelve words of the chunk, half of them the topic's own, the others drawn
    from all of its words."""
    count = int(rng.integers(3, 13))
    topical = np.flatnonzero(chunk.is_topical)
    some = rng.choice(topical, size=min(len(topical), (count + 1) // 2), replace=False)
    others = rng.choice(len(chunk.words), size=count - len(some), replace=False)
    known = vocabulary(chunk.language)
    words = [known[chunk.words[place]] for place in rng.permutation([*some, *others])]
    return "".join(words) if chunk.language == "zh" else " ".join(words)


def terms_of(text: str, language: str) -> str:
    """Return the terms that the portal's analyser finds in a text written here. English words stand
    alone, so each is analysed only once, which is eight times as fast as the whole text."""
    if language != "en":
        return index_terms(text)
    return " ".join(_word_terms(word) for word in _ENGLISH_WORD.findall(text.lower()))


@cache
def _word_terms(word: str) -> str:
    return index_terms(word)
