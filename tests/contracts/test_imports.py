"""The import contracts detect violations."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PLANTED = {
    "a module without a layer": ("utils.py", "X = 1\n"),
    "Flask in a service": ("services/documents/library.py", "\nimport flask\n"),
    "SQLAlchemy in a page": ("web/documents/listing.py", "\nimport sqlalchemy\n"),
    "a store that uses a service": (
        "store/documents/files.py",
        "\nimport portal.services.documents.library\n",
    ),
    "pages that use the APIs": ("web/search/pages.py", "\nimport portal.api.documents.knowledge\n"),
}


def lint(root: Path) -> int:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    environment = {"PYTHONPATH": str(root)}
    result = subprocess.run(command, cwd=root, capture_output=True, env=environment, check=False)
    return result.returncode


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "portal", tmp_path / "portal", ignore=ignored)
    return tmp_path


def test_contracts_hold(copy: Path) -> None:
    assert lint(copy) == 0


@pytest.mark.parametrize("violation", PLANTED, ids=str)
def test_planted_violation_is_found(copy: Path, violation: str) -> None:
    name, addition = PLANTED[violation]
    path = copy / "portal" / name
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    path.write_text(before + addition, encoding="utf-8")
    assert lint(copy) != 0
