"""Days of the week in questions and statements."""

import pytest

from portal.answering.quoting.rules.groups.weekdays import find_weekdays, with_long_weekdays


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("周一至周五 8:30–18:00", [0, 1, 2, 3, 4]),
        ("星期一到五，周日休息", [0, 1, 2, 3, 4, 6]),
        ("Fri to Mon", [0, 4, 5, 6]),
        ("Open Saturdays, and every Thursday.", [3, 5]),
        ("工作日 9 点开门", [0, 1, 2, 3, 4]),
        ("closed at the weekend", [5, 6]),
        ("工作日 1.5 倍，休息日 2 倍", [0, 1, 2, 3, 4, 5, 6]),
        ("每天 22:00 关门", [0, 1, 2, 3, 4, 5, 6, 7]),
        ("on weekends and bank holidays", [5, 6, 7]),
        ("法定节假日三倍", [7]),
        ("每周三次，一周五天", []),
        ("每周四十小时，一周五百元，每两周一轮换", []),
        ("周五十点开会", [4]),
        ("She sat down and put on sun cream.", []),
        ("须在 3 个工作日内提交", []),
    ],
)
def test_days_are_found_in_words_and_spans(text, days):
    assert sorted(find_weekdays(text)) == days


@pytest.mark.parametrize(
    ("text", "written_out"),
    [
        ("Aqua fit | Sat 10:00 | Lena", "Aqua fit | Saturday 10:00 | Lena"),
        ("Mon–Thu 8 to 6, Fri until 4", "Monday–Thursday 8 to 6, Fri until 4"),
        ("Day: Wed; Trainer: Ines", "Day: Wednesday; Trainer: Ines"),
        ("Sat in the Sun on Monday.", "Sat in the Sun on Monday."),
    ],
)
def test_days_of_a_timetable_are_written_out(text, written_out):
    assert with_long_weekdays(text) == written_out
