"""Real text recognition, with the models that come in its wheel."""

from __future__ import annotations

from pathlib import Path

import pytest

from portal.domain.documents import MediaType
from portal.errors import NoTextInPdf, NoTextInPicture
from portal.ingest.extraction import extract
from portal.ingest.limits import ExtractionLimits, FileToRead
from portal.ingest.media_types import sniff_file
from tests.factories import files
from tests.unit.ingest.reading import read

pytestmark = [pytest.mark.ocr, pytest.mark.slow]

PAGES = [["设备在上海仓库，编号四七一一。"], ["The plant was opened in spring."]]


def test_scanned_pages_are_recognised_and_pages_with_text_are_kept(tmp_path: Path) -> None:
    extracted = read(
        files.scanned_pdf(tmp_path / "scan.pdf", [*PAGES, []], written_page="写成的文字")
    )
    texts = [extracted.text[page.start : page.end] for page in extracted.pages]
    assert "上海仓库" in texts[0]
    assert "plant was opened" in texts[1]
    assert texts[2] == ""
    assert texts[3] == "写成的文字"
    (warning,) = extracted.warnings
    assert warning.startswith("no text on page 3, ")
    assert "./run setup" not in warning


def test_recognition_that_takes_too_long_leaves_its_pages_without_text(tmp_path: Path) -> None:
    path = files.scanned_pdf(tmp_path / "scan.pdf", PAGES[:1])
    with pytest.raises(NoTextInPdf, match=r"no text on page 1.* ran out of time"):
        read(path, ocr_timeout_s=0.05)


@pytest.mark.parametrize("kind", ["JPEG", "TIFF"])
def test_pictures_are_read(tmp_path: Path, kind: str) -> None:
    path = files.picture(tmp_path / "photo", PAGES, kind)
    with path.open("rb") as stream:
        media_type = sniff_file(stream, f"photo.{kind.lower()}")
    assert media_type is MediaType[kind]
    extracted = extract(FileToRead(path, path.name, ExtractionLimits()), media_type)
    assert "上海仓库" in extracted.text
    assert len(extracted.pages) == (2 if kind == "TIFF" else 1)
    assert ("plant was opened" in extracted.text) == (kind == "TIFF")


def test_picture_without_text_reports_it(tmp_path: Path) -> None:
    path = files.picture(tmp_path / "blank", [[""]], "PNG")
    with pytest.raises(NoTextInPicture, match="no text was found in the picture"):
        extract(FileToRead(path, path.name, ExtractionLimits()), MediaType.PNG)
