from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.text.characters.folding import in_script_of
from portal.text.terms.spelling import (
    edits,
    in_case_of,
    lookup_keys,
    stored_keys,
    suspects_of,
    words_of,
)

latin = st.text("abcde", min_size=3, max_size=8)
han = st.text("机器学习血年假价", min_size=2, max_size=4)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("machine", "machine", 0),
        ("machne", "machine", 1),
        ("mahcine", "machine", 1),
        ("machina", "machine", 1),
        ("maschinee", "machine", 2),
        ("lerning", "learnings", 2),
        ("kitten", "sitting", 3),
        ("abc", "xyzabc", 3),
        ("血习", "学习", 1),
    ],
)
def test_edits_are_counted_up_to_a_bound(one: str, other: str, expected: int) -> None:
    assert edits(one, other, 2) == edits(other, one, 2) == expected


@given(latin, latin)
def test_words_one_edit_apart_share_a_key(one: str, other: str) -> None:
    if edits(one, other, 1) <= 1:
        assert set(stored_keys(one)) & set(lookup_keys(other))


@given(han, han)
def test_chinese_words_share_a_key_when_one_is_a_typo_of_the_other(word: str, typed: str) -> None:
    may_be = len(typed) in {len(word), len(word) - 1}
    shares = bool(set(stored_keys(word)) & set(lookup_keys(typed)))
    if may_be and edits(word, typed, 1) <= 1:
        assert shares
    elif shares:
        # One character is missing and the others swapped: 价假 for 假习价. Counting edits drops it.
        assert len(typed) == len(word) - 1
        assert Counter(typed) <= Counter(word)


def test_words_are_found_folded_as_written_and_with_their_terms() -> None:
    found = words_of("Über ＡＢＣ’s learning, e-mail v0.8 機器學習 帶薪年假 of x1y")
    assert {word: found[word].surface for word in ("uber", "abc", "learning", "mail")} == {
        "uber": "über",
        "abc": "abc",
        "learning": "learning",
        "mail": "mail",
    }
    assert found["learning"].term == "learn"
    assert found["年假"].term == "年 假"
    assert {"机器", "学习"} <= found.keys()
    assert found.keys().isdisjoint({"of", "x1y", "v0", "机", "s"})


def test_suspects_are_long_words_and_words_not_in_the_dictionary() -> None:
    text = "What is machne ＬＥＡＲＮＩＮＧ? 机器血习 po4711 cat 量子力学的"
    found = {text[suspect.start : suspect.end] for suspect in suspects_of(text)}
    assert {"machne", "ＬＥＡＲＮＩＮＧ", "血习", "机器血习"} <= found
    assert found.isdisjoint({"What", "cat", "po4711", "量子", "力学", "力学的"})


@given(st.text() | st.lists(st.sampled_from("机器血习年价的 aéİﬁ-'9")).map("".join))
def test_suspects_lie_in_the_text(text: str) -> None:
    for suspect in suspects_of(text):
        assert 0 <= suspect.start < suspect.end <= len(text)
    words_of(text)


def test_corrections_keep_case_and_script() -> None:
    assert in_case_of("MACHNE", "machine") == "MACHINE"
    assert in_case_of("Machne", "machine") == "Machine"
    assert in_case_of("machne", "machine") == "machine"
    assert in_script_of("機器血習", "机器学习") == "機器學習"
    assert in_script_of("机器血习", "机器学习") == "机器学习"
    assert in_script_of("machne", "机器") == "机器"
