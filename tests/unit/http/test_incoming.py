"""Files of a request while they are written to disk."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from portal.database.server.cluster_files import CLUSTER
from portal.errors import StorageFull, TooLarge
from portal.http.incoming import Spool
from portal.services.documents.intake.disk_space import ReservedSpace
from portal.settings import Settings, load_settings

MB = 1024 * 1024


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings(data_dir=tmp_path, disk_reserve_mb=64)


@pytest.fixture
def spool(settings: Settings, tmp_path: Path) -> Iterator[Spool]:
    made = Spool(tmp_path, ReservedSpace(settings))
    yield made
    made.close()


@pytest.fixture
def disk(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Fake a disk with the embedded database, whose free space exceeds the reserve by 10 MB."""
    (settings.data_dir / CLUSTER).mkdir()
    usage = SimpleNamespace(free=74 * MB)
    monkeypatch.setattr("shutil.disk_usage", lambda _path: usage)
    return usage


def test_files_of_a_request_share_one_unnamed_file(spool: Spool, tmp_path: Path) -> None:
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


def test_bytes_beyond_the_limit_are_refused_or_counted_but_not_kept(spool: Spool) -> None:
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


def test_free_space_is_reserved_once(settings: Settings, disk: Any) -> None:
    first, second = ReservedSpace(settings), ReservedSpace(settings)
    first.take(6 * MB)
    with pytest.raises(StorageFull):
        second.take(6 * MB)
    second.take(4 * MB)
    # Bytes already written reduce the free space and are not counted twice.
    disk.free -= 6 * MB
    first.fill(6 * MB)
    first.take(0)
    second.close()
    first.take(4 * MB)
    with pytest.raises(StorageFull):
        second.take(1)
    first.close()


def test_file_of_unknown_length_ends_where_the_reserve_begins(
    settings: Settings, disk: Any, tmp_path: Path
) -> None:
    spool = Spool(tmp_path, ReservedSpace(settings))
    file = spool.begin(limit_bytes=1024 * MB, refuse=None)
    for _ in range(16):
        file.write(bytes(MB))
        disk.free -= MB
    with pytest.raises(StorageFull):
        file.write(b"x")
    assert spool.size_bytes == 16 * MB
    spool.close()
