"""The figures that `./run eval` computes from results."""

from __future__ import annotations

import json

import pytest
from rich.console import Console

from eval.__main__ import report
from eval.engine import DEFAULT, METHODS, Found
from eval.evaluation import Asked, confidence_figures, evaluate, off_topic_questions, other_script
from eval.sets import Chunk, Question, QuestionSet


def one_set(name, title, text):
    chunk = Chunk(id="p", title=title, text=text)
    return QuestionSet(name, (chunk,), (Question("q", f"问 {text}？", frozenset({"p"})),))


class Portal:
    """Finds the chunk of every question, except by keyword."""

    def ask(self, question, method):
        found = () if method == "keyword" else ("p",)
        return Found(ids=found, confidence=0.9 if "a" in question else 0.2, off_topic=False)


def test_figures_cover_every_method_and_can_be_written_as_json():
    figures = evaluate(Portal(), one_set("one", "T", "a 图书"), [], lambda: None)
    assert list(figures["methods"]) == list(METHODS)
    assert figures["methods"][DEFAULT]["recall_at_10"] == 100
    assert figures["methods"]["keyword"]["hit_at_5"] == 0
    assert figures["other_script"]["hit_at_5"] == 100
    assert figures["confidence"]["auroc"] is None
    json.dumps(figures)
    console = Console(record=True, width=160)
    report(console, {"one": figures})
    assert "nDCG@10" in console.export_text()


def test_questions_of_other_sets_are_off_topic_unless_their_subject_is_there():
    here, there = one_set("one", "T", "a"), one_set("two", "U", "b")
    same_subject = one_set("three", "T", "c")
    found = off_topic_questions(here, [here], [here, there, same_subject])
    assert [question.text for question in found] == ["问 b？"]


def test_confidence_counts_answered_and_unanswered_questions_the_same():
    question = Question("q", "?", frozenset({"p"}))
    right = [Asked(question, Found(("p",), 0.9, False), True)] * 3
    wrong = [Asked(question, Found(("p",), 0.1, True), False)] * 30
    figures = confidence_figures([*right, *wrong])
    assert figures["error_of_first"] == pytest.approx(0.1)
    assert figures["right_first_flagged_low"] == 0
    assert figures["off_topic_called_so"] == 1
    assert figures["auroc"] == 1


@pytest.mark.parametrize(
    ("question", "converted"),
    [("圖書館幾點關門？", "图书馆几点关门？"), ("图书馆", "圖書館"), ("When?", None)],
)
def test_question_is_converted_to_the_other_script(question, converted):
    assert other_script(question) == converted
