"""The real loader of cross-encoders, with a tiny model that is created here."""

from __future__ import annotations

import sys

import pytest

from portal.errors import RerankerUnavailable
from portal.reranking import create_reranker
from portal.reranking.sentence_transformers import CrossEncoderReranker
from portal.settings import RerankSettings
from tests.factories.servers.hub import MISSING_FILE, MISSING_MODEL, failing_hub

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cat", "mat", "rate", "where", "年", "假"]


def test_missing_library_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(RerankerUnavailable, match=r"run setup --local"):
        CrossEncoderReranker(model="any").load()


def save_model(directory, *, labels=1, kind="BertForSequenceClassification"):
    """Save a BERT of two small layers with random weights, as a hub would hold it."""
    transformers = pytest.importorskip("transformers", reason="not installed: ./run setup --local")
    torch = pytest.importorskip("torch")
    directory.mkdir()
    vocabulary = directory / "vocab.txt"
    vocabulary.write_text("\n".join(WORDS), encoding="utf-8")
    transformers.BertTokenizerFast(vocab=str(vocabulary)).save_pretrained(directory)
    torch.manual_seed(7)
    config = transformers.BertConfig(
        vocab_size=len(WORDS),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=512,
        num_labels=labels,
    )
    getattr(transformers, kind)(config).save_pretrained(directory)
    return directory


pytestmark = pytest.mark.local


def test_cross_encoder_from_a_directory_scores_pairs_in_order(tmp_path):
    reranker = CrossEncoderReranker(model=str(save_model(tmp_path / "model")))
    chunks = ["cat mat", "rate", "年假", "", "\0\ud800", "mat " * 5000, "cat mat"]
    scores = reranker.scores("where cat", chunks, deadline_s=60)
    assert len(scores) == len(chunks)
    assert all(isinstance(score, float) for score in scores)
    assert scores[0] == pytest.approx(scores[-1], abs=1e-5)
    assert len({round(score, 6) for score in scores}) > 1
    alone = reranker.scores("where cat", chunks[1:2], deadline_s=60)
    assert alone == pytest.approx(scores[1:2], abs=1e-5)
    assert reranker.scores("where cat", [], deadline_s=60) == []


def test_late_run_stops_between_batches(tmp_path):
    reranker = CrossEncoderReranker(model=str(save_model(tmp_path / "model")))
    with pytest.raises(RerankerUnavailable, match="more than"):
        reranker.scores("where cat", ["mat"], deadline_s=-1)


def test_settings_select_the_model(tmp_path):
    model = save_model(tmp_path / "model")
    reranker = create_reranker(RerankSettings(provider="sentence-transformers", model=str(model)))
    assert len(reranker.scores("where", ["cat", "mat"], deadline_s=60)) == 2


@pytest.mark.parametrize(
    ("kind", "labels", "said"),
    [
        ("BertModel", 1, "only computes embeddings"),
        ("BertForSequenceClassification", 3, "3 labels"),
    ],
)
def test_model_that_loads_but_cannot_rank_is_refused(tmp_path, kind, labels, said):
    model = save_model(tmp_path / "model", labels=labels, kind=kind)
    with pytest.raises(RerankerUnavailable, match=said):
        CrossEncoderReranker(model=str(model)).load()


def test_missing_model_names_the_remedy_and_is_searched_once(monkeypatch):
    pytest.importorskip("sentence_transformers", reason="not installed: ./run setup --local")
    with failing_hub(monkeypatch) as hub:
        reranker = CrossEncoderReranker(model=MISSING_MODEL)
        for _ in range(3):
            with pytest.raises(RerankerUnavailable, match="PORTAL_RERANK__MODEL"):
                reranker.scores("q", ["a"], deadline_s=60)
        assert hub.asked() == [MISSING_FILE]
