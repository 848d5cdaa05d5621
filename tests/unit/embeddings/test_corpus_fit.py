"""Confidence constants, fitted to the corpus, for a model that ships without them."""

from __future__ import annotations

import numpy as np
import pytest

from portal.embeddings.calibration import Calibration, corpus_fit
from portal.embeddings.calibration import background as backgrounds
from portal.embeddings.calibration.confidence import Evidence, load_models
from portal.embeddings.providers.bundled import E5
from portal.embeddings.providers.hashing import HashingEmbedder

TEXTS = [
    f"{one} {other}"
    for one, other in zip(
        backgrounds.texts("en", "passages"),
        reversed(backgrounds.texts("en", "passages")),
        strict=True,
    )
]


@pytest.fixture
def calibration():
    return Calibration.for_model(HashingEmbedder())


@pytest.fixture
def constants(calibration):
    vectors = HashingEmbedder().embed_chunks(TEXTS)
    return corpus_fit.fit(calibration, vectors, ["en"] * len(TEXTS))


def test_too_few_chunks_give_no_constants(calibration):
    few = HashingEmbedder().embed_chunks(TEXTS[:49])
    assert corpus_fit.fit(calibration, few, ["en"] * 49) is None


def test_model_without_constants_adopts_those_of_the_corpus(calibration, constants):
    assert calibration.source == "borrowed"
    calibration.adopt(constants)
    assert calibration.source == "corpus"
    assert not calibration.fitted


def test_corpus_constants_scale_the_lead(calibration, constants):
    """The same lead means more from a model whose unrelated results stand out less."""
    statistics = calibration.query_statistics(HashingEmbedder().embed_query("tides"), "tides")
    evidence = [Evidence("a", "en", corrected=0.4)]
    borrowed = calibration.confidences(statistics, evidence, 1.0)[0]
    calibration.adopt(constants)
    adopted = calibration.confidences(statistics, evidence, 1.0)[0]
    factor = constants["lead"]["factor"]
    assert factor != 1
    assert np.sign(adopted - borrowed) == np.sign(factor - 1)


def test_fitted_constants_are_not_replaced():
    models = load_models(E5)
    calibration = Calibration(background=None, models=models)
    calibration.adopt({"lead": {"factor": 0.5, "shift": 0.0}})
    assert calibration.source == "fitted"


def test_fit_to_no_chunks_changes_nothing(calibration):
    calibration.adopt(None)
    assert calibration.source == "borrowed"
