"""Names such as "Otter 3" in questions."""

from __future__ import annotations

import pytest

from portal.answering.quoting.rules.names import without_numbers_of_names
from tests.unit.answering.quoting.answers import OddsReader, is_quoted, request
from tests.unit.answering.sources import source


@pytest.mark.parametrize(
    ("question", "text", "read"),
    [
        (
            "Otter 3的主控板多少钱？",
            "名称: 主控板; 机型: Otter 3; 单价: 2750",
            "Otter的主控板多少钱？",
        ),
        ("price of the otter 3", "Otter 3 | 2750", "price of the otter"),
        ("Otter 30 price?", "Otter 3 | 2750", "Otter 30 price?"),
        ("Otter 3 price?", "Otter 30 | 2750", "Otter 3 price?"),
        ("Is Otter 3.5 out?", "Otter 3 is out.", "Is Otter 3.5 out?"),
        ("What is on May 6?", "May 6: open day", "What is on May 6?"),
        ("How many of the Otter 3?", "About 3 of them.", "How many of the Otter 3?"),
    ],
)
def test_number_of_a_name_in_the_text_is_left_out_of_the_question(question, text, read):
    assert without_numbers_of_names(question, text) == read


def test_statement_with_the_name_is_read_without_its_number():
    row = "The Otter 3 costs 2,750 euros."
    asked = request("How much is the Otter 3?", [source(1, row)])
    doubted, known = {row: -6.0}, {row: 6.0}
    assert not is_quoted(OddsReader(doubted), asked)
    assert is_quoted(OddsReader(doubted, {"How much is the Otter": known}), asked)
    other = "The Otter 4 costs 2,750 euros."
    asked = request("How much is the Otter 3?", [source(1, other)])
    reader = OddsReader({other: -6.0}, {"How much is the Otter": {other: 6.0}})
    assert not is_quoted(reader, asked)
