from __future__ import annotations

import numpy as np
import pytest

from portal.embeddings.validation import validated
from portal.errors import InvalidEmbedding


def test_vectors_come_out_with_unit_length():
    vectors = validated([[3.0, 4.0], [0.0, -2.0]], dimensions=2, count=2)
    assert vectors.dtype == np.float32
    assert vectors.ravel().tolist() == pytest.approx([0.6, 0.8, 0.0, -1.0])


@pytest.mark.parametrize(
    ("vectors", "said"),
    [
        ([[1.0, 2.0, 3.0]], "expected 1 × 2 numbers, got 1 × 3"),
        ([[1.0, 2.0], [1.0, 2.0]], "expected 1 × 2 numbers, got 2 × 2"),
        ([], "expected 1 × 2"),
        ([[1.0, float("nan")]], "not finite"),
        ([[1.0, float("inf")]], "not finite"),
        ([[1e200, 1e200]], "too large"),
        ([[0.0, 0.0]], "length is zero"),
        ([["a", "b"]], "not a list"),
        ([[1.0], [1.0, 2.0]], "not a list"),
    ],
)
def test_unusable_vectors_are_refused_with_the_reason(vectors, said):
    with pytest.raises(InvalidEmbedding, match=said):
        validated(vectors, dimensions=2, count=1)


def test_no_texts_give_no_vectors():
    assert validated([], dimensions=3, count=0).shape == (0, 3)
