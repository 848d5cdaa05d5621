"""Files of a request on their way to the disk."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from portal.errors import TooLarge
from portal.incoming import Spool


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    made = Spool(tmp_path)
    yield made
    made.close()


def test_files_of_a_request_lie_in_one_file_without_a_name(spool: Spool, tmp_path: Path) -> None:
    texts = [b"first" * 1000, b"", b"third"]
    files = []
    for text in texts:
        file = spool.begin(limit_bytes=10_000, refuse=None)
        for start in range(0, len(text), 700):
            file.write(text[start : start + 700])
        files.append(file)
    assert [file.read() for file in files] == texts
    assert files[0].seek(-5, os.SEEK_END) == 4995
    assert (files[0].read(3), files[0].tell(), files[0].read(100)) == (b"fir", 4998, b"st")
    assert files[2].seek(0) == 0
    assert files[2].read() == b"third"
    assert list(tmp_path.iterdir()) == []


def test_what_goes_beyond_the_limit_is_refused_or_counted_and_not_kept(spool: Spool) -> None:
    strict = spool.begin(limit_bytes=10, refuse=lambda: TooLarge(name="a", limit_mb=1))
    strict.write(b"0123456789")
    with pytest.raises(TooLarge):
        strict.write(b"x")
    patient = spool.begin(limit_bytes=10, refuse=None)
    for _ in range(4):
        patient.write(b"01234")
    assert patient.seek(0, os.SEEK_END) == 20
    patient.seek(0)
    assert patient.read() == b"0123401234"
    assert spool.size_bytes == 20
    after = spool.begin(limit_bytes=10, refuse=None)
    after.write(b"after")
    assert after.read() == b"after"
