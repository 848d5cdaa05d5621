from __future__ import annotations

from portal.domain.documents import Heading, Page
from portal.text.layout.outlines import Outline, Place, heading_paths

PAGES = (Page(3, 100, 150, "iii"), Page(4, 150, 150), Page(5, 151, 200))
HEADINGS = (
    Heading(1, "Guide", 0),
    Heading(2, "Install", 110),
    Heading(3, "Linux\nand others", 140),
    Heading(2, "Use", 160),
)
BEGINNING = Place(3, "iii", "Guide")


def test_place_is_that_of_the_character() -> None:
    outline = Outline(PAGES, HEADINGS)
    assert outline.place(100, BEGINNING) == Place(3, "iii", "Guide")
    assert outline.place(149, BEGINNING) == Place(3, "iii", "Guide › Install › Linux and others")
    assert outline.place(199, BEGINNING) == Place(5, None, "Guide › Use")
    # The place of text before the first known page and heading is that of the chunk.
    assert outline.place(40, BEGINNING) == Place(3, "iii", "Guide")


def test_unknown_parts_of_an_outline_follow_the_start_of_the_chunk() -> None:
    assert Outline().place(180, BEGINNING) == BEGINNING
    assert Outline(pages=PAGES).place(180, BEGINNING) == Place(5, None, "Guide")
    later = Outline(headings=(Heading(1, "Later", 50),))
    assert later.place(10, Place()) == Place()
    assert later.place(60, Place()) == Place(heading="Later")


def test_best_place_is_where_most_is_marked() -> None:
    outline = Outline(PAGES, HEADINGS)
    spans = [(100, 104), (161, 164), (170, 174)]
    assert outline.best_place(spans, 100, BEGINNING).page == 5
    assert outline.best_place([(100, 104), (161, 165)], 100, BEGINNING).page == 3
    assert outline.best_place([], 170, BEGINNING) == Place(5, None, "Guide › Use")


def test_last_page_is_that_of_the_last_character() -> None:
    last = Outline(PAGES).last_page
    assert [getattr(last(end), "number", None) for end in (101, 150, 152, 200)] == [3, 3, 5, 5]
    assert Outline().last_page(10) is None


def test_paths_lead_from_the_title_down() -> None:
    assert heading_paths(HEADINGS) == [
        "Guide",
        "Guide › Install",
        "Guide › Install › Linux and others",
        "Guide › Use",
    ]
