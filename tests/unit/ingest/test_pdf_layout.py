"""Layouts that typesetting programs produce, as found in real PDFs."""

from __future__ import annotations

from pathlib import Path

import pytest

from portal.domain.documents.structure import BlockKind
from portal.ingest.formats.pages.page_layout import (
    Line,
    Paragraph,
    join,
    paragraphs,
    words_of,
)
from portal.ingest.formats.pages.pdf_headings import outlined_headings
from portal.ingest.formats.pdf import join_pages, page_lines
from portal.text.layout.tables import table_rows
from tests.factories.files import typeset
from tests.unit.ingest.reading import read


def test_headings_are_found_in_scaled_and_in_bold_type(tmp_path: Path) -> None:
    extracted = read(typeset.report(tmp_path / "a.pdf"))
    assert [(heading.level, heading.title) for heading in extracted.headings] == [
        (1, "Report on the lighthouses of the northern coast"),
        (2, "1 Lamps"),
        (3, "1.1 Oil"),
    ]


def test_raised_and_lowered_letters_do_not_end_a_line(tmp_path: Path) -> None:
    extracted = read(typeset.raised_letters(tmp_path / "a.pdf"))
    assert extracted.text == "The lamp of Mira2 burns H2 and oil, as was told."


def test_footers_that_come_first_in_the_file_are_left_out(tmp_path: Path) -> None:
    extracted = read(typeset.pages_with_footers_first(tmp_path / "a.pdf", 8))
    assert "manual" not in extracted.text
    assert "coast" not in extracted.text
    assert extracted.text.count("begins here. It goes on") == 8


def test_table_open_at_its_sides_keeps_its_columns_and_place(tmp_path: Path) -> None:
    extracted = read(typeset.open_table(tmp_path / "a.pdf"))
    (table,) = extracted.blocks
    assert [row.texts(extracted.text) for row in table_rows(extracted.text, table)] == [
        ("Month", "Litres", "Price"),
        ("May", "40", "80 marks"),
        ("June", "25", "52 marks"),
    ]
    assert table.caption == "Table 4: Oil by month"
    assert extracted.text[: table.start].endswith("was bought.\n\n")
    assert extracted.text.endswith("other months.")


@pytest.mark.parametrize(
    ("elsewhere", "joined"),
    [
        ("an open-domain question", "open-domain"),
        ("an opendomain question", "opendomain"),
        ("a domain that is open to all", "open-domain"),
        ("a question", "opendomain"),
    ],
)
def test_other_words_of_the_document_decide_whether_a_hyphen_is_kept(
    elsewhere: str, joined: str
) -> None:
    page = [
        Line(f"As said of {elsewhere} for all of us, it is open-", 50, 500, 700, 11),
        Line("domain in the end of this line of the text again.", 50, 500, 686, 11),
    ]
    (paragraph,) = paragraphs(page, words_of([page]))
    assert f"it is {joined} in the end" in paragraph.text


@pytest.mark.parametrize(
    ("lines", "joined"),
    [
        (["AQ6-", "20417"], "AQ6-20417"),
        (["OR-300-", "552"], "OR-300-552"),
        (["X2-", "B7"], "X2-B7"),
        (["rooms 2-", "and 3"], "rooms 2- and 3"),
        (["rooms 2-", "The last"], "rooms 2- The last"),
        (["rooms 2 -", "3"], "rooms 2 - 3"),
    ],
)
def test_code_that_is_divided_after_its_hyphen_is_whole(lines: list[str], joined: str) -> None:
    assert join(lines) == joined


def test_symbols_of_fonts_become_bullets_and_hyphens() -> None:
    page = page_lines(
        [["\uf0b7 Form W\u00ad4 of the know\u00ad", 50, 500, 700, 11], ["ledge", 60, 100, 686, 11]]
    )
    (paragraph,) = paragraphs(page)
    assert paragraph.text == "• Form W-4 of the knowledge"
    assert paragraph.is_item


def test_items_are_blocks(tmp_path: Path) -> None:
    lines = ["Bring these with you to the coast:", "• a lamp", "• two coats", "It may be cold."]
    page = [(72.0, 780 - 14.0 * row, text, typeset.PLAIN, 11.0) for row, text in enumerate(lines)]
    extracted = read(typeset.write_pages(tmp_path / "a.pdf", [page]))
    items = [block for block in extracted.blocks if block.kind is BlockKind.ITEM]
    assert [extracted.text[item.start : item.end] for item in items] == lines[1:3]


@pytest.mark.parametrize("number", ["1.6.5 ", "Chapter 3 ", "第三章 ", "A.1 "])
def test_heading_includes_its_number(number: str) -> None:
    text = f"As told above.\n\n{number}Lamps\n\nThey burn oil."
    (heading,) = outlined_headings([(1, "Lamps", 0)], text, [(0, len(text))])
    assert (heading.title, heading.start) == (f"{number}Lamps", text.index(number))


def test_labels_of_a_drawing_are_not_headings(tmp_path: Path) -> None:
    labels = [f"Lamp {word}" for word in ("one", "two", "three", "four", "five")]
    page = [
        *((72.0, 780 - 14.0 * row, typeset.FILLED, typeset.PLAIN, 10.0) for row in range(6)),
        *((72.0 + 60 * place, 500 - 40.0 * place, label, typeset.PLAIN, 16.0)
          for place, label in enumerate(labels)),
    ]  # fmt: skip
    extracted = read(typeset.write_pages(tmp_path / "a.pdf", [page]))
    assert len(extracted.headings) <= 1


def test_blank_page_causes_no_recognition_and_no_warning(tmp_path: Path) -> None:
    text = (72.0, 780.0, "The lamps burn oil.", typeset.PLAIN, 11.0)
    number = (300.0, 30.0, "2", typeset.PLAIN, 9.0)
    extracted = read(typeset.write_pages(tmp_path / "a.pdf", [[text], [number], [], [text]]))
    assert extracted.warnings == ()
    assert [page.number for page in extracted.pages] == [1, 2, 3, 4]


def test_manual_line_breaks_are_kept() -> None:
    def line(text: str, right: float, number: int, left: float = 70) -> Line:
        return Line(text, left, right, 700 - 14 * number, 10)

    apart = [
        line("Present: Ingrid Solberg, Marc Duval, Priya Raman", 400, 0),
        line("Excused: Hannah Cole, who is on a journey through", 380, 1),
        line("Norway and comes back in the second week of March", 520, 2),
        line("with the reports of all the ships that were asked for.", 515, 3),
    ]
    assert [p.text.split()[0] for p in paragraphs(apart)] == ["Present:", "Excused:", "Norway"]
    beside_a_picture = [line(f"Words beside a picture of {n}", 400, n) for n in range(12)]
    assert len(paragraphs([*beside_a_picture, line("Full line", 520, 12)])) == 1


def test_title_of_a_document_of_tables_is_a_heading(tmp_path: Path) -> None:
    cells = [
        (x, 700 - 16.0 * row, text, typeset.PLAIN, 11.0)
        for row in range(12)
        for x, text in ((72.0, f"A-{row}"), (180.0, "Rear brake disc"), (320.0, f"{row}.50 euros"))
    ]
    title = (72.0, 760.0, "Price list", typeset.BOLD, 22.0)
    extracted = read(typeset.write_pages(tmp_path / "a.pdf", [[title, *cells]]))
    assert [heading.title for heading in extracted.headings] == ["Price list"]


def test_names_of_columns_side_by_side_are_not_headings(tmp_path: Path) -> None:
    page = [
        (72.0, 780.0, "Results", typeset.BOLD, 20.0),
        *((72.0, 740 - 14.0 * row, typeset.FILLED, typeset.PLAIN, 11.0) for row in range(6)),
        *((x, 640.0 - drop, name, typeset.BOLD, 11.0)
          for x, drop, name in ((72.0, 0, "Cohort"), (150.0, 7, "score"), (230.0, 0, "Comment"))),
        (72.0, 610.0, "Control of no change in the score over the whole period of the study",
         typeset.PLAIN, 11.0),
    ]  # fmt: skip
    extracted = read(typeset.write_pages(tmp_path / "a.pdf", [page]))
    assert [heading.title for heading in extracted.headings] == ["Results"]


@pytest.mark.parametrize(
    ("above", "below", "gap"),
    [
        ("The thickeners react and", "must not be mixed.", "\n"),
        ("The end.", "must not be mixed.", "\n\n"),
        ("The parts are:", "mixed.", "\n\n"),
        ("Report of May", "Lamps and oil", "\n\n"),
        ("两种润滑脂，", "不得混用。", "\n"),
        ("第三章", "混用", "\n\n"),
        ("这里有两行", "混用", "\n"),
    ],
)
def test_sentence_across_pages_is_not_divided(above: str, below: str, gap: str) -> None:
    pages = [
        [Paragraph("Title", 12, 1), Paragraph(above, 10, 2 if "行" in above else 1)],
        [],
        [Paragraph(below, 10, 1)],
    ]
    text, ranges = join_pages(pages)
    assert text == f"Title\n\n{above}{gap}{below}"
    assert [text[start:end] for start, end in ranges] == [f"Title\n\n{above}", "", below]


def test_row_of_a_table_is_not_continued_by_a_paragraph() -> None:
    table = Paragraph("Oil | 40", 10, 1, rows=(("Oil", "40"),))
    assert join_pages([[table], [Paragraph("goes on", 10, 1)]])[0] == "Oil | 40\n\ngoes on"
