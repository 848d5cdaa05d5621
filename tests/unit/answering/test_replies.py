"""Messages that get a reply without a search, and questions that look like them."""

from __future__ import annotations

from pathlib import Path

import pytest

from eval.fitting.intents import HELD_OUT, MESSAGES, read
from portal.answering.arithmetic import compute
from portal.answering.intents import TOLD_APART, Intent
from portal.answering.replies import understand

SUMS = [
    "3+5",
    "15% of 240",
    "What's 12 * 7?",
    "(12+8)*3等于几",
    "100除以8",
    "1234 加 5678 等于多少？",
    "how much is 18 percent of 250",
    "25乘4",
    "88 乘 12 得多少？",
    "240 的 15% 是多少",
    "365 乘以 24 是多少",
    "What is 144 divided by 12?",
    "12x12",
    "3.5*4=?",
    "计算 45*12",
    "1,200 / 4",
    "请算一下 99+1",
    "帮我算下 17*23",
    "How much is 7 times 8?",
    "what does 9 plus 10 equal?",
    "100减去37",
    "18 乘 25 等于几？",
    "What does 19 * 21 make?",
    "work out 18% of 650",
    "365天乘以24小时",
    "12个月*3000",
    "2400元的15%是多少",
    "$3,000 * 12",
    "请帮我算一下 3500 的 8% 是多少",
    "100加200再减50等于几",
    "100元减30元",
    "€45 times 3",
]


@pytest.mark.parametrize(("message", "intent"), read(MESSAGES / "portal.jsonl"))
def test_messages_are_distinguished_from_questions(message: str, intent: Intent) -> None:
    understood = understand(message)
    assert (understood.intent if understood else Intent.QUESTION) is intent


@pytest.mark.parametrize("path", HELD_OUT, ids=lambda path: path.stem)
def test_messages_of_other_authors_are_distinguished_from_their_questions(path: Path) -> None:
    rows = [(one, intent) for one, intent in read(path) if intent in TOLD_APART]
    asked = [understand(one) for one, intent in rows if intent is Intent.QUESTION]
    # A message that may be a question is searched for if no document has the title.
    assert sum(one is not None and not one.may_ask for one in asked) <= 2
    others = [(understand(one), intent) for one, intent in rows if intent is not Intent.QUESTION]
    right = [one is not None and one.intent is intent for one, intent in others]
    assert sum(right) / len(right) > 0.9


@pytest.mark.parametrize("question", ["摘要字数限制是多少", "总结报告什么时候交", "概要设计谁负责"])
def test_what_sounds_like_a_request_may_be_a_question(question: str) -> None:
    understood = understand(question)
    assert understood is None or understood.may_ask


@pytest.mark.parametrize("message", ["谢谢" * 4000, "thanks " * 4000, "", "？", "\0", "🎉"])
def test_any_text_is_accepted(message: str) -> None:
    understood = understand(message)
    assert understood is None or understood.intent in Intent


@pytest.mark.parametrize("sum_", SUMS)
def test_sum_is_computed(sum_: str) -> None:
    understood = understand(sum_)
    assert understood is not None
    assert understood.intent is Intent.ARITHMETIC


@pytest.mark.parametrize(
    ("sum_", "result"),
    [("3加5再乘以2是多少", "16"), ("100减20再除以2", "40"), ("1,500 + 2", "1502")],
)
def test_sum_is_computed_in_the_order_of_its_words(sum_: str, result: str) -> None:
    assert (compute(sum_) or "").replace(",", "").endswith(f"= {result}")


@pytest.mark.parametrize(
    "text",
    [
        "5² + 3²",
        "What is 400-820-8820?",
        "What is 2024/25?",
        "what is 24/7?",
        "9.00-17.30",
        "3 of 5",
    ],
)
def test_figures_that_are_not_a_sum_are_not_computed(text: str) -> None:
    assert compute(text) is None
    assert compute("What is 12-5?") == "12-5 = 7"
