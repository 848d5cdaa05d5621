"""A chunk joined with its neighbours reads well and keeps its place in the document."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from portal.text.layout.joining import Fragment, join_neighbours

DOCUMENT = (
    "The office opens at nine. It closes at six. Visitors sign in at the front desk before they "
    "go up to the second floor. 员工每年有十五天带薪年假。病假需要医生证明。"
)


def cut(start: int, end: int) -> Fragment:
    return Fragment(DOCUMENT[start:end], start, end)


def at(words: str) -> int:
    return DOCUMENT.index(words)


def test_sentences_cut_by_the_chunk_are_completed() -> None:
    start, end = at("front desk"), at("second")
    joined = join_neighbours(
        cut(start, end - 1), cut(0, start - 1), cut(end, len(DOCUMENT)), wanted_chars=0
    )
    assert joined.text == DOCUMENT[at("Visitors") : at(" 员工")]
    assert (joined.start, joined.end) == (at("Visitors"), at(" 员工"))


def test_short_chunk_is_filled_with_whole_sentences_first_from_what_follows() -> None:
    start, end = at("It closes"), at(" Visitors")
    before, after = cut(0, start - 1), cut(end + 1, len(DOCUMENT))
    joined = join_neighbours(cut(start, end), before, after, wanted_chars=95)
    assert joined.text == DOCUMENT[start : at(" 员工")]
    joined = join_neighbours(cut(start, end), before, None, wanted_chars=95)
    assert joined.text == DOCUMENT[:end]


def test_filling_stops_before_a_heading_whose_text_does_not_fit() -> None:
    first = "The notice period is four weeks."
    document = f"{first}\n\nIt is in writing.\n\nWho to ask\n\nTopic | Person\nPay | Irene Okafor"
    chunk = Fragment(first, 0, len(first))
    after = Fragment(document[len(first) + 2 :], len(first) + 2, len(document))
    for last in ("ask", "Person"):
        wanted = document.index(last) + len(last)
        joined = join_neighbours(chunk, None, after, wanted_chars=wanted)
        assert joined.text == f"{first}\n\nIt is in writing."


def test_long_chunk_of_whole_sentences_stays_as_it_is() -> None:
    start, end = at("It closes"), at(" Visitors")
    chunk = cut(start, end)
    around = cut(0, start - 1), cut(end + 1, len(DOCUMENT))
    assert join_neighbours(chunk, *around, wanted_chars=5) == chunk


def test_rows_of_two_chunks_stay_on_lines_of_their_own() -> None:
    table = "Pump | Room\nP-1 | 101\nP-2 | 102"
    first, second = table.index("P-1"), table.index("P-2")
    chunk = Fragment(table[first : second - 1], first, second - 1)
    before = Fragment(table[: first - 1], 0, first - 1)
    after = Fragment(table[second:], second, len(table))
    joined = join_neighbours(chunk, before, after, wanted_chars=len(table))
    assert joined.text == table


def test_rows_next_to_a_chunk_are_not_cut() -> None:
    row = "ZC-{0} | projector of the meeting room on floor {0} | administration | in use"
    table = "\n".join(row.format(number) for number in range(10, 20))
    first, last = table.index("ZC-14"), table.index("\nZC-16")
    chunk = Fragment(table[first:last], first, last)
    before = Fragment(table[: first - 1], 0, first - 1)
    after = Fragment(table[last + 1 :], last + 1, len(table))
    joined = join_neighbours(chunk, before, after, wanted_chars=0)
    assert joined.text.split("\n") == [row.format(number) for number in range(12, 18)]


def test_overlapping_neighbours_are_not_doubled() -> None:
    chunk = cut(at("It closes"), at("front"))
    joined = join_neighbours(chunk, cut(0, 40), cut(at("Visitors"), len(DOCUMENT)), wanted_chars=0)
    assert joined.text == DOCUMENT[at("It closes") : at(" 员工")]


def test_neighbour_that_does_not_fit_is_left_out() -> None:
    chunk = cut(at("It closes"), at("front"))
    far = cut(at("病假"), len(DOCUMENT))
    differing = Fragment("X" * 30, chunk.end - 10, chunk.end + 20)
    inexact = Fragment("and so on", chunk.end, chunk.end + 50)
    for neighbour in (far, differing, inexact):
        assert join_neighbours(chunk, None, neighbour, wanted_chars=500) == chunk


def test_endless_sentence_adds_a_bounded_number_of_whole_words() -> None:
    words = "word " * 400
    chunk = Fragment(words[600:1000], 600, 1000)
    joined = join_neighbours(
        chunk, Fragment(words[:600], 0, 600), Fragment(words[1000:], 1000, 2000), wanted_chars=0
    )
    assert joined.text == words[joined.start : joined.end]
    assert len(joined.text) <= 400 + 2 * 160
    assert joined.text.startswith("word")
    assert joined.text.endswith("word")


@given(
    st.text(alphabet="aB。. \n中", min_size=3, max_size=120),
    st.lists(st.integers(0, 120), min_size=6, max_size=6),
    st.integers(0, 150),
)
def test_joined_text_equals_the_document(document: str, places: list[int], wanted: int) -> None:
    """For any ranges, characters keep their places and the chunk stays whole."""
    bounds = sorted(min(place, len(document)) for place in places)
    chunk = Fragment(document[bounds[1] : bounds[4]], bounds[1], bounds[4])
    before = Fragment(document[bounds[0] : bounds[2]], bounds[0], bounds[2])
    after = Fragment(document[bounds[3] : bounds[5]], bounds[3], bounds[5])
    joined = join_neighbours(chunk, before, after, wanted_chars=wanted)
    assert joined.text == document[joined.start : joined.end]
    assert joined.start <= chunk.start
    assert joined.end >= chunk.end
