"""Claims about every template."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TEMPLATES = Path(__file__).parents[2] / "templates"
FILES = sorted(TEMPLATES.rglob("*.html"))
FRAGMENTS = [path for path in FILES if "fragments" in path.parts]


def name(path: Path) -> str:
    return str(path.relative_to(TEMPLATES))


@pytest.mark.parametrize("path", FILES, ids=name)
def test_first_line_says_what_it_needs(path: Path) -> None:
    assert path.read_text(encoding="utf-8").startswith("{#")


@pytest.mark.parametrize("path", FRAGMENTS, ids=name)
def test_fragment_never_extends(path: Path) -> None:
    assert "{% extends" not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", FILES, ids=name)
def test_no_inline_script_style_or_handler(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert not re.search(r"<script(?![^>]*\bsrc=)", source)
    assert "<style" not in source
    assert not re.search(r"\s(style|on[a-z]+)=\"", source)


@pytest.mark.parametrize("path", FILES, ids=name)
def test_nothing_is_marked_safe(path: Path) -> None:
    assert not re.search(r"\|\s*safe\b", path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", FILES, ids=name)
def test_attributes_on_lines_of_their_own_do_not_run_together(path: Path) -> None:
    # The newline after a block and the spaces before one are trimmed: `required` and `autofocus`
    # on two lines would come out as `requiredautofocus`.
    source = path.read_text(encoding="utf-8")
    assert not re.search(r"[a-z]\{% endif %\}\n *\{%-? if", source)


@pytest.mark.parametrize("path", FILES, ids=name)
def test_templates_that_it_names_exist(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    for other in re.findall(r"\{% (?:extends|include|from|import) \"([^\"]+)\"", source):
        assert (TEMPLATES / other).is_file(), other
