"""docs/scenarios.md and the tests that it names agree."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "scenarios.md"
# The rows of this section name no test, because they give measured figures.
WITHOUT_TESTS = "Measured"
# The number of scenarios in each part, so that none is dropped unnoticed.
COUNTS = {"V": 22, "K": 14, "C": 52, "M": 40, "D": 29}

ROW = re.compile(
    r"^\| (?P<key>[VKCMD]-[\d.]+) \| (?P<what>[^|]+) \| (?P<how>[^|]+) \| (?P<tests>.*) \|$"
)
NODE = re.compile(r"`((?:tests|e2e)/[\w/]+\.py::\w+)`")


def rows() -> list[dict[str, str]]:
    """Return the rows of all tables: key, scenario, where it is served, tests."""
    found, section = [], ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            section = line.removeprefix("## ")
        match = ROW.match(line)
        if match:
            found.append({**match.groupdict(), "section": section})
    return found


@cache
def names_in(path: Path) -> dict[str, ast.FunctionDef | ast.ClassDef]:
    """Return the test functions and classes of a module by name."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return {n.name: n for n in nodes if isinstance(n, ast.FunctionDef | ast.ClassDef)}


def named_tests() -> list[tuple[str, str]]:
    return sorted({(row["key"], node) for row in rows() for node in NODE.findall(row["tests"])})


def test_every_scenario_is_listed_once() -> None:
    keys = [row["key"] for row in rows()]
    assert [key for key, count in Counter(keys).items() if count > 1] == []
    assert Counter(key[0] for key in keys) == COUNTS
    criteria = {
        f"M-{requirement}.{number}" for requirement in range(1, 9) for number in range(1, 6)
    }
    assert {key for key in keys if key.startswith("M")} == criteria


def test_each_scenario_has_a_test_or_is_measured() -> None:
    for row in rows():
        is_measured = row["section"].startswith(WITHOUT_TESTS)
        assert bool(NODE.findall(row["tests"])) != is_measured, row["key"]


def test_named_tests_exist_and_run() -> None:
    assert named_tests()
    for key, node in named_tests():
        name, _, function = node.partition("::")
        assert (ROOT / name).is_file(), f"{key}: there is no {name}"
        found = names_in(ROOT / name).get(function)
        assert found is not None, f"{key}: there is no {node}"
        marks = " ".join(ast.unparse(decorator) for decorator in found.decorator_list)
        assert not re.search(r"\b(skip|skipif|xfail)\b", marks), f"{key}: {node} may not run"
