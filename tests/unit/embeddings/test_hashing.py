from __future__ import annotations

import hashlib
import subprocess
import sys

import numpy as np
import pytest

from portal.embeddings.providers.hashing import HashingEmbedder

_PRINT_DIGEST = (
    "import hashlib; from portal.embeddings.providers.hashing import HashingEmbedder as H;"
    "print(hashlib.sha256(H().embed_query('知识门户 search').tobytes()).hexdigest())"
)


def test_same_text_has_the_same_vector_in_every_process():
    there = subprocess.run(
        [sys.executable, "-c", _PRINT_DIGEST], capture_output=True, text=True, check=True
    ).stdout.strip()
    here = HashingEmbedder().embed_query("知识门户 search")
    assert hashlib.sha256(here.tobytes()).hexdigest() == there


@pytest.mark.parametrize(
    ("question", "near", "far"),
    [
        ("overtime pay", "Overtime is paid at one and a half times the pay.", "Bake the bread."),
        ("加班工资", "工作日加班按工资的一点五倍支付。", "新买的茶壶要先煮一个小时。"),
        ("加班工資", "工作日加班按工资的一点五倍支付。", "新买的茶壶要先煮一个小时。"),
    ],
)
def test_shared_words_make_texts_near(question, near, far):
    embedder = HashingEmbedder()
    chunks = embedder.embed_chunks([near, far])
    cosines = chunks @ embedder.embed_query(question)
    assert cosines[0] > 0.2
    assert cosines[0] > cosines[1] + 0.2


@pytest.mark.parametrize("text", ["", "   ", "?!", "\0", "\ud800"])
def test_text_without_words_still_has_a_direction(text):
    vectors = HashingEmbedder(dimensions=64).embed_chunks([text])
    assert np.linalg.norm(vectors[0]) == pytest.approx(1)


def test_dimensions_are_part_of_the_name():
    assert HashingEmbedder(dimensions=64).name != HashingEmbedder().name
