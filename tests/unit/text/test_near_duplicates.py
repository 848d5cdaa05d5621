"""Which chunks count as copies of each other."""

from __future__ import annotations

import pytest

from portal.text.likeness.near_duplicates import group_near_duplicates

CHINESE = (
    "员工每年享有十五天带薪年假，入职满十年的员工享有二十天。年假应当在当年内休完，"
    "因工作需要不能休完的，经部门经理批准可以顺延至次年三月底。病假需要提供医院证明，"
    "病假期间的工资按照国家和本市的有关规定发放。请假应当提前在系统里提出申请。"
)
ENGLISH = (
    "Every member of staff has 15 days of paid leave a year, and 20 days after ten years. Leave "
    "is taken within the year; with the consent of the head of department what is left may be "
    "taken until the end of March. Sick leave needs a note from a doctor, and requests go "
    "through the personnel system in good time before the first day off."
)


@pytest.mark.parametrize("text", [CHINESE, ENGLISH], ids=["zh", "en"])
def test_copies_with_other_spaces_punctuation_and_case_are_duplicates(text: str) -> None:
    copies = [text, text.upper(), text.replace("，", ", ").replace("。", ".\n\n"), f"  {text}!"]
    assert group_near_duplicates(copies) == [0, 0, 0, 0]


def test_traditional_and_simplified_spellings_are_duplicates() -> None:
    simplified = "员工请假应当提前在系统里提出申请，并由部门经理批准。"
    traditional = "員工請假應當提前在系統裏提出申請，並由部門經理批准。"
    assert group_near_duplicates([simplified, traditional]) == [0, 0]


def test_one_word_replaced_in_a_long_chunk_is_a_copy() -> None:
    changed = [CHINESE * 2, (CHINESE * 2).replace("应当提前", "必须提前", 1)]
    assert group_near_duplicates(changed) == [0, 0]
    assert group_near_duplicates([ENGLISH, ENGLISH.replace("consent", "approval")]) == [0, 0]


@pytest.mark.parametrize(
    ("text", "other"),
    [
        (ENGLISH, ENGLISH.replace("15", "25")),
        (CHINESE * 2, (CHINESE * 2).replace("十五天", "十二天")),
        ("Release 1.5 of the portal", "Release 15 of the portal"),
    ],
)
def test_chunks_with_different_numbers_are_not_duplicates(text: str, other: str) -> None:
    assert group_near_duplicates([text, other]) == [0, 1]


def test_spellings_of_the_same_number_are_duplicates() -> None:
    assert group_near_duplicates(["It costs 1,000 yuan.", "It costs １０００ yuan."]) == [0, 0]


def test_part_of_an_earlier_chunk_is_a_copy_but_not_the_other_way_round() -> None:
    half = ENGLISH[: len(ENGLISH) // 2]
    assert group_near_duplicates([ENGLISH, half]) == [0, 0]
    assert group_near_duplicates([half, ENGLISH]) == [0, 1]


def test_heading_is_not_a_copy_of_the_chunk_that_contains_it() -> None:
    assert group_near_duplicates([ENGLISH, "Sick leave needs a note"]) == [0, 1]


def test_different_chunks_stay_separate_and_groups_name_the_best_ranked() -> None:
    texts = [ENGLISH, CHINESE, ENGLISH + " ", "", "", "?!", CHINESE.replace("，", " ")]
    assert group_near_duplicates(texts) == [0, 1, 0, 3, 4, 5, 1]


def test_any_text_is_accepted() -> None:
    assert group_near_duplicates([]) == []
    odd = ["\ud800", "\0", "a", "𠮷" * 30, "𠮷" * 30, "\uffff", "ﷺ" * 5]
    assert group_near_duplicates(odd) == [0, 1, 2, 3, 3, 5, 6]
