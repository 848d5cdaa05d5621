"""Each promise of docs/reliability.md names a test that exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reliability.md"


def test_each_promise_names_a_test_that_exists() -> None:
    promises = PAGE.read_text().split("## How often")[0]
    rows = [line for line in promises.splitlines() if line.startswith("| ")]
    rows = [row for row in rows if not row.startswith("| promise |")]
    assert len(rows) > 10
    for row in rows:
        names = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", row)
        assert names, row
        for path, name in names:
            assert f"def {name}(" in (ROOT / path).read_text(), (path, name)
