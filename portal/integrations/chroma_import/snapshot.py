"""Copy a Chroma directory to read from.

Opening such a directory writes to it: Chroma upgrades its tables and moves its log into the index.
The original must not be changed.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from portal.database.lock import UserCount, exclusive
from portal.errors import ServerSetup
from portal.integrations.chroma.client import DATABASE_FILE

_PREFIX = "chroma-import-"
_IN_USE = "portal-import.lock"
_ATTEMPTS = 3
_SPARE_BYTES = 64 * 2**20  # What Chroma adds to the copy when it opens it.
# Chroma's database, the files of SQLite beside it during a write, and one folder per index.
_DATABASE_FILES = tuple(DATABASE_FILE + ending for ending in ("", "-journal", "-wal", "-shm"))
_INDEX_FOLDER = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_BEFORE_0_4 = ("chroma-collections.parquet", "chroma.duckdb", "index")


def check_directory(directory: Path) -> None:
    """Raise ServerSetup with the reason if this is not a readable Chroma directory."""
    try:
        if not directory.exists():
            raise _refused(directory, "there is no such directory")
        if not directory.is_dir():
            raise _refused(directory, f"name the directory in which {DATABASE_FILE} lies")
        names = {path.name for path in directory.iterdir()}
        if DATABASE_FILE not in names and names.intersection(_BEFORE_0_4[:2]):
            raise _refused(
                directory, "Chroma before 0.4 made it; bring it to 0.4 by `chroma-migrate` first"
            )
        if DATABASE_FILE not in names:
            raise _refused(directory, f"it is not a Chroma directory: it has no {DATABASE_FILE}")
        for path in _files(directory):
            path.open("rb").close()
    except OSError as error:
        raise _unreadable(error) from error


@contextmanager
def snapshot(directory: Path, data_dir: Path) -> Iterator[Path]:
    """Copy a Chroma directory into its own folder in `data_dir` while the block runs. Copies
    left behind by killed imports are deleted first.

    Raises ServerSetup if the directory cannot be read, keeps changing, has no Chroma database, or
    does not fit on the disk.
    """
    check_directory(directory)
    data_dir.mkdir(parents=True, exist_ok=True)
    with exclusive(data_dir / f"{_PREFIX[:-1]}.lock"):
        _sweep(data_dir)
        room = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=data_dir))
        user = UserCount(room / _IN_USE)
    try:
        copy = room / "chroma"
        _copy_unchanged(directory, copy)
        _check_tables(directory, copy)
        yield copy
    finally:
        user.leave()
        shutil.rmtree(room, ignore_errors=True)


def _sweep(data_dir: Path) -> None:
    for left in data_dir.glob(f"{_PREFIX}*/"):
        # The system released the locks of killed processes. Folders without one are not ours.
        if (left / _IN_USE).is_file() and UserCount(left / _IN_USE).leave():
            shutil.rmtree(left, ignore_errors=True)


def _files(directory: Path) -> list[Path]:
    files = [directory / name for name in _DATABASE_FILES]
    for folder in directory.iterdir():
        if _INDEX_FOLDER.fullmatch(folder.name) and folder.is_dir():
            files += sorted(folder.iterdir())
    return [path for path in files if path.is_file()]


def _state(directory: Path) -> dict[Path, tuple[int, int]]:
    """Return size and modification time of each file; they differ if anything was written."""
    stats = {path: path.stat() for path in _files(directory)}
    return {path: (stat.st_size, stat.st_mtime_ns) for path, stat in stats.items()}


def _copy_unchanged(directory: Path, copy: Path) -> None:
    for _attempt in range(_ATTEMPTS):
        # If a file disappears meanwhile, another program is writing: try again.
        with suppress(FileNotFoundError):
            before = _state(directory)
            _require_room(directory, copy.parent, sum(size for size, _time in before.values()))
            _copy(directory, copy, before)
            if _state(directory) == before:
                return
        shutil.rmtree(copy, ignore_errors=True)
    raise _refused(directory, "another program is writing to it; stop that one first")


def _copy(directory: Path, copy: Path, files: dict[Path, tuple[int, int]]) -> None:
    try:
        for path in files:
            target = copy / path.relative_to(directory)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _unreadable(error) from error


def _require_room(directory: Path, room: Path, size: int) -> None:
    free = shutil.disk_usage(room).free
    if free < size + _SPARE_BYTES:
        raise _refused(
            directory,
            f"it is read from a copy, which needs {(size + _SPARE_BYTES) >> 20} MB in "
            f"{room.parent}, where {free >> 20} MB are free",
        )


def _check_tables(directory: Path, copy: Path) -> None:
    """Refuse a file without Chroma's tables: in an empty file Chroma would create a database."""
    try:
        with closing(sqlite3.connect(copy / DATABASE_FILE)) as database:
            found = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            names = {name for (name,) in found}
    except sqlite3.DatabaseError as error:
        raise _refused(directory, f"{DATABASE_FILE} cannot be read: {error}") from error
    if not names.issuperset({"collections", "segments", "embeddings", "migrations"}):
        raise _refused(directory, f"{DATABASE_FILE} is no database of Chroma's")


def _refused(directory: Path, reason: str) -> ServerSetup:
    return ServerSetup(f"{directory} cannot be imported: {reason}")


def _unreadable(error: OSError) -> ServerSetup:
    return ServerSetup(f"{error.filename} cannot be read or copied: {error.strerror}")
