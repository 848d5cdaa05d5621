"""The best stretch of a text is the one that an exhaustive search finds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from portal.text.terms.proximity import closeness

TERMS = ("云", "服务", "cloud", "po4711")
TEXTS = st.lists(st.sampled_from((*TERMS, "other", "words")), max_size=90)


@given(TEXTS, st.lists(st.sampled_from(TERMS), max_size=4, unique=True))
def test_closeness_is_that_of_the_best_thirty_words(words: list[str], terms: list[str]) -> None:
    stretches = [words[start : start + 30] for start in range(max(1, len(words)))]
    best = max(sum(len(term) for term in terms if term in stretch) for stretch in stretches)
    whole = sum(map(len, terms))
    assert closeness(tuple(terms), " ".join(words)) == (best / whole if whole else 0.0)


def test_words_far_apart_count_less() -> None:
    apart = f"annual {'word ' * 40}leave"
    assert closeness(("annual", "leave"), "annual leave") == 1.0
    assert closeness(("annual", "leave"), apart) == 6 / 11
