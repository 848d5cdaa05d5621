"""The index in memory ranks by words, as BM25 does over its current texts."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from portal.domain.search.bm25 import Bm25Parameters
from portal.integrations.chroma.lexical_index import LexicalIndex
from portal.text.terms.analyser import index_terms, query_terms

SHAPE = Bm25Parameters(k1=1.2, b=0.75)
KEYS = st.sampled_from(["a", "b", "c", "d", "e"])
WORDS = st.sampled_from(["leave", "annual", "年假", "report", "PO-4711", ""])
TYPES = st.sampled_from([None, "text/plain", "text/markdown"])
CHANGES = st.lists(
    st.tuples(KEYS, st.none() | st.lists(WORDS, max_size=9).map(" ".join), TYPES), max_size=40
)


def expected(
    texts: dict[str, tuple[str, str | None]], question: str, content_type: str | None
) -> dict[str, float]:
    """Return the formula's scores of the texts that contain a word and have the content type."""
    terms = {key: index_terms(text).split() for key, (text, _) in texts.items()}
    total = len(terms)
    mean = sum(map(len, terms.values())) / total if total else 1.0
    scores: dict[str, float] = {}
    for key, own in terms.items():
        norm = SHAPE.k1 * (1 - SHAPE.b + SHAPE.b * len(own) / mean) if mean else SHAPE.k1
        counts = Counter(own)
        for word in query_terms(question):
            held = sum(word in each for each in terms.values())
            weight = math.log1p((total - held + 0.5) / (held + 0.5))
            if counts[word] and content_type in (None, texts[key][1]):
                part = weight * counts[word] * (SHAPE.k1 + 1) / (counts[word] + norm)
                scores[key] = scores.get(key, 0.0) + part
    return scores


@settings(max_examples=60)
@given(CHANGES, st.lists(WORDS, min_size=1, max_size=3).map(" ".join), TYPES, st.integers(1, 6))
def test_best_match_the_formula_after_any_changes(changes, question, content_type, limit):
    index, texts = LexicalIndex(SHAPE), {}
    for key, text, of_type in changes:
        if text is None:
            index.remove(key)
            texts.pop(key, None)
        else:
            index.put(key, text, of_type)
            texts[key] = (text, of_type)
    found = index.best(question, limit, content_type)
    scores = expected(texts, question, content_type)
    assert len(index) == len(texts)
    assert len(found) == len(set(found)) == min(limit, len(scores))
    best = sorted(scores.values(), reverse=True)[:limit]
    assert [scores[key] for key in found] == pytest.approx(best)


def test_order_of_ties_is_stable():
    index = LexicalIndex(SHAPE)
    for key in ("b", "c", "a"):
        index.put(key, "annual leave", None)
    assert index.best("leave", 3, None) == ["a", "b", "c"]
    assert index.best("", 3, None) == index.best("volcano", 3, None) == []
