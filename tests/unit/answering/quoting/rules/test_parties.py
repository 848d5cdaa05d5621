"""Parties of contracts are recognised by name where the contract says 乙方 or "the Contractor"."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from portal.answering.quoting.rules.parties import find_parties, with_party
from tests.unit.answering.quoting.answers import OddsReader, is_quoted, request
from tests.unit.answering.sources import source

LEASE = "甲方（出租方）：上海恒信物业有限公司\n乙方（承租方）：晨光贸易有限公司"
CLEANING = (
    'This agreement is between Lanternworks Trading Ltd (hereinafter "the Client") and '
    "Brightside Services GmbH (“the Contractor”)."
)


@pytest.mark.parametrize(
    ("contract", "question", "text", "other"),
    [
        (LEASE, "恒信多久退押金？", "甲方 15 天内退还押金。", "甲方多久退押金？"),
        (LEASE, "恒信物业多久退押金？", "甲方 15 天内退还押金。", "甲方多久退押金？"),
        (LEASE, "上海恒信物业有限公司电话？", "甲方电话：5512", "甲方电话？"),
        (LEASE, "承租方几号付租金？", "乙方每月 5 日付租金。", "乙方几号付租金？"),
        (CLEANING, "Does Brightside clean?", "the Contractor is", "Does the Contractor clean?"),
        (CLEANING, "Brightside's fee?", "The Contractor's fee", "the Contractor's fee?"),
        # Another company, a statement about the other party, and a blank form.
        (LEASE, "恒通多久退押金？", "甲方 15 天内退还押金。", "恒通多久退押金？"),
        (LEASE, "晨光多久退押金？", "甲方 15 天内退还押金。", "晨光多久退押金？"),
        (LEASE, "上海几点天亮？", "甲方 15 天内退还押金。", "上海几点天亮？"),
        ("甲方：　　乙方：　　", "乙方几号付租金？", "甲方付租金。", "乙方几号付租金？"),
        (CLEANING, "Who trades?", "The Client pays.", "Who trades?"),
    ],
)  # fmt: skip
def test_question_names_a_party_as_the_contract_does(contract, question, text, other):
    one = source(1, contract)
    parties = find_parties([one])[one.document_id]
    assert with_party(question, text, parties) == other


def test_party_named_in_one_passage_is_known_in_the_others():
    duty = "甲方应在合同终止后 15 天内退还。"
    head = replace(source(1, LEASE), document_id=UUID(int=7))
    below = replace(source(2, duty), document_id=UUID(int=7))
    reader = OddsReader({duty: -5.0}, {"甲方多久退押金": {duty: 4.0}})
    assert is_quoted(reader, request("恒信多久退押金？", [head, below], "zh"))
    elsewhere = source(3, duty)
    assert not is_quoted(reader, request("恒信多久退押金？", [head, elsewhere], "zh"))
