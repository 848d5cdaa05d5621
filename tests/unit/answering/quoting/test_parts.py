"""Division of a question into its parts."""

from __future__ import annotations

import pytest

from portal.answering.quoting.parts import find_parts, standalone_parts


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        ("年假有几天？如何报销住宿？", ("年假有几天", "如何报销住宿")),
        ("How many days of leave, and how do I claim a hotel?",
         ("How many days of leave", "how do I claim a hotel")),
        ("If I am ill, whom do I tell?", ("If I am ill, whom do I tell?",)),
        ("We have 180 people, what do we pay?", ("We have 180 people, what do we pay?",)),
        ("When the queue grows, whom do I call?", ("When the queue grows, whom do I call?",)),
        ("When is it due, and is it free?", ("When is it due", "is it free")),
        ("婚假和丧假各几天？", ("婚假几天", "丧假几天")),
        ("北京、上海分别报多少？", ("北京报多少", "上海报多少")),
        ("411 有没有投影？没有的话能借几天？", ("411 有没有投影", "能借几天")),
        ("年假有几天？", ("年假有几天？",)),
        ("输错好几次被锁了，要等多久", ("输错好几次被锁了，要等多久",)),
        ("才买几天，能退吗", ("才买几天", "能退吗")),
        ("才几天就坏了，能退吗", ("才几天就坏了，能退吗",)),
        ("周会几点？迟到了咋办？", ("周会几点", "迟到了咋办")),
        ("When and where do we meet?", ("When do we meet", "where do we meet")),
        ("E1和E4是什么意思？", ("E1是什么意思", "E4是什么意思")),
        ("What do E1, E2, and E4 mean?",
         ("What do E1 mean", "What do E2 mean", "What do E4 mean")),
        ("E1和E4有什么区别？", ("E1和E4有什么区别？",)),
        ("电脑是X1，P2打印机怎么连？", ("电脑是X1，P2打印机怎么连？",)),
        ("H1和H2的营收合计多少？", ("H1和H2的营收合计多少？",)),
        ("Are X1 and X2 compatible?", ("Are X1 and X2 compatible?",)),
        ("What do E1 and E2 mean on P12?", ("What do E1 and E2 mean on P12?",)),
        ("房间能提前几天订，报警打哪个电话？", ("房间能提前几天订", "报警打哪个电话")),
        ("前几天开会，说了什么？", ("前几天开会，说了什么？",)),
        ("What does a ticket cost for adults, and for children?",
         ("What does a ticket cost for adults", "What does a ticket cost for children")),
        ("Who came from the team for 6.0 and for how long?",
         ("Who came from the team for 6.0", "for how long")),
        ("What is the difference for adults and for children?",
         ("What is the difference for adults and for children?",)),
        ("max number of mice in one cage? also when are the dead ones collected",
         ("max number of mice in one cage", "when are the dead ones collected")),
        ("Parking? Who do I ask?", ("Parking? Who do I ask?",)),
        ("hi, who drives and on which day do we go", ("who drives", "on which day do we go")),
        ("1. 病假怎么请 2. 年终奖多少", ("病假怎么请", "年终奖多少")),
        ("1) How long is leave? 2) Who approves it?", ("How long is leave", "Who approves it")),
        ("What are 1. and 2. in the list?", ("What are 1. and 2. in the list?",)),
    ],
)  # fmt: skip
def test_parts_are_questions_of_their_own(question: str, parts: tuple[str, ...]) -> None:
    assert find_parts(question) == parts


@pytest.mark.parametrize(
    ("question", "searched"),
    [
        ("婚假几天，丧假几天？", "丧假几天？"),
        ("下次会议什么时候，在哪里？", "下次会议，在哪里？"),
        ("星图用的是什么数据库，哪个版本？", "星图用，哪个版本？"),
        ("What database do we use, and which version?", "database which version?"),
        ("年假有几天，什么部门审批？", "什么部门审批？"),
        ("试用期多长，打几折？", "试用期，打几折？"),
        ("Who repairs the pump, and by when?", "repairs the pump by when?"),
        ("Which rooms are there, and how many people fit in?", "rooms how many people fit in?"),
        ("谁去申请服务器预算，什么时候之前？", "申请服务器预算，什么时候之前？"),
        ("谁负责扩容，什么时候完成？", "负责扩容，什么时候完成？"),
        ("体检几月份做，去哪家医院？", "体检，去哪家医院？"),
        ("离职要提前多久通知，要还什么东西？", "离职要提前，要还什么东西？"),
        ("Who gets paternity leave and how many days?", "gets paternity leave how many days?"),
        (
            "Who approves a trip to Canada, and how far in advance?",
            "approves a trip to Canada how far in advance?",
        ),
        ("When do we leave for the bay and from where?", "leave for the bay from where?"),
        ("How do I call in sick and what's the number?", "call in sick what's the number?"),
        ("年假有几天？如何报销住宿？", "如何报销住宿？"),
        ("导轨要花多少钱？下一次例会在哪儿开？", "下一次例会在哪儿开？"),
        (
            "What is kept, and who drives for Tom when he is away?",
            "who drives for Tom when he is away?",
        ),
        ("When was 3.9 out, and which SQL does it need?", "3.9 out which SQL does it need?"),
    ],
)
def test_part_without_a_subject_gets_that_of_the_first_part(question: str, searched: str) -> None:
    _, (_, second) = standalone_parts(question)
    assert second == searched


def test_part_that_refers_back_gets_the_subject_but_not_the_kind_of_the_first_part():
    _, (_, second) = standalone_parts("Which day is the next weekly meeting and who chairs it?")
    assert second == "next weekly meeting who chairs it?"
