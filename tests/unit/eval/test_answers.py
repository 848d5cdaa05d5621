"""Measuring answers by quotation."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from eval.answers.quotations import Outcome, corpora, first_cited, report, retrieved
from eval.answers.sets import load_halves
from eval.fitting.answers import fit, fitted_without
from eval.fitting.logistic import chances_of
from eval.fitting.reader_samples import team_samples
from eval.samples import prepare
from eval.sets import load
from portal.domain.answering import Abstained
from portal.embeddings import create_embedder
from portal.embeddings.calibration import Calibration
from portal.settings import EmbeddingSettings
from tests.factories.scripted_chat import ScriptedChatModel
from tests.unit.answering.sources import source

SOURCES = [source(1), source(2), source(3)]


@pytest.mark.parametrize(
    ("script", "number"),
    [(["Both [3", "] and [1]."], 3), ([Abstained("Nothing.")], 0), (["No marker [9]."], 0)],
)
def test_first_source_that_is_cited_counts(script, number):
    assert first_cited(ScriptedChatModel(script), "Why?", "en", SOURCES)[0] == number


def test_titles_are_searched_as_the_engine_does(tmp_path: Path) -> None:
    documents = [
        {"id": "p", "title": "Annual leave", "text": "Fifteen days."},
        {"id": "q", "title": "Boilers", "text": "They are cleaned in May."},
    ]
    (tmp_path / "one.docs.jsonl").write_text("\n".join(map(json.dumps, documents)))
    question = {"id": "1", "text": "annual leave", "qrels": {"p": 1}}
    (tmp_path / "one.queries.jsonl").write_text(json.dumps(question))
    embedder = create_embedder(EmbeddingSettings(provider="hashing"))
    calibration = Calibration.for_model(embedder)
    material = prepare(embedder, calibration, tmp_path)
    (corpus,) = corpora(material, [load(tmp_path, "one")])
    found = retrieved(material, calibration, corpus, 0)
    assert next((row, source.title) for row, source in found) == (0, "Annual leave")
    hidden = retrieved(material, calibration, corpus, 0, without_subject=True)
    assert [(row, source.title) for row, source in hidden] == [(1, "Boilers")]


def test_abstaining_does_not_count_as_a_right_answer():
    found = [
        Outcome(0, True, 7, True, 0.01),
        Outcome(1, True, 8, False, 0.01),
        Outcome(2, True, None, False, 0.01),
        Outcome(3, True, None, False, 0.01),
        Outcome(4, False, None, False, 0.01),
        Outcome(5, False, 7, False, 0.01),
        Outcome(6, False, None, False, 0.01, is_foreign=False),
    ]
    columns = [list(column.cells) for column in report({"mini": found}).columns]
    assert columns == [["mini"], ["25.0"], ["50.0"], ["50.0"], ["100.0"], ["10.0"]]


def test_fit_separates_answers_from_their_absence():
    choose = np.random.default_rng(3)
    right = np.arange(100) < 50
    features = np.column_stack(
        [np.where(right, choose.uniform(0.5, 0.9, 100), choose.uniform(0, 0.4, 100)), np.ones(100)]
    )
    assert ((chances_of(features, fit(features, right.astype(float))) > 0.5) == right).all()


def test_chances_of_a_sample_are_fitted_without_it():
    right = np.array([0.0, 1.0] * 10)
    features = np.column_stack([np.zeros(20), np.ones(20)])
    features[-1] = 9, 1  # The only one of its kind: without it, nothing is known about it.
    assert fitted_without(features, right)[-1] == pytest.approx(0.5, abs=0.1)


def test_samples_of_a_folder_have_both_languages_and_the_right_statements(tmp_path):
    (tmp_path / "leave.md").write_text(
        "# Leave\n\nAnnual leave is 25 days. Ask Maria.\n\n"
        "| Years | Days |\n|---|---|\n| 1 | 25 |\n| 9 | 30 |\n",
        encoding="utf-8",
    )
    rows = [
        {"kind": "fact", "en": "Who?", "zh": "谁？", "gold": ["Maria"], "near": "25 days."},
        {"kind": "row", "en": "After nine?", "zh": "九年？", "gold": ["| 9 |", "30"]},
        {"kind": "absent", "en": "Where?", "zh": "哪里？", "gold": [], "near": "Ask Maria."},
    ]
    lines = (json.dumps(row | {"document": "leave.md"}) for row in rows)
    (tmp_path / "questions.jsonl").write_text("\n".join(lines), encoding="utf-8")
    found = team_samples(tmp_path)
    assert [one.question for one in found] == [
        "谁？",
        "Who?",
        "九年？",
        "After nine?",
        "哪里？",
        "Where?",
    ]
    said = [text for _, text in found[0].statements]
    assert said == [
        "Annual leave is 25 days.",
        "Ask Maria.",
        "Years: 1; Days: 25",
        "Years: 9; Days: 30",
    ]
    assert [one.right for one in found[::2]] == [(1,), (3,), ()]
    assert [one.tempting for one in found[::2]] == [(0,), (), (1,)]


def test_shipped_samples_are_read():
    found = team_samples()
    assert len(found) > 12_000
    assert {one.document for one in found}.isdisjoint(
        path.name for half in load_halves("both") for path in half.documents
    )
