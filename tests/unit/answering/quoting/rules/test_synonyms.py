"""Questions reworded with the synonyms that a statement uses."""

from __future__ import annotations

from itertools import permutations

import pytest

from portal.answering.quoting.rules.groups.named import find_named, names_others
from portal.answering.quoting.rules.kinds import Wanted
from portal.answering.quoting.rules.synonyms import MEANINGS, reworded
from portal.answering.quoting.rules.titles import is_qualified
from tests.unit.answering.quoting.answers import OddsReader, is_quoted, request
from tests.unit.answering.sources import source


@pytest.mark.parametrize(
    ("question", "text", "other"),
    [
        ("可以在家办公吗？", "每周可远程办公两天。", "可以远程办公吗？"),
        ("WiFi密码是多少？", "无线网络的密码是 blue。", "无线网络密码是多少？"),
        ("Who is the CEO?", "Jonas Lind (managing director)", "Who is the managing director?"),
        ("How many vacation days?", "28 days PTO a year.", "How many pto days?"),
        ("房费能报多少？", "一线城市住宿: 600", "住宿能报多少？"),
        ("上海房费能报多少？", "一线城市住宿: 600", "一线城市住宿能报多少？"),
        ("国庆节加班给多少钱？", "法定节假日加班按300%支付。", "法定节假日加班给多少钱？"),
        ("门禁卡弄丢了要赔多少？", "遗失门禁卡赔 120 元。", "门禁卡遗失了要赔多少？"),
        ("博四每月发多少？", "博士四年级: 3,900", "博士四年级每月发多少？"),
        ("奶奶去世放几天假？", "丧假（祖父母）: 2 天", "祖父母丧假放几天假？"),
        (
            "How far ahead can I book?",
            "Book up to ten days in advance.",
            "How far in advance can I book?",
        ),
        ("Who was not at the meeting?", "Excused: Wang Wei", "Who was excused?"),
        ("餐补标准是多少？", "餐补: 120 元/天", "餐补多少钱？"),
        # The text has the question's own word, or none that means the same.
        ("餐补标准是多少？", "餐补标准: 120 元/天", "餐补标准是多少？"),
        ("身高标准是多少？", "身高不低于 1.2 米", "身高标准是多少？"),
        ("房东叫什么？", "房东和出租方是陈明。", "房东叫什么？"),
        ("How much is a taxi?", "Scabs heal.", "How much is a taxi?"),
    ],
)
def test_question_is_reworded_with_the_words_of_the_text(
    question: str, text: str, other: str
) -> None:
    assert reworded(question, text) == other


def test_statement_with_synonyms_is_read_with_the_reworded_question() -> None:
    said = "每周可远程办公两天。"
    reader = OddsReader({said: -5.0}, {"可以远程办公吗": {said: 4.0}})
    assert is_quoted(reader, request("可以在家办公吗？", [source(1, said)], "zh"))
    reader = OddsReader({said: -5.0})
    assert not is_quoted(reader, request("可以在家办公吗？", [source(1, said)], "zh"))


def test_synonyms_are_words_that_no_question_tells_apart() -> None:
    told_apart = [
        (one, other)
        for line in MEANINGS.strip().splitlines()
        for one, other in permutations(line.split(", "), 2)
        if names_others(find_named(one, Wanted.NUMBER), "", other)
        or is_qualified([(one,)], one, other)
    ]
    assert not told_apart
