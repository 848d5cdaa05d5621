"""Files that are large, or want to be: read within their limits, or told to be too much."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from portal.domain.documents import ExtractedText, MediaType
from portal.errors import BrokenPdf, ExtractionTimedOut, ExtractionTooLarge, NoTextInPdf
from portal.ingest.chunking import split
from portal.ingest.extraction import ExtractionLimits, extract
from portal.ingest.formats import page_recognition
from tests import factories_files as files
from tests.factories_hostile import pdf_bomb

MOST_MEMORY_KB = 1 << 20
pytestmark = pytest.mark.slow


def read(path: Path, media_type: MediaType) -> ExtractedText:
    limits = ExtractionLimits(timeout_s=60)
    return extract(path, file_name=path.name, media_type=media_type, limits=limits)


def test_two_thousand_pages_are_read(tmp_path: Path) -> None:
    pages = [[f"Page {number} of many."] for number in range(2_000)]
    path = files.write_pdf(tmp_path / "many.pdf", pages, font="Helvetica")
    extracted = read(path, MediaType.PDF)
    assert len(extracted.pages) == 2_000
    assert extracted.text.endswith("Page 1999 of many.")
    assert (split(extracted)[-1].page or 0) > 1_900


def test_pdf_that_unpacks_to_a_gigabyte_costs_little(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_recognition, "is_installed", lambda: False)
    path = pdf_bomb(tmp_path / "bomb.pdf")
    assert path.stat().st_size < 100_000
    with pytest.raises((BrokenPdf, ExtractionTooLarge, ExtractionTimedOut, NoTextInPdf)):
        read(path, MediaType.PDF)
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < MOST_MEMORY_KB


def test_five_megabytes_in_one_line_become_passages(tmp_path: Path) -> None:
    path = tmp_path / "line.txt"
    path.write_bytes(b"word " * 1_000_000)
    extracted = read(path, MediaType.TEXT)
    passages = split(extracted)
    assert sum(len(passage.content.split()) for passage in passages) == 1_000_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < MOST_MEMORY_KB
