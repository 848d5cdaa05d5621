"""The wanted kind of answer in what is quoted."""

from __future__ import annotations

import pytest

from portal.answering.quoting.extractive import ExtractiveChatModel
from portal.answering.quoting.rules.kinds import Wanted, can_hold, find_wanted
from portal.domain.answering import Abstained
from tests.unit.answering.quoting.answers import OddsReader, content_of, is_quoted, request
from tests.unit.answering.sources import source


@pytest.mark.parametrize(
    ("question", "language", "without", "answer"),
    [
        ("What time do you close?", "en", "We close over Christmas.", "We close at 18:00."),
        ("早班几点开门？", "zh", "早班由店长开门。", "早班上午九点开门。"),
        ("How long do locks last?", "en", "Locks last as set.", "Locks last 45 s."),
        ("滤网多久换一回？", "zh", "滤网自己换。", "滤网每月换。"),
    ],
)
def test_statement_without_the_signs_of_the_wanted_kind_is_less_likely(
    question, language, without, answer
):
    reader = OddsReader({without: 1.0, answer: 1.0})
    events = ExtractiveChatModel(reader).stream(request(question, [source(1, without)], language))
    assert [type(event) for event in events] == [Abstained]
    sources = [source(1, without), source(2, answer)]
    events = ExtractiveChatModel(reader).stream(request(question, sources, language))
    content, _ = content_of(events, sources)
    assert answer in content
    assert without not in content


def test_name_that_begins_a_sentence_is_a_person():
    said = ("Amina asks the choir.", "Visits need no guide.", "- Tariq checks the tax.")
    held = [can_hold(Wanted.PERSON, one, "Who does it?") for one in said]
    assert held == [True, False, True]


@pytest.mark.parametrize(
    ("question", "by_department", "unsaid"),
    [
        ("Who pays?", "Finance pays every Wednesday.", "Receipts are paid every Wednesday."),
        ("谁付款？", "财务每周三付款。", "财务制度规定每周三付款。"),
    ],
)
def test_department_pays(question, by_department, unsaid):
    said = (by_department, unsaid)
    assert [can_hold(Wanted.PERSON, one, question) for one in said] == [True, False]


def test_setting_for_those_who_is_asked_for_no_person():
    row = "FALLBACK_LANG is the language of those without one."
    question = "Which variable sets the language of those who have none?"
    events = ExtractiveChatModel(OddsReader({row: 1.0})).stream(request(question, [source(1, row)]))
    assert row in content_of(events, [source(1, row)])[0].replace("\\", "")


@pytest.mark.parametrize(("columns", "is_answered"), [(6, True), (7, False)])
def test_row_of_many_cells_needs_more_evidence(columns, is_answered):
    names = ["Item", "Price", *(f"Column {n}" for n in range(columns - 2))]
    cells = ["Otter", "£129", *(["x"] * (columns - 2))]
    table = source(1, " | ".join(names) + "\n" + " | ".join(cells) + "\n" + " | ".join(cells))
    row = "; ".join(f"{name}: {cell}" for name, cell in zip(names, cells, strict=True))
    asked = request("How much is the van called Otter?", [table])
    assert is_quoted(OddsReader({row: -0.8}), asked) is is_answered


def test_which_papers_is_answered_by_what_lists():
    said = [
        "Form TR-3 is the claim form.",
        "Claims come with boarding passes, invoices, a statement.",
    ]
    sources = [source(number, text) for number, text in enumerate(said, 1)]
    reader = OddsReader(dict.fromkeys(said, 2.0))
    content, _ = content_of(
        ExtractiveChatModel(reader).stream(request("Which papers go with a claim?", sources)),
        sources,
    )
    assert content.index("boarding passes") < (content + "TR-3").index("TR-3")


@pytest.mark.parametrize("question", ["病假工资怎么算？", "加班费如何计算", "超时了怎么算钱？"])
def test_how_pay_is_worked_out_asks_for_an_amount_a_share_or_a_rule(question):
    assert find_wanted(question) is Wanted.MONEY
    said = ("按基本工资的 80% 发放。", "按三倍工资支付。", "工资照发。", "工资按出勤天数计算。")
    assert all(can_hold(Wanted.MONEY, one, question) for one in said)
    assert not can_hold(Wanted.MONEY, "病假须提交医院证明。", question)


@pytest.mark.parametrize(
    "question", ["毛利率怎么算？", "两人一间，标准怎么算？", "报销费用怎么报？"]
)
def test_how_other_things_are_worked_out_asks_for_no_money(question):
    assert find_wanted(question) is not Wanted.MONEY
