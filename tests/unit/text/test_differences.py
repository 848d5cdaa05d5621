"""Differences of texts: they lead from one to the other, are readable, and never take long."""

from __future__ import annotations

import random
import time
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from portal.text.likeness.differences import (
    Kind,
    Piece,
    _units,
    characters_changed,
    differences,
    has_more_units,
)
from portal.text.likeness.stretches import PART_CHARACTERS, part_of, stretches

WORDS = st.sampled_from(
    ["the", "fee", "年", "假", "十五", "。", ". ", "\n", "\n\n", " ", "é", "<b>"]
)
TEXTS = st.lists(WORDS, max_size=60).map("".join) | st.text(max_size=80)


def made_of(pieces: list[Piece], left_out: Kind) -> str:
    return "".join(piece.text for piece in pieces if piece.kind is not left_out)


def words(old: str, new: str) -> list[tuple[str, str]]:
    return [(piece.kind.value, piece.text) for piece in differences(old, new)]


@given(TEXTS, TEXTS)
def test_differences_lead_from_the_old_text_to_the_new_one(old: str, new: str) -> None:
    pieces = differences(old, new)
    assert made_of(pieces, Kind.ADDED) == old
    assert made_of(pieces, Kind.REMOVED) == new
    kinds = [piece.kind for piece in pieces]
    assert all(one is not next_one for one, next_one in pairwise(kinds))
    assert all(piece.text for piece in pieces)
    assert (old == new) == all(kind is Kind.SAME for kind in kinds)


def test_changed_lines_are_compared_by_word() -> None:
    old = "Leave policy\nEmployees may take fifteen days of annual leave.\nUnused leave expires.\n"
    new = "Leave policy\nEmployees may take twenty days of annual leave.\nUnused leave expires.\n"
    assert words(old, new) == [
        ("same", "Leave policy\nEmployees may take "),
        ("removed", "fifteen"),
        ("added", "twenty"),
        ("same", " days of annual leave.\nUnused leave expires.\n"),
    ]
    # Chinese has no spaces, so it is compared by characters.
    assert words("员工每年享有十五天年假。", "员工每年享有二十天年假。") == [
        ("same", "员工每年享有"), ("removed", "十五"), ("added", "二十"), ("same", "天年假。"),
    ]  # fmt: skip
    # Sentences with nothing in common are not compared word by word.
    assert words("A cat sat.\n", "Profits of 2024 rose\n") == [
        ("removed", "A cat sat.\n"), ("added", "Profits of 2024 rose\n"),
    ]  # fmt: skip


def test_moved_or_new_paragraph_leaves_others_unchanged() -> None:
    lines = [f"Paragraph {number} of the agreement.\n" for number in range(200)]
    longer = [*lines[:120], "A paragraph in between.\n", *lines[120:]]
    pieces = differences("".join(lines), "".join(longer))
    assert [piece.kind for piece in pieces] == [Kind.SAME, Kind.ADDED, Kind.SAME]
    assert characters_changed(pieces) == (len("A paragraph in between.\n"), 0)
    # A long line is compared by its sentences.
    long_line = "".join(f"第{number}条规定如下内容。" for number in range(500))
    changed = long_line.replace("第250条规定如下内容。", "")
    assert characters_changed(differences(long_line, changed)) == (0, len("第250条规定如下内容。"))


def test_huge_and_hostile_texts_are_compared_within_seconds() -> None:
    rng = random.Random(7)
    pages = [
        "".join(f"Line {rng.randrange(10**6)} of page {page}.\n" for _ in range(40))
        for page in range(1000)
    ]
    changed = [
        page if number % 9 else page.replace("Line", "Row") for number, page in enumerate(pages)
    ]
    hostile = [
        ("".join(pages), "".join(changed)),
        # Only two different lines in any order, so no line is unique.
        ("\n".join(rng.choices("ab", k=60_000)), "\n".join(rng.choices("ab", k=60_000))),
        ("x" * 2_000_000, "y" + "x" * 2_000_000),
        # None of these stops ends a sentence; scanning on from each would take quadratic time.
        ("." * 200_000 + "a", "." * 200_000 + "b"),
    ]
    for old, new in hostile:
        began = time.process_time()
        pieces = differences(old, new)
        assert time.process_time() - began < 8
        assert made_of(pieces, Kind.ADDED) == old
        assert made_of(pieces, Kind.REMOVED) == new


@given(st.text(alphabet="ab。 \n\r\v\f\x1c\x1e\x1f\x85\u2028\u2029", max_size=80))
def test_lines_end_as_in_python_and_are_counted_up_to_a_limit(text: str) -> None:
    lines = text.splitlines(keepends=True)
    assert list(_units(text)) == lines
    for limit in (0, 1, 5, len(lines), 2 * len(lines)):
        assert has_more_units((text, text), than=limit) == (2 * len(lines) > limit)


def test_long_lines_are_counted_by_sentence() -> None:
    line = "第一条规定如下内容。" * 100
    assert has_more_units((line,), than=99)
    assert not has_more_units((line,), than=100)


@given(TEXTS, TEXTS, st.integers(min_value=1, max_value=40))
def test_stretches_cover_the_whole_comparison(old: str, new: str, times: int) -> None:
    pieces = differences(old * times + new, old * times)
    shown = list(stretches(pieces))
    assert sum(one.characters for one in shown) == sum(len(piece.text) for piece in pieces)
    assert all(one.text is None or len(one.text) == one.characters for one in shown)
    changed = [one.text for one in shown if one.kind in {"added", "removed"}]
    assert changed == [piece.text for piece in pieces if piece.kind is not Kind.SAME]


def test_parts_of_long_differences_contain_all_of_them() -> None:
    long = "".join(f"Line {number} of many.\n" for number in range(6000))
    pieces = differences("Begin.\n" + long + "End.\n", "Began.\n" + long[::-1] + "End.\n")
    first = part_of(pieces, 1)
    parts = [part_of(pieces, number) for number in range(1, first.count + 1)]
    assert first.count > 5
    told = "".join(stretch.text or "" for part in parts for stretch in part.stretches)
    assert len(told) == sum(len(piece.text) for piece in pieces)
    for part in parts:
        assert sum(stretch.characters for stretch in part.stretches) <= PART_CHARACTERS
    assert part_of(pieces, 10**6) == parts[-1]
    # Text far from any change is folded; only short stretches can be unfolded.
    far = [*stretches(differences(long, long + "More."))]
    assert (far[0].kind, far[0].text) == ("folded", None)
