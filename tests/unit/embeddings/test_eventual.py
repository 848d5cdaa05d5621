"""The portal starts while a model is unreachable, and calibrates the model when it is back."""

from __future__ import annotations

import threading
import time

import pytest

from portal.embeddings.calibration.confidence import Evidence
from portal.embeddings.calibration.eventual import EventualCalibration
from portal.embeddings.providers.hashing import HashingEmbedder
from portal.errors import EmbedderUnavailable, InvalidEmbedding
from tests.factories.servers.endpoint import wait_until


class Moody(HashingEmbedder):
    """Fails with `error` while it is set, and waits for `gate` before embedding chunks."""

    def __init__(self, error=None):
        super().__init__()
        self.error = error
        self.asked = 0
        self.gate = threading.Event()
        self.gate.set()

    def embed_query(self, text):
        self.asked += 1
        if self.error:
            raise self.error
        return super().embed_query(text)

    def embed_chunks(self, texts):
        self.gate.wait(20)
        return super().embed_chunks(texts)


def ask(calibration, model):
    question = HashingEmbedder().embed_query("overtime pay")
    return calibration.query_statistics(question, "overtime pay")


def test_model_that_answers_is_calibrated_before_the_first_search(tmp_path):
    assert EventualCalibration(Moody(), tmp_path).ready


@pytest.mark.parametrize(
    "error", [EmbedderUnavailable(reason="down"), InvalidEmbedding(reason="5 numbers")]
)
def test_failed_model_is_retried_on_later_queries_but_not_on_each(tmp_path, error):
    now = [0.0]
    model = Moody(error)
    calibration = EventualCalibration(model, tmp_path, clock=lambda: now[0])
    assert not calibration.ready
    assert not calibration.fitted
    for _ in range(5):
        assert ask(calibration, model).rivals == ()
    assert model.asked == 1
    model.error = None
    now[0] += 31
    ask(calibration, model)
    wait_until(lambda: calibration.ready, within_s=20, complaint="it was not tried again")
    assert ask(calibration, model).rivals


def test_slow_model_does_not_hold_up_the_start(tmp_path):
    model = Moody()
    model.gate.clear()
    started = time.monotonic()
    calibration = EventualCalibration(model, tmp_path, timeout_s=0.1)
    assert time.monotonic() - started < 10
    assert not calibration.ready
    before = ask(calibration, model)
    model.gate.set()
    wait_until(lambda: calibration.ready, within_s=20, complaint="it never became ready")
    # A query measured before the calibration is judged by its words, as if it had no vector.
    evidence = [Evidence("a", "en", corrected=0.5, keyword=9.0)]
    assert calibration.confidences(before, evidence, 10.0) == calibration.confidences(
        None, evidence, 10.0
    )


def test_folder_that_cannot_be_written_does_not_prevent_calibration(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    assert EventualCalibration(Moody(), blocked / "cache").ready


def test_cached_background_needs_no_model(tmp_path):
    assert EventualCalibration(Moody(), tmp_path).ready
    away = Moody(EmbedderUnavailable(reason="down"))
    assert EventualCalibration(away, tmp_path).ready
    assert away.asked == 0
