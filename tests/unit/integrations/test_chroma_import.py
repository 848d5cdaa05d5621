"""Reading of Chroma's records, their conversion, and the copy that is read. Chroma itself is not
needed here."""

from __future__ import annotations

import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from portal.domain.vector_collections import StoredRecord
from portal.errors import ServerSetup
from portal.integrations.chroma_import import records, snapshot
from portal.integrations.chroma_import.reading import (
    MAX_UNREADABLE,
    BrokenIndex,
    ChromaRecord,
    Reader,
    Unreadable,
    distance_of,
)
from portal.integrations.chroma_import.records import Unusable, is_same, to_record
from portal.processes.cli import main
from tests.factories.shelf import Shelf

VECTOR = [0.5, -1.0]


@pytest.mark.parametrize(
    ("metadata", "configured", "distance"),
    [
        (None, None, "l2"),
        ({"hnsw:space": "ip"}, None, "ip"),
        (None, "cosine", "cosine"),
        # Before 1.0 the configuration says l2 for every index.
        ({"hnsw:space": "cosine"}, "l2", "cosine"),
        ({"hnsw:space": "l2"}, "ip", "ip"),
        ({"note": "x"}, "l2", "l2"),
    ],
)
def test_distance_is_the_one_of_the_index(metadata, configured, distance) -> None:
    assert distance_of(metadata, {"hnsw": configured and {"space": configured}}) == distance


def test_unknown_distance_is_refused() -> None:
    with pytest.raises(ValueError, match="manhattan"):
        distance_of({"hnsw:space": "manhattan"}, {})


def test_storable_records_are_kept_and_others_reported() -> None:
    metadata = {"n": 1, "f": 0.5, "b": True, "s": "é中", "tags": ["a", "b"], "resource_hash": "h"}
    record, notes = to_record(ChromaRecord("1", "text", metadata, VECTOR), "resource_hash")
    assert (record.id, record.content, record.metadata) == ("1", "text", metadata)
    assert record.document == "h"
    assert notes == []
    np.testing.assert_array_equal(record.vector, np.float32(VECTOR))

    torn = {"k\0": "v\0", "tags": ["a\0"], "rate": float("nan"), "rates": [1.0, float("inf")]}
    record, notes = to_record(ChromaRecord("1", None, torn, VECTOR, uri="https://x"), None)
    assert record.content == ""
    assert record.metadata == {"k ": "v ", "tags": ["a "], "rate": None, "rates": [1.0, None]}
    assert notes == [records.NO_TEXT, records.REPLACED, records.NOT_FINITE, records.URI]
    record, notes = to_record(ChromaRecord("1", "a\0b", None, VECTOR), None)
    assert (record.content, notes) == ("a b", [records.REPLACED])


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (ChromaRecord("1", "text"), "no vector"),
        (ChromaRecord("n\0", "text", None, VECTOR), "NUL"),
        (ChromaRecord("é" * 1001, "text", None, VECTOR), "2000 bytes"),
        (ChromaRecord("1", "text", None, [float("nan"), 1.0]), "NaN"),
        (ChromaRecord("1", "text", None, [float("inf"), 1.0]), "infinity"),
        (ChromaRecord("1", "text", None, []), "list of numbers"),
        (ChromaRecord("1", "text", None, [0.0] * 16_001), "16000"),
    ],
)
def test_record_that_cannot_be_stored_is_refused_with_the_reason(
    found: ChromaRecord, reason: str
) -> None:
    with pytest.raises(Unusable, match=reason):
        to_record(found, None)


def test_records_are_the_same_despite_the_last_digits_of_a_vector() -> None:
    record, _notes = to_record(ChromaRecord("1", "text", {"n": 1, "l": [1, 2]}, [3.0, 4e-7]), None)

    def stored(**changed: Any) -> StoredRecord:
        same = {"content": "text", "metadata": {"n": 1, "l": [1, 2]}, "vector": record.vector}
        return StoredRecord("1", **(same | changed))

    assert is_same(record, stored())
    assert is_same(record, stored(vector=np.float32([3.000001, 4e-7])))
    for changed in (
        {"content": "text "},
        {"metadata": {"n": 1}},
        {"metadata": {"n": True, "l": [1, 2]}},
        {"metadata": {"n": 1, "l": [2, 1]}},
        {"vector": np.float32([3.00001, 4e-7])},
        {"vector": np.float32([3.0])},
        {"vector": None},
    ):
        assert not is_same(record, stored(**changed)), changed


@pytest.mark.parametrize(
    ("stands", "wanted", "same"),
    [
        # jsonb stores large numbers with all digits and returns an integer.
        (10**23, 1e23, True),
        (-(10**16), -1e16, True),
        (10**23 + 1, 1e23, False),
        ([10**300], [1e300], True),
        (1, 1.0, True),
        (1.0, 1, True),
        (True, 1.0, False),
        (0, 0.5, False),
        (10**23, True, False),
    ],
)
def test_numbers_are_compared_as_jsonb_stores_them(stands: Any, wanted: Any, same: bool) -> None:
    record, _notes = to_record(ChromaRecord("1", "text", {"n": wanted}, VECTOR), None)
    assert is_same(record, StoredRecord("1", "text", {"n": stands}, record.vector)) is same


def _shelf(count: int, torn: set[str] = frozenset()) -> Shelf:
    records = [ChromaRecord(f"id-{number}", "text", None, VECTOR) for number in range(count)]
    return Shelf(records, torn=set(torn))


def test_all_records_are_read_once_in_order() -> None:
    shelf = _shelf(53)
    batches = list(Reader(shelf, batch_size=4, id_page=10).batches())
    assert [record for batch in batches for record in batch] == shelf.records
    assert max(map(len, batches)) == 4


def test_unreadable_vector_affects_only_its_own_record() -> None:
    shelf = _shelf(64, torn={"id-5", "id-40"})
    read = [record for batch in Reader(shelf, batch_size=32).batches() for record in batch]
    assert [record.id for record in read] == [record.id for record in shelf.records]
    assert [record.id for record in read if record.vector is None] == ["id-5", "id-40"]
    assert shelf.asked < 30


def test_record_that_is_listed_but_not_returned_has_no_vector(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shelf, get = _shelf(5), Shelf.get

    def lose(self: Shelf, ids: Any = None, **asked: Any) -> Any:
        return get(self, ids and [one for one in ids if one != "id-2"], **asked)

    monkeypatch.setattr(Shelf, "get", lose)
    read = [record for batch in Reader(shelf, batch_size=2).batches() for record in batch]
    assert [one.id for one in read] == [record.id for record in shelf.records]
    assert [one.id for one in read if one.vector is None] == ["id-2"]


def test_broken_index_is_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = _shelf(3 * MAX_UNREADABLE)
    shelf.torn = {record.id for record in shelf.records}
    with pytest.raises(BrokenIndex, match="Error finding id"):
        list(Reader(shelf, batch_size=100).batches())
    monkeypatch.setattr(Shelf, "get", lambda _self, **_asked: 1 / 0)
    with pytest.raises(Unreadable, match="division"):
        list(Reader(shelf, batch_size=100).batches())


def test_command_without_the_extra_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "chromadb", None)
    result = CliRunner().invoke(main, ["import-chroma", "anywhere"])
    assert result.exit_code == 1
    assert "./run setup --chroma" in result.stderr


INDEX = "0e5f2f54-5c2b-4f7e-9d53-3a4f2d1c7b60"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Create a directory that looks like one of Chroma's."""
    made = tmp_path / "chroma"
    (made / INDEX).mkdir(parents=True)
    (made / INDEX / "header.bin").write_bytes(b"header")
    (made / "notes.txt").write_text("not Chroma's", encoding="utf-8")
    with closing(sqlite3.connect(made / "chroma.sqlite3")) as database:
        for table in ("collections", "segments", "embeddings", "migrations"):
            database.execute(f"CREATE TABLE {table} (id)")
    return made


def _files(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}


def test_copy_contains_only_chromas_files_and_is_deleted_afterwards(
    directory: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    with snapshot.snapshot(directory, data) as copy:
        assert _files(copy) == {"chroma.sqlite3", f"{INDEX}/header.bin"}
        assert copy.stat().st_mode & 0o077 == 0 or copy.parent.stat().st_mode & 0o077 == 0
        with snapshot.snapshot(directory, data) as other:
            assert other != copy
        assert copy.exists()
        # A killed import leaves this behind: its lock was released with its process.
        (data / "chroma-import-left" / "chroma").mkdir(parents=True)
        (data / "chroma-import-left" / "portal-import.lock").touch()
        # A user's own directory with a similar name.
        (data / "chroma-import-mine").mkdir()
        with snapshot.snapshot(directory, data):
            assert not (data / "chroma-import-left").exists()
    assert {path.name for path in data.iterdir()} == {"chroma-import.lock", "chroma-import-mine"}


def test_directory_that_is_written_to_during_the_copy_is_refused(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = []
    copy_file = snapshot.shutil.copyfile

    def copy_and_write(source: Path, target: Path) -> None:
        copy_file(source, target)
        if len(times) < limit:
            times.append(os.utime(source, ns=(0, len(times))))

    monkeypatch.setattr(snapshot.shutil, "copyfile", copy_and_write)
    limit = 1
    with snapshot.snapshot(directory, tmp_path / "data") as copy:
        assert (copy / "chroma.sqlite3").exists(), "the second attempt found it at rest"
    limit = 1000
    with (
        pytest.raises(ServerSetup, match="another program is writing"),
        snapshot.snapshot(directory, tmp_path / "data"),
    ):
        pass


def _broken(kind: str, directory: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    database = directory / "chroma.sqlite3"
    if kind == "missing":
        return directory / "nothing"
    if kind == "a file":
        return database
    if kind == "not chroma":
        database.unlink()
    elif kind == "old":
        database.rename(directory / "chroma-collections.parquet")
    elif kind == "empty":
        database.write_bytes(b"")
    elif kind == "no database":
        database.write_bytes(b"hello " * 1000)
    elif kind == "unreadable":

        def refuse(self: Path, *_arguments: Any) -> None:
            raise PermissionError(13, "Permission denied", str(self))

        monkeypatch.setattr(Path, "open", refuse)
    elif kind == "no room":
        usage = snapshot.shutil.disk_usage(directory)
        monkeypatch.setattr(snapshot.shutil, "disk_usage", lambda _path: usage._replace(free=2**20))
    return directory


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("missing", "there is no such directory"),
        ("a file", "name the directory in which chroma.sqlite3 lies"),
        ("not chroma", "it has no chroma.sqlite3"),
        ("old", "Chroma before 0.4 made it"),
        ("empty", "no database of Chroma's"),
        ("no database", "cannot be read: file is not a database"),
        ("unreadable", "cannot be read or copied: Permission denied"),
        ("no room", "needs 64 MB in .*, where 1 MB are free"),
    ],
)
def test_a_directory_that_cannot_be_read_is_refused_and_unchanged(
    kind: str, said: str, directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = _broken(kind, directory, monkeypatch)
    before = _files(directory)
    with (
        pytest.raises(ServerSetup, match=said),
        snapshot.snapshot(named, tmp_path / "data"),
    ):
        pass
    assert _files(directory) == before
    assert not list((tmp_path / "data").glob("chroma-import-*"))
