"""Scores of stored postings equal those of BM25 over the texts themselves."""

from __future__ import annotations

from collections import Counter
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.domain.search.bm25 import Bm25Parameters
from portal.store.search.selection.term_postings import TermPostings, indexed_length

SHAPE = Bm25Parameters(k1=1.2, b=0.75)
TERMS = st.sampled_from(["云", "服务", "cloud", "v0.8", "po4711", "a"])
TEXTS = st.lists(st.lists(TERMS, max_size=60).map(" ".join), max_size=8)


def postings_of(texts: list[str]) -> TermPostings:
    return TermPostings.of([(uuid4(), uuid4(), text) for text in texts])


@given(TEXTS, st.dictionaries(TERMS | st.just("unknown"), st.floats(0.01, 9), max_size=5))
def test_scores_match_the_formula(texts, weights):
    found = postings_of(texts).bm25(weights, 20.0, SHAPE)
    assert len(found) == len(texts)
    for text, score in zip(texts, found, strict=True):
        counts, length = Counter(text.split()), indexed_length(len(text.split()))
        norm = SHAPE.k1 * (1 - SHAPE.b + SHAPE.b * length / 20.0)
        wanted = sum(
            weight * counts[word] * (SHAPE.k1 + 1) / (counts[word] + norm)
            for word, weight in weights.items()
            if counts[word]
        )
        assert score == pytest.approx(wanted, rel=1e-12)


@given(TEXTS, TEXTS)
def test_joined_postings_score_as_one(some, others):
    weights = {"云": 2.0, "cloud": 0.5}
    joined = TermPostings.joined([postings_of(some), postings_of(others)])
    whole = postings_of([*some, *others])
    assert joined.bm25(weights, 20.0, SHAPE).tolist() == whole.bm25(weights, 20.0, SHAPE).tolist()


@pytest.mark.parametrize("count", [1, 40, 700])
def test_buckets_are_small_compared_with_the_terms(count):
    parts = [postings_of([f"cloud word{number} word{number + 1}"]) for number in range(count)]
    joined = TermPostings.joined(parts)
    assert joined.buckets.nbytes <= 32 + joined.hashes.nbytes / 4
    for number in range(1, count):
        scores = joined.bm25({f"word{number}": 1.0}, 3.0, SHAPE)
        assert scores.nonzero()[0].tolist() == [number - 1, number]


def test_lengths_are_rounded_like_those_of_the_index():
    assert [indexed_length(count) for count in (0, 23, 39, 40, 55, 57)] == [0, 23, 39, 40, 54, 56]
