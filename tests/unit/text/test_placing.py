"""Stored words are located among the characters that a page shows."""

from __future__ import annotations

import pytest

from portal.text.layout.placing import PlacedPage, lines_of, rectangles


def found(stored: str, shown: str, words: str, nth: int = 0) -> list[str]:
    start = -1
    for _ in range(nth + 1):
        start = stored.index(words, start + 1)
    ranges = PlacedPage(stored, shown).find(start, start + len(words))
    return [shown[first:last] for first, last in ranges]


@pytest.mark.parametrize(
    ("stored", "shown", "words", "expected"),
    [
        ("The knowledge of all.", "The know-\nledge\nof all.", "knowledge of", "know-\nledge\nof"),
        ("office finance", "ofﬁce ﬁnance", "office finance", "ofﬁce ﬁnance"),
        ("年假有十天。", "⽉假\n年假\n有⼗天。", "年假有十天。", "年假\n有⼗天。"),
        ("Café naïve", "Cafe\u0301 nai\u0308ve", "Café naïve", "Cafe\u0301 nai\u0308ve"),
        ("well-known fact", "well\u00adknown fact", "well-known", "well\u00adknown"),
    ],
)
def test_joined_and_normalised_words_are_found(
    stored: str, shown: str, words: str, expected: str
) -> None:
    assert found(stored, shown, words) == [expected]


def test_repeated_words_are_distinguished_by_their_order() -> None:
    text = "Ask first. Then go. Ask first. Then wait."
    page = PlacedPage(text, text)
    second = text.rindex("Ask first.")
    assert page.find(second, second + 10) == [(second, second + 10)]


def test_cells_are_found_where_the_page_has_them() -> None:
    stored = "Country | Rate\nFrance | 120\nSpain | 95\n"
    shown = "Country\nFrance\nSpain\nRate\n120\n95"
    assert found(stored, shown, "France | 120\nSpain | 95") == ["France", "Spain", "120", "95"]


def test_words_around_a_footer_are_found_in_parts() -> None:
    stored = "The contract ends after three months of notice in writing."
    shown = "The contract ends after three\n- 12 -\nmonths of notice in writing."
    assert "".join(found(stored, shown, stored)).startswith("The contract ends after")


def test_words_that_the_page_does_not_show_have_no_place() -> None:
    page = PlacedPage("A scanned page of recognised words.", "Page 1")
    assert page.find(0, 35) == []
    assert PlacedPage("Text", "").find(0, 4) == []
    assert PlacedPage("", "Text").find(0, 4) == []


def test_long_page_without_the_words_is_searched_quickly() -> None:
    stored, shown = "ab" * 20_000, "ba" * 20_000 + "c"
    assert PlacedPage(stored + "x" * 100, shown).find(0, 100) != []
    assert PlacedPage("x" * 40_000, shown).find(0, 40_000) == []


def test_lines_become_rectangles_and_wide_gaps_divide_them() -> None:
    shown = "ab  c\nd"

    def box(index: int) -> tuple[int, int, int, int]:
        if shown[index].isspace():
            return (0, 0, 0, 0)
        left = {0: 0, 1: 10, 4: 100, 6: 0}[index]
        top = 0 if index < 5 else 20
        return (left, top, left + 10, top + 10)

    assert rectangles([(0, 7)], shown, box) == [(0, 0, 20, 10), (100, 0, 110, 10), (0, 20, 10, 30)]
    assert lines_of(shown, box) == [
        [("ab ", (0, 0, 20, 10)), ("c", (100, 0, 110, 10))],
        [("d", (0, 20, 10, 30))],
    ]
