"""Names that look like an existing one are refused, also when two are created at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from portal.errors import InvalidInput, NameLooksTaken, NameTaken
from portal.text.characters.look_alikes import skeleton
from tests.conftest import Portal
from tests.factories.cases import for_each


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("admin", "\u0430dmin"),  # Cyrillic а
        ("admin", "adm\u0131n"),  # dotless ı
        ("admin", "ADM\u0130N"),  # dotted İ
        ("admin", "\uff41\uff44\uff4d\uff49\uff4e"),  # full width
        ("admin", "adrnin"),
        ("admin", "ad\ufe0fmin"),  # a variation selector
        ("otto", "\u03bftto"),  # Greek ο
        ("otto", "0tto"),
        ("Ivan", "\u0456van"),
        ("Bob", "\u0392ob"),  # Greek Β
        ("paul", "pauI"),
        ("paul", "pau1"),
        ("ada lovelace", "ada\u00a0\u2003lovelace"),
        ("coco", "\u0441\u043e\u0441\u043e"),  # all Cyrillic
        ("\u53e3\u6c34", "\u30ed\u6c34"),  # 口 and katakana ロ
    ],
)
def test_names_that_look_alike_are_detected(name: str, other: str) -> None:
    assert skeleton(name) == skeleton(other)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        *(("ann", "anna"), ("王伟", "王偉"), ("李明", "李朋"), ("una", "vna"), ("nan", "van")),
        *(("user1", "user2"), ("ada", "áda"), ("Иван", "Ивана"), ("ada b", "adab")),
    ],
)
def test_names_that_look_different_are_allowed(name: str, other: str) -> None:
    assert skeleton(name) != skeleton(other)


def test_an_account_that_looks_like_another_is_refused(portal: Portal) -> None:
    with pytest.raises(NameLooksTaken) as refused:
        portal.user("\u0430dmin")
    assert refused.value.status == 409
    with pytest.raises(NameTaken) as taken:
        portal.user("Admin")
    assert type(taken.value) is NameTaken
    portal.user("administrator")


@for_each("name", ["\u3164\u3164", "\u2800", "a\u200bb", "\u2066ada", "\ufe0f"])
def test_a_name_that_cannot_be_seen_is_refused(portal: Portal, name: str) -> None:
    with pytest.raises(InvalidInput):
        portal.user(name)


def test_one_of_two_simultaneous_requests_wins(portal: Portal) -> None:
    def make(name: str) -> bool:
        try:
            portal.user(name)
        except NameTaken:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(make, ["otto", "\u03bftto", "0tto", "\u043etto"]))
    assert made.count(True) == 1
