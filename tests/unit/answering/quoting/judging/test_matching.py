"""Words of questions in texts."""

from __future__ import annotations

import pytest

from portal.answering.quoting.judging.matching import shares_of_words
from portal.answering.quoting.questions import content_words


@pytest.mark.parametrize(
    ("question", "text", "is_shared"),
    [
        ("什么时候交租金", "租金按季度支付。", True),
        ("谁能开专票", "专票由财务开具。", True),
        ("什么时候交租金", "押金按季度支付。", False),
        ("发动机怎么修", "学习动机", False),
    ],
)
def test_noun_after_a_verb_is_shared(question: str, text: str, is_shared: bool) -> None:
    assert bool(shares_of_words(content_words(question), [text]).any()) is is_shared
