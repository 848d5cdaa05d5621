"""The shipped bundled model reads questions together with statements."""

from __future__ import annotations

import numpy as np
import pytest

from portal.embeddings.e5 import FLOAT32, INT8, E5Encoder, reading
from portal.embeddings.providers.bundled import E5, BundledEmbedder
from portal.errors import EmbedderUnavailable


@pytest.fixture(scope="module")
def embedder(loaded_model: None) -> BundledEmbedder:
    return BundledEmbedder(name=E5, timeout_s=60)


def read(embedder: BundledEmbedder, question: str, *texts: str, title: str = "") -> np.ndarray:
    return embedder.read_answers(question, [(title, text) for text in texts], [0.0] * len(texts), 9)


@pytest.mark.parametrize(
    ("question", "answers", "does_not"),
    [
        ("年假有几天？", "年假每年为二十五天。", "年假须提前申请。"),
        ("报销单什么时候提交？", "返回后十个工作日内提交报销单。", "报销单须由主管签字。"),
        ("谁审批出差？", "出差由部门经理审批。", "出差须提前审批。"),
        ("宿舍在哪里？", "宿舍在东门三号楼。", "本办法适用于在校学生。"),
        ("特斯拉是在哪里出生的？", "特斯拉出生于斯米良。", "特斯拉于1856年出生。"),
        ("How long is the warranty?", "The warranty lasts two years.", "The warranty is void."),
        ("Who approves travel?", "Maria Lopez approves travel.", "Travel needs approval first."),
        ("How much is the fee?", "The fee is $40.", "The fee depends on the plan."),
        ("Where was she born?", "She was born in Leeds.", "She died in Leeds in 1931."),
        ("When does the canteen open?", "The canteen opens at noon.", "The canteen is in hall 2."),
        ("How many days of annual leave?", "年假每年为二十五天。", "年假须提前两周申请。"),
        ("Who signs the contract?", "合同由法务部负责人签署。", "合同须在三月前签署。"),
        ("年假有几天？", "Annual leave is 25 days a year.", "Annual leave has to be requested."),
        ("食堂几点开门？", "The canteen opens at noon.", "The canteen seats 80 people."),
        ("工龄六年有多少年假？", "工龄: 5 年以上; 年假: 15 天", "工龄: 1–5 年; 年假: 10 天"),
        ("Price of the large box?", "Box: large; Price: 9 EUR", "Box: small; Price: 5 EUR"),
    ],
)  # fmt: skip
def test_statement_that_answers_is_distinguished_from_one_that_only_mentions(
    embedder: BundledEmbedder, question: str, answers: str, does_not: str
) -> None:
    right, wrong = read(embedder, question, answers, does_not)
    assert right > wrong


@pytest.mark.parametrize(
    "question", ["Who won the 2022 World Cup?", "2022 年世界杯冠军是谁？", "法国的首都是哪里？"]
)
def test_off_topic_question_is_answered_by_no_statement(
    embedder: BundledEmbedder, question: str
) -> None:
    found = read(embedder, question, "年假每年为二十五天。", "The cup is in the kitchen cupboard.")
    assert max(found) < 0


def test_heading_decides_between_similar_statements(embedder: BundledEmbedder) -> None:
    texts = [
        ("Handbook > Canteen", "Open from 9 to 17."),
        ("Handbook > Library", "Open from 8 to 20."),
    ]
    canteen, library = embedder.read_answers("When is the library open?", texts, [0, 0], 2)
    assert library > canteen


def test_only_the_nearest_statements_are_read(embedder: BundledEmbedder) -> None:
    texts = ["Pigs fly.", "Annual leave is 25 days.", "Cats purr."]
    found = embedder.read_answers(
        "How many days of leave?", [("", text) for text in texts], [0] * 3, 1
    )
    assert np.isnan(found).tolist() == [True, False, True]
    promised = embedder.read_answers(
        "How many days of leave?", [("", text) for text in texts], [0, 0, 5], 1
    )
    assert np.isnan(promised).tolist() == [True, True, False]


def test_nearness_adds_to_the_odds(embedder: BundledEmbedder) -> None:
    texts = [("", "年假每年为二十五天。"), ("", "前台在一楼。")]
    plain, more = (
        embedder.read_answers("How many days of annual leave?", texts, [0, 0], 2, by_nearness)
        for by_nearness in (0, 7)
    )
    assert more[0] - plain[0] > more[1] - plain[1]


def test_no_statements_give_no_odds(embedder: BundledEmbedder) -> None:
    assert read(embedder, "Why?").shape == (0,)


@pytest.mark.parametrize(
    "text", ["", " ", "\x00", "\ud800", "字" * 100_000, "a" * 100_000, "？" * 50]
)
def test_any_text_is_read_in_bounded_time(embedder: BundledEmbedder, text: str) -> None:
    assert np.isfinite(read(embedder, "When?", text, title=text)).all()
    assert np.isfinite(read(embedder, text, "At noon.")).all()


def test_rounded_network_agrees_with_the_exact_one() -> None:
    exact, rounded = E5Encoder(FLOAT32), E5Encoder(INT8)
    pairs = [("年假有几天？", "年假每年为二十五天。"), ("Who signs?", "The desk opens at nine.")]
    for question, text in pairs:
        odds = [
            one.answer_log_odds(one.read_question(question), one.read_statement("Guide", text))
            for one in (exact, rounded)
        ]
        assert odds[0] == pytest.approx(odds[1], abs=0.5)


def test_lengths_are_capped(embedder: BundledEmbedder) -> None:
    encoder = E5Encoder(INT8)
    long = encoder.read_statement("head " * 900, "word " * 900)
    assert long.statement_start == 1 + 2 + reading.MAX_CONTEXT_TOKENS + 1
    assert len(long.pieces) - long.statement_start == reading.MAX_STATEMENT_TOKENS + 1


def test_model_with_only_vectors_cannot_read_answers() -> None:
    with pytest.raises(EmbedderUnavailable):
        read(BundledEmbedder(name="multilingual-use-v3", timeout_s=60), "Why?", "Because.")
