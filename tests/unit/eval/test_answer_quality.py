"""Measuring answers on the documents of a team."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from eval.answers import sets as answer_sets
from eval.answers.quality import ask, summary
from eval.answers.quoted_pieces import headings, is_half, is_heading
from eval.answers.sets import AnswerQuestion, Expected
from eval.engine import Answered, QuotedPiece
from eval.sets import BadSet

TEXT = "年假\n结转的年假须在三月底前休完。申请应提前五天提交。\n工龄 | 天数\n1 年 | 10 天\n"


def test_shipped_questions_are_as_many_and_as_varied_as_they_claim():
    halves = answer_sets.load_halves("both")
    kinds = Counter(question.kind for half in halves for question in half.questions)
    assert sum(kinds.values()) >= 400
    assert kinds["absent"] >= 80
    assert set(kinds) == set(answer_sets.KINDS)
    names = [path.name for half in halves for path in half.documents]
    assert len(names) == len(set(names))


def test_no_gold_word_is_given_away_by_its_question():
    for half in answer_sets.load_halves("both"):
        for question in half.questions:
            if question.expected is Expected.ANSWER:
                for words in question.gold:
                    alone = AnswerQuestion("", "fact", "", (words,))
                    assert alone.share_of_gold(question.text) == 0, question


@pytest.mark.parametrize(
    ("answer", "share"),
    [("共 15 天，Ｃarry-over 3 月底", 1.0), ("> 15\\.天", 0.0), ("十五天", 0.5), ("三月底", 0.5)],
)
def test_gold_words_match_regardless_of_spacing_and_width(answer, share):
    question = AnswerQuestion("q", "row", "?", (("15天", "十五天"), ("3月底", "三月底")))
    assert question.share_of_gold(answer) == share


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"kind": "riddle", "question": "?"}, "kind"),
        ({"kind": "fact", "question": " "}, "question"),
        ({"kind": "fact", "question": "?"}, "gold"),
        ({"kind": "absent", "question": "?", "gold": ["x"]}, "gold"),
        ({"kind": "fact", "question": "?", "gold": [[""]]}, "gold"),
    ],
)
def test_question_that_cannot_be_judged_is_refused(tmp_path, row, reason):
    (tmp_path / "a.md").write_text("# A\n")
    (tmp_path / answer_sets.QUESTIONS).write_text(json.dumps(row) + "\n")
    with pytest.raises(BadSet, match=f"line 1.*{reason}"):
        answer_sets.load(tmp_path)


@pytest.mark.parametrize(
    ("quoted", "is_alone"),
    [("年假", True), ("工龄 | 天数", True), ("年假\n工龄 | 天数", True), ("谁可以申请？", True),
     ("1 年 | 10 天", False), ("申请应提前五天提交。", False)],
)  # fmt: skip
def test_headings_header_rows_and_questions_are_no_quotation(tmp_path, quoted, is_alone):
    path = tmp_path / "leave.md"
    path.write_text(
        "# 年假\n\n申请应提前五天提交。\n\n| 工龄 | 天数 |\n| --- | --- |\n| 1 年 | 10 天 |\n"
    )
    assert is_heading(quoted, headings(path)) == is_alone


@pytest.mark.parametrize(
    ("text", "known"),
    [("<h1>Fees</h1><table><tr><th>Code</th><th>Fee</th></tr><tr><td>A</td></tr></table>",
      {"fees", "codefee"}),
     ("Parking\n\nThe car park is full.\nAsk the guard\n\n1. Fees\nNone.", {"parking", "1fees"})],
)  # fmt: skip
def test_headings_of_web_pages_and_plain_text_are_known(tmp_path, text, known):
    path = tmp_path / ("a.html" if text.startswith("<") else "a.txt")
    path.write_text(text)
    assert headings(path) == known | {"a"}


@pytest.mark.parametrize(
    ("quoted", "is_cut"),
    [
        ("结转的年假须在三月底前休完。", False),
        ("申请应提前五天提交。", False),
        ("申请应提前五天", True),
        ("三月底前休完。", True),
        ("1 年 | 10 天", False),
        ("10 天", False),
        ("0 天", True),
    ],
)
def test_half_sentences_are_detected(quoted, is_cut):
    start = TEXT.index(quoted)
    assert is_half(TEXT, start, start + len(quoted)) == is_cut


def test_mark_of_a_footnote_ends_a_sentence():
    text = "Passwords are changed.[1] Private software is banned.[2] See below."
    quoted = "Private software is banned.[2]"
    start = text.index(quoted)
    assert not is_half(text, start, start + len(quoted))
    assert is_half(text, start + 8, start + len(quoted))


class Portal:
    """Quotes the given texts and records the questions asked."""

    def __init__(self, text: str, *quoted: str) -> None:
        self._text, self._quoted = text, quoted
        self.asked: list[str] = []

    def converse(self, questions):
        self.asked = list(questions)
        pieces = [
            QuotedPiece(Path(answer_sets.SHIPPED / "README.md"), TEXT, start, start + len(one))
            for one in self._quoted
            for start in [TEXT.index(one)]
        ]
        return Answered(self._text, bool(pieces), tuple(pieces), 0.02)


def question(kind, *gold, after=()):
    return AnswerQuestion("q", kind, "几天？", tuple((word,) for word in gold), after)


def test_answer_is_right_only_with_all_gold_words_and_a_quotation():
    results = [
        ask(Portal("> 10 天 [1]", "1 年 | 10 天"), question("row", "10天")),
        ask(Portal("> 10 天 [1]", "1 年 | 10 天"), question("two", "10天", "三月底")),
        ask(Portal("也许 10 天"), question("fact", "10天")),
        ask(Portal("> 年假 [1]", "年假须"), question("absent")),
        ask(Portal("没有写明"), question("absent")),
        ask(Portal("你好！"), question("greeting", "你好")),
    ]
    figures = summary(results)
    assert {kind: one["right"] for kind, one in figures["kinds"].items()} == {
        "row": 100, "two": 0, "fact": 0, "absent": 50, "greeting": 100,
        "one sentence, row or item": 50, "any answer": 33.3, "any abstention": 50, "any reply": 100,
    }  # fmt: skip
    assert figures["kinds"]["two"]["gold"] == 50
    assert figures["half sentences"] == 1
    assert figures["ms"] == {"50": 20, "95": 20}


def test_quotation_that_is_cut_short_counts_as_half_a_sentence():
    cut = ask(Portal("> 结转的年假须 … [1]", "申请应提前五天提交。"), question("fact", "结转"))
    assert cut.half_sentences == 1


def test_follow_up_is_asked_after_its_question():
    portal = Portal("> 10 天 [1]", "1 年 | 10 天")
    ask(portal, question("follow", "10天", after=("谁有年假？", "谢谢")))
    assert portal.asked == ["谁有年假？", "谢谢", "几天？"]
