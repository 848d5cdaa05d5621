from __future__ import annotations

import time
from pathlib import Path

import pytest

from portal.domain.documents.structure import BlockKind
from portal.ingest.chunking import split
from portal.ingest.fonts import measuring_fonts
from portal.ingest.readers import pdf_reader
from portal.text.layout.tables import table_rows
from tests.factories.files import ruled
from tests.unit.ingest.reading import cells, read, tables


def test_ruled_table_is_read_as_rows_and_cells_in_its_place(tmp_path: Path) -> None:
    extracted = read(ruled.ruled_pdf(tmp_path / "a.pdf"))
    (table,) = [block for block in extracted.blocks if block.kind is BlockKind.TABLE]
    assert [row.texts(extracted.text) for row in table_rows(extracted.text, table)] == [
        ("Grade", "Nights", "Limit"),
        ("Staff", "any", "500"),
        ("Manager", "any", "800"),
        ("Manager", "abroad", "1200"),
    ]
    assert table.header == ("Grade", "Nights", "Limit")
    assert table.caption == "Table 2: What a night may cost"
    before, after = extracted.text[: table.start], extracted.text[table.end :]
    assert before.endswith("end of the year.\n\nTable 2: What a night may cost\n\n")
    assert after == "\n\nAsk the desk where a limit is too low for the place."


def test_frames_are_not_tables(tmp_path: Path) -> None:
    extracted = read(ruled.framed_pdf(tmp_path / "a.pdf"))
    assert extracted.blocks == ()
    assert "Sentence 5 of the text" in extracted.text


def test_drawings_of_many_rules_are_not_tables(tmp_path: Path) -> None:
    extracted = read(ruled.pdf_of_many_rules(tmp_path / "a.pdf"))
    assert (extracted.text, extracted.blocks) == ("word", ())


def test_tagged_table_needs_no_rules(tmp_path: Path) -> None:
    extracted = read(ruled.tagged_pdf(tmp_path / "a.pdf"))
    (table,) = extracted.blocks
    assert [row.texts(extracted.text) for row in table_rows(extracted.text, table)] == [
        ("Item", "Price (euros)"),
        ("Single room", "80 euros with breakfast"),
        ("Suite", "240 euros"),
        ("Key AQ6-20417", "-"),
    ]
    assert extracted.text.startswith(
        "What a night costs is listed below.\n\nItem | Price (euros)\n"
    )


def test_table_without_rules_is_read_as_rows_and_cells(tmp_path: Path) -> None:
    rows = [
        ["Room", "Beds", "A night", "With"],
        ["Single", "1", "80.00", "breakfast"],
        ["Double", "2", "120.00", "breakfast and"],
        ["", "", "", "a view of the lake"],
        ["Family", "", "170.00", "a kitchen"],
    ]
    page = [
        (72, 760, "What a night costs depends on the room and is listed here for this year."),
        *ruled.aligned_rows(rows, [72, 200, 260, 350]),
        (72, 600, "Ask the desk for the prices of the winter, which differ from these."),
    ]
    extracted = read(ruled.aligned_pdf(tmp_path / "a.pdf", [page]))
    (table,) = extracted.blocks
    assert [row.texts(extracted.text) for row in table_rows(extracted.text, table)] == [
        ("Room", "Beds", "A night", "With"),
        ("Single", "1", "80.00", "breakfast"),
        ("Double", "2", "120.00", "breakfast and a view of the lake"),
        ("Family", "", "170.00", "a kitchen"),
    ]
    assert table.header == ("Room", "Beds", "A night", "With")
    assert extracted.text.endswith("a kitchen\n\nAsk the desk for the prices of the winter, "
                                   "which differ from these.")  # fmt: skip


def test_price_list_is_a_table_and_table_of_contents_is_not(tmp_path: Path) -> None:
    prices = [["Single room", "80.00"], ["Double room", "120.00"], ["Suite", "240.00"]]
    contents = [["Rooms", "3"], ["Meals", "5"], ["Boats and bicycles", "12"], ["Index", "20"]]
    pages = [ruled.aligned_rows(rows, [72, 300]) for rows in (prices, contents)]
    extracted = read(ruled.aligned_pdf(tmp_path / "a.pdf", pages))
    (table,) = extracted.blocks
    assert [row.texts(extracted.text) for row in table_rows(extracted.text, table)] == [
        ("Single room", "80.00"), ("Double room", "120.00"), ("Suite", "240.00")
    ]  # fmt: skip


def test_text_in_three_columns_is_not_a_table(tmp_path: Path) -> None:
    line = ["words of the left column", "words of the right"]
    rows = [[f"{line[0]} {n}", f"{line[1]} {n}", f"{line[0]} {n + 9}"] for n in range(10, 19)]
    places = [40.0, 220.0, 400.0]
    by_row = ruled.aligned_rows(rows, places)
    by_column = sorted(by_row, key=lambda text: (text[0], -text[1]))
    extracted = read(ruled.aligned_pdf(tmp_path / "a.pdf", [by_row, by_column]))
    assert extracted.blocks == ()


def test_thousands_of_rows_that_are_not_a_table_are_read_quickly(tmp_path: Path) -> None:
    """Trying each row as the first of a table would take minutes."""
    rows = [["words of the left column", "words of the right one"] for _ in range(3_000)]
    path = ruled.aligned_pdf(tmp_path / "a.pdf", [ruled.aligned_rows(rows, [40.0, 300.0])])
    started = time.process_time()
    with path.open("rb") as file:
        _, page, _ = pdf_reader.read(file, pages=9, characters=10**6, lines=10**5)
    assert time.process_time() - started < 10
    assert page["tables"] == []


def test_tags_mark_items_with_drawn_bullets_and_page_headers(tmp_path: Path) -> None:
    extracted = read(ruled.tagged_list_pdf(tmp_path / "a.pdf"))
    assert extracted.text == (
        "- Order a laptop and a phone for the person\n\n"
        "- Choose a colleague who helps in the first week"
    )
    assert [block.kind for block in extracted.blocks] == [BlockKind.ITEM, BlockKind.ITEM]


def test_cells_keep_single_characters_of_fonts_that_are_not_embedded(tmp_path: Path) -> None:
    assert measuring_fonts(), "install a Chinese font, on Debian fonts-noto-cjk"
    extracted = read(ruled.titled_pdf(tmp_path / "a.pdf", "STSong-Light"))
    (table,) = tables(extracted)
    assert cells(extracted.text, table) == [("型号", "起订量", "交货期"), ("泵", "10 支", "3 天")]
    assert table.caption == "价目"


def test_first_row_that_extends_down_is_not_a_title(tmp_path: Path) -> None:
    extracted = read(ruled.stepped_pdf(tmp_path / "a.pdf"))
    (table,) = tables(extracted)
    assert cells(extracted.text, table) == [("Rates", "80"), ("Single", "80"), ("Double", "120")]


def test_page_of_short_cells_is_read_by_words_although_pdfium_ends_lines_at_letters(
    tmp_path: Path,
) -> None:
    rows = [[f"K-{number:03}", f"Depot {number % 9}", f"{11 * number} kg"] for number in range(40)]
    page = ruled.spelled_rows(rows, [72, 200, 300])
    extracted = read(ruled.aligned_pdf(tmp_path / "a.pdf", [page]))
    (table,) = tables(extracted)
    assert cells(extracted.text, table) == [tuple(row) for row in rows]


def test_turned_text_is_kept_in_cells_and_below_a_table_and_divided_words_are_whole(
    tmp_path: Path,
) -> None:
    extracted = read(ruled.turned_pdf(tmp_path / "a.pdf"))
    (table,) = tables(extracted)
    assert cells(extracted.text, table) == [
        ("Employee", "Monday"), ("Anna", "early"), ("Mirko", "off")
    ]  # fmt: skip
    assert extracted.text.endswith("\n\nSideways remark")


_COLUMNS = [72.0, 200.0, 300.0]
_VALVES = [[f"V-{number:02}", f"House {number}", f"{number} bar"] for number in range(10, 25)]


def _pages_of_a_table(*parts: list[list[str]]) -> list[list[tuple[float, float, str]]]:
    first, *others = [ruled.aligned_rows(part, _COLUMNS) for part in parts]
    return [[(72, 740, "Table 4: Valves by building"), *first], *others]


@pytest.mark.parametrize("repeats_header", [True, False])
def test_table_on_several_pages_keeps_its_caption_and_header(
    tmp_path: Path, *, repeats_header: bool
) -> None:
    header = ["Valve", "Building", "Pressure"]
    second = [header] * repeats_header + _VALVES[5:10]
    pages = _pages_of_a_table([header, *_VALVES[:5]], second, _VALVES[10:])
    extracted = read(ruled.aligned_pdf(tmp_path / "a.pdf", pages))
    found = tables(extracted)
    assert [table.caption for table in found] == ["Table 4: Valves by building"] * 3
    assert [table.header for table in found] == [tuple(header)] * 3
    rows = [row for table in found for row in table_rows(extracted.text, table)]
    assert [list(row.texts(extracted.text)) for row in rows if not row.is_header] == _VALVES
    chunks = split(extracted, target_tokens=30)
    (context,) = {chunk.context for chunk in chunks if chunk.page == 3}
    assert context == "Table 4: Valves by building\nValve | Building | Pressure"


def test_table_with_another_header_on_the_next_page_is_another_table(tmp_path: Path) -> None:
    other = ["Room", "Floor", "Seats"]
    pages = _pages_of_a_table(
        [["Valve", "Building", "Pressure"], *_VALVES[:5]], [other, *_VALVES[5:10]]
    )
    _, table = tables(read(ruled.aligned_pdf(tmp_path / "a.pdf", pages)))
    assert (table.header, table.caption) == (tuple(other), "")


def test_header_of_a_page_that_begins_with_a_table_is_left_out(tmp_path: Path) -> None:
    header = (72.0, 800.0, "Internal use only")
    pages = [
        [
            *ruled.aligned_rows([["Valve", "Building", "Pressure"], *part], _COLUMNS),
            (72.0, 500.0, f"These are valves of the {word} kind, tested in May."),
            header,  # Written last, as browsers do.
        ]
        for part, word in zip((_VALVES[:5], _VALVES[5:10], _VALVES[10:]), "abc", strict=True)
    ]
    extracted = read(ruled.aligned_pdf(tmp_path / "a.pdf", pages))
    assert "Internal" not in extracted.text
    assert extracted.text.startswith("Valve | Building | Pressure\n")
