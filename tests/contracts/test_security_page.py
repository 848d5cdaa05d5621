"""Every promise on the security page names an existing test."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from portal.domain.people.audit import AuditEvent

ROOT = Path(__file__).parents[2]
PAGES = ("security.md",)
NAMED = re.compile(r"`(tests/[\w/]+(?:\.py)?)(?:::(\w+))?`")
ROW = re.compile(r"^\| (?!threat \||---)(.+) \|$", re.MULTILINE)


def table() -> list[list[str]]:
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    _, _, after = page.partition("## Threats, promises, tests")
    section = after.partition("\n## ")[0]
    return [[cell.strip() for cell in row[1].split(" | ")] for row in ROW.finditer(section)]


def test_every_threat_has_a_promise_and_a_test() -> None:
    rows = table()
    assert len(rows) > 20
    for row in rows:
        assert len(row) == 3, row
        assert all(row), row
        assert NAMED.search(row[2]), row


def test_every_test_that_is_named_exists() -> None:
    missing = []
    for page in PAGES:
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        for path, name in NAMED.findall(text):
            file = ROOT / path
            if not file.exists() or (name and name not in functions_of(file)):
                missing.append(f"{page}: {path}::{name}")
    assert missing == []


def test_table_of_the_audit_log_has_every_event() -> None:
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    section = page.partition("\n## Audit log\n")[2].partition("\n### ")[0]
    named = [name for row in ROW.findall(section) for name in re.findall(r"`(\w+)`", row)]
    assert sorted(named) == sorted(AuditEvent)


def functions_of(file: Path) -> set[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {each.name for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)}
