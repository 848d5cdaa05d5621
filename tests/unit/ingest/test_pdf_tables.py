from __future__ import annotations

from pathlib import Path

from portal.domain.documents import ExtractedText, MediaType
from portal.domain.documents.structure import BlockKind
from portal.ingest.extraction import extract
from portal.ingest.limits import FileToRead
from portal.text.layout.tables import table_rows
from tests.factories import ruled


def read(path: Path) -> ExtractedText:
    return extract(FileToRead(path, path.name), MediaType.PDF)


def test_ruled_table_is_rows_and_cells_where_it_stands(tmp_path: Path) -> None:
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


def test_frames_are_no_tables(tmp_path: Path) -> None:
    extracted = read(ruled.framed_pdf(tmp_path / "a.pdf"))
    assert extracted.blocks == ()
    assert "Sentence 5 of the text" in extracted.text


def test_drawings_of_many_rules_are_no_tables(tmp_path: Path) -> None:
    extracted = read(ruled.pdf_of_many_rules(tmp_path / "a.pdf"))
    assert (extracted.text, extracted.blocks) == ("word", ())


def test_tagged_table_needs_no_rules(tmp_path: Path) -> None:
    extracted = read(ruled.tagged_pdf(tmp_path / "a.pdf"))
    (table,) = extracted.blocks
    assert [row.texts(extracted.text) for row in table_rows(extracted.text, table)] == [
        ("Item", "Price"),
        ("Single room", "80 euros with breakfast"),
        ("Suite", "240 euros"),
    ]
    assert extracted.text.startswith("What a night costs is listed below.\n\nItem | Price\n")
