"""Events that a question names must be in the statement that answers it."""

from __future__ import annotations

import pytest

from portal.answering.quoting.rules.events import find_events, has_another_event, lacks_event


@pytest.mark.parametrize(
    ("question", "statement"),
    [
        ("where was tesla born?", "tesla died in new york in 1943."),
        ("特斯拉是在哪里出生的？", "tesla died in new york in 1943."),
        ("who wrote the security policy?", "report it to the security desk."),
        ("when was the printer bought?", "printer; checked in may 2025"),
        ("打印机是哪年买的？", "打印机 2024年5月检修"),
        ("who designed the bridge?", "the bridge was painted by mara lind."),
    ],
)
def test_statement_of_another_event_lacks_the_one_asked_for(question: str, statement: str) -> None:
    assert lacks_event(find_events(question), statement)


@pytest.mark.parametrize(
    ("question", "statement"),
    [
        ("where was tesla born?", "tesla, born in smiljan, moved to new york."),
        ("特斯拉是在哪里出生的？", "nikola tesla was born in smiljan."),
        ("who wrote the security policy?", "written by the security team."),
        ("who wrote the minutes?", "minutes: chen jing"),
        ("会议记录是谁写的？", "记录:王敏(行政)"),
        ("公司是什么时候创立的？", "公司成立于 2015 年。"),
        ("who buys the coffee?", "coffee is ordered by mia."),
        ("打印机是哪年买的？", "printer; bought: may 2024"),
        ("when does the office open?", "the office opens at nine."),
        ("where do designers sit?", "the design team sits on the third floor."),
        ("where is the inventory list kept?", "the list is kept in the storeroom."),
        ("how do i set up the printer?", "choose the printer in the settings."),
    ],
)
def test_same_event_in_other_words_or_another_language_counts(
    question: str, statement: str
) -> None:
    assert not lacks_event(find_events(question), statement)


@pytest.mark.parametrize(
    ("question", "statement"),
    [
        ("发现客户有洗钱嫌疑，应该向谁报告？", "report to the officer."),
        ("一旦发现火情找谁?", "致电保安。"),
        ("i have discovered a leak, who do i tell?", "call the caretaker."),
    ],
)
def test_circumstance_is_not_the_event_asked_for(question: str, statement: str) -> None:
    assert not lacks_event(find_events(question), statement)
    assert lacks_event(find_events("青霉素是谁发现的?"), statement)


def test_birth_and_death_dates_answer_when_but_not_where() -> None:
    life = "尼古拉·特斯拉(1856 年 7 月 10 日-1943 年 1 月 7 日)是发明家。"
    assert not lacks_event(find_events("when was tesla born?"), life, is_when=True)
    assert lacks_event(find_events("where was tesla born?"), life)
    assert lacks_event(find_events("when did tesla graduate?"), life, is_when=True)


def test_another_event_is_one_that_the_question_does_not_name():
    asked = find_events("特斯拉是在哪里出生的?")
    assert has_another_event(asked, "tesla died in new york")
    assert not has_another_event(asked, "tesla was born in smiljan and died in new york")
    assert not has_another_event(asked, "tesla lived in new york")
