"""Training of the network that reads statements, and of the nearness that chooses them."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
import torch

from eval.fitting import nearness, pairs
from eval.fitting.reader import Lower, Reader, chosen, loss_of, mean_of, train
from eval.fitting.reader_samples import Sample
from eval.measures import auroc
from portal.domain.embedding import StatementReader
from portal.embeddings import create_embedder
from portal.embeddings.e5 import FLOAT32, E5Encoder, reading
from portal.embeddings.e5.encoder import weights_path
from portal.embeddings.e5.weights import Weights
from portal.settings import EmbeddingSettings

STATEMENTS = (
    ("Handbook", "Annual leave is 25 days."),
    ("Handbook", "The canteen opens at noon."),
    ("手册", "前台在一楼。"),
)
SAMPLES = [
    Sample("How many days of leave?", "a", STATEMENTS, (0,)),
    Sample("前台在哪里？", "a", STATEMENTS, (2,)),
    Sample("Who founded it?", "b", STATEMENTS, (), (1,)),
] * 2


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.set_num_threads(1)  # Threads that wait for each other are slow on a busy machine.
    random.seed(1)
    torch.manual_seed(1)


def test_loss_falls_for_right_statements_and_rises_for_wrong_ones() -> None:
    good, bad = torch.tensor([3.0, -3.0]), torch.tensor([-3.0, 3.0])
    assert loss_of(good, 1, all_right=False) < loss_of(bad, 1, all_right=False)
    one_of_two = torch.tensor([3.0, -3.0, -3.0])
    assert loss_of(one_of_two, 2, all_right=False) < loss_of(one_of_two, 2, all_right=True)
    assert loss_of(torch.tensor([-3.0]), 0, all_right=False) < 0.1


def test_tempting_statement_is_always_chosen_and_right_ones_come_first() -> None:
    lower = Lower()
    pairs, right = chosen(SAMPLES[2], SAMPLES, lower)
    assert right == 0
    tempting = lower.pair(SAMPLES[2].question, STATEMENTS[1]).statement.pieces.tolist()
    assert tempting in [pair.statement.pieces.tolist() for pair in pairs]
    pairs, right = chosen(SAMPLES[0], SAMPLES, lower)
    assert right == 1
    assert (
        pairs[0].statement.pieces.tolist()
        == lower.pair("?", STATEMENTS[0]).statement.pieces.tolist()
    )


def test_portal_reads_the_shipped_weights_as_trained(tmp_path, monkeypatch) -> None:
    path = tmp_path / "reader.npz"
    np.savez(path, **train(SAMPLES, 3).shipped())
    reader = train(SAMPLES, 1, [(SAMPLES[:1], 1)], resumed=path)
    np.savez(path, **reader.shipped())
    monkeypatch.setattr(reading, "WEIGHTS", path)
    lower, encoder = Lower(), E5Encoder(FLOAT32)
    pairs = [lower.pair("How many days of leave?", one) for one in STATEMENTS]
    with torch.inference_mode():
        trained = reader(pairs).numpy()
    asked = encoder.read_question("How many days of leave?")
    read = [encoder.answer_log_odds(asked, encoder.read_statement(*one)) for one in STATEMENTS]
    assert read == pytest.approx(trained, abs=0.1)


def test_mean_of_two_trainings_is_that_of_their_products() -> None:
    random = np.random.default_rng(1)
    first, second = (
        {"q.low": random.normal(size=(40, 3)), "q.high": random.normal(size=(3, 50)), "b": b}
        for b in (np.zeros(2), np.full(2, 4.0))
    )
    mean = mean_of([first, second])
    product = (first["q.low"] @ first["q.high"] + second["q.low"] @ second["q.high"]) / 2
    assert mean["q.low"] @ mean["q.high"] == pytest.approx(product, abs=1e-4)
    assert mean["b"].tolist() == [2.0, 2.0]


def test_nearness_is_learned_and_the_portal_reads_it_as_trained(tmp_path, monkeypatch) -> None:
    path, lower, sample = tmp_path / "nearness.npz", Lower(), SAMPLES[1]
    asked = lower.pair(sample.question, STATEMENTS[0]).question
    said = [lower.pair(sample.question, one).statement for one in STATEMENTS]
    untrained, trained = (nearness.train(SAMPLES, epochs) for epochs in (0, 60))
    np.savez(path, **trained.shipped())
    monkeypatch.setattr(reading, "NEARNESS", path)
    with torch.inference_mode():
        before, after = (one(asked, said).numpy() for one in (untrained, trained))
    assert after[2] - max(after[:2]) > before[2] - max(before[:2])
    encoder = E5Encoder(FLOAT32)
    # The shipped maps have fewer dimensions than the trained ones.
    assert encoder.similarities(asked, said) == pytest.approx(after, abs=0.1)


def test_untrained_additions_change_nothing() -> None:
    reader = Reader(Weights(weights_path()), torch.zeros(384)).eval()
    weights = Weights(weights_path())
    matrix = weights.columns("l6.q.w", outputs=384)
    merged = reader.layers[0].q.merged[0].detach().float().numpy().T
    assert merged == pytest.approx(matrix, abs=0.01)


def test_samples_of_pairs_have_the_statement_first_and_no_author_twice() -> None:
    held_out = [one for path in pairs.HELD_OUT for one in pairs.samples(path)]
    answered = [sample for sample in held_out if sample.right]
    assert {sample.right for sample in answered} == {(0,)}
    assert all(sample.tempting[0] == 0 for sample in held_out if not sample.right)
    trained = [
        one
        for path in (pairs.OTHER_WORDS, pairs.NEAR_MISSES)
        for one in pairs.samples_to_train(path)
    ]
    assert not {one.document for one in trained} & {one.document for one in held_out}
    asked = {sample.question for sample in trained}
    # Two authors may write the same plain question.
    assert len(asked & {sample.question for sample in held_out}) < len(held_out) / 50


# Within one language, and across languages.
MIN_AUROC = {pairs.OTHER_WORDS: (0.85, 0.91), pairs.NEAR_MISSES: (0.87, 0.78)}


@pytest.mark.parametrize("path", pairs.HELD_OUT, ids=lambda path: path.stem)
def test_shipped_reader_separates_answered_questions_from_near_ones(path: Path) -> None:
    reader = create_embedder(EmbeddingSettings())
    assert isinstance(reader, StatementReader)
    found = pairs.log_odds(reader, path, every=6)
    min_own, min_across = MIN_AUROC[path.parent]
    assert auroc(found["asked"], found["near"]) > min_own
    assert auroc(found["asked_across"], found["near_across"]) > min_across
