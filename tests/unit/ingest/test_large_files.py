"""Large files, and small ones that expand, are read within the limits or refused."""

from __future__ import annotations

import re
import resource
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from unittest.mock import patch

import pytest

from portal.domain.documents import MediaType
from portal.errors import BrokenPdf, ExtractionTimedOut, ExtractionTooLarge, NoTextInPdf
from portal.ingest.chunking import split
from portal.ingest.formats.pages import page_recognition
from tests.factories import files
from tests.factories.files.hostile import pdf_bomb
from tests.unit.ingest.reading import read

MAX_MEMORY_KB = 1 << 20
pytestmark = pytest.mark.slow


def test_two_thousand_pages_are_read(tmp_path: Path) -> None:
    pages = [[f"Page {number} of many."] for number in range(2_000)]
    path = files.write_pdf(tmp_path / "many.pdf", pages, font="Helvetica")
    extracted = read(path, MediaType.PDF, timeout_s=60)
    assert len(extracted.pages) == 2_000
    assert extracted.text.endswith("Page 1999 of many.")
    assert (split(extracted)[-1].page or 0) > 1_900


def in_a_process_of_its_own(work: Callable[[Path], int], path: Path) -> int:
    """Return the result of `work` in a new process, whose memory other tests have not used."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, path).result()


def test_pdf_that_unpacks_to_a_gigabyte_takes_little_memory(tmp_path: Path) -> None:
    path = pdf_bomb(tmp_path / "bomb.pdf")
    assert path.stat().st_size < 100_000
    assert in_a_process_of_its_own(refuse_bomb, path) < MAX_MEMORY_KB


def refuse_bomb(path: Path) -> int:
    """Try to read a bomb; return the peak memory of the reader process, in KB."""
    with (
        patch.object(page_recognition, "is_installed", lambda: False),
        pytest.raises((BrokenPdf, ExtractionTooLarge, ExtractionTimedOut, NoTextInPdf)),
    ):
        read(path, MediaType.PDF, timeout_s=60)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss


def test_five_megabytes_in_one_line_become_chunks(tmp_path: Path) -> None:
    path = tmp_path / "line.txt"
    path.write_bytes(b"word " * 1_000_000)
    assert in_a_process_of_its_own(split_line, path) < MAX_MEMORY_KB


def split_line(path: Path) -> int:
    chunks = split(read(path, MediaType.TEXT, timeout_s=60))
    assert sum(len(chunk.content.split()) for chunk in chunks) == 1_000_000
    # Read the peak of this process alone: `ru_maxrss` includes the parent's size at its start.
    (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(peak)
