"""Files on disk to import, found one after the other to bound memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from portal.ingest.media_types import known_suffixes


def find_files(
    paths: Iterable[Path],
    *,
    cannot_read: Callable[[Path, OSError], None] = lambda _path, _error: None,
    is_unsupported: Callable[[Path], None] = lambda _path: None,
) -> Iterator[Path]:
    """Yield files to import in a stable order.

    In folders, skips files of other types, hidden files and folders, and symbolic links, which may
    lead anywhere. Paths that are named explicitly are always tried, and links among them followed.

    Holds only the entries of one folder and its parents in memory. Folders that cannot be read, or
    have disappeared, are passed to `cannot_read` with the error, and files of other types to
    `is_unsupported`.
    """
    for path in paths:
        if path.is_dir():
            yield from _below(path, cannot_read, is_unsupported)
        else:
            yield path


def _below(
    folder: Path,
    cannot_read: Callable[[Path, OSError], None],
    is_unsupported: Callable[[Path], None],
) -> Iterator[Path]:
    # An explicit stack, because folders may be nested deeper than Python can recurse.
    open_folders = [_entries(folder, cannot_read)]
    while open_folders:
        entry = next(open_folders[-1], None)
        if entry is None:
            open_folders.pop()
        elif entry.is_dir(follow_symlinks=False):
            open_folders.append(_entries(Path(entry.path), cannot_read))
        elif not entry.is_file(follow_symlinks=False):
            continue
        elif os.path.splitext(entry.name)[1].lower() in known_suffixes():  # noqa: PTH122 - no path
            yield Path(entry.path)
        else:
            is_unsupported(Path(entry.path))


def _entries(
    folder: Path, cannot_read: Callable[[Path, OSError], None]
) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            shown = [entry for entry in found if not entry.name.startswith(".")]
    except OSError as error:
        cannot_read(folder, error)
        return iter(())
    return iter(sorted(shown, key=lambda entry: entry.name))
