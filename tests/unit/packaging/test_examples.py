"""The examples are listed in their README, and each begins with how to run it."""

from __future__ import annotations

import re
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
FILES = sorted(path.name for path in EXAMPLES.iterdir() if path.suffix in {".py", ".sh"})


def test_each_example_is_listed_in_both_languages() -> None:
    words = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| \[(\S+?)\]\(\1\) \| (.+?) \|", words, flags=re.MULTILINE))
    assert sorted(rows) == FILES
    for file, shows in rows.items():
        english, _, chinese = shows.partition(" · ")
        assert english.isascii(), file
        assert re.search("[\u4e00-\u9fff]", chinese), file
        assert f"examples/{file}" in words


def test_each_example_says_how_it_runs() -> None:
    for file in FILES:
        head = (EXAMPLES / file).read_text(encoding="utf-8")[:1000]
        assert f"examples/{file}" in head, file
