"""Every template, script and style sheet keeps the house's rules."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from portal.web import TEMPLATES
from portal.web.assets import STATIC

FILES = sorted(TEMPLATES.rglob("*.html"))
SCRIPTS = sorted(STATIC.rglob("*.js"))
SHEETS = sorted((STATIC / "css").glob("*.css"))
TAG = re.compile(r"<[a-z][^<>]*?(?:\{[{%].*?[%}]\}[^<>]*?)*>", re.DOTALL)
COLOUR = re.compile(r"(--[a-z-]+): (?:#|rgb|0 )")


def name(path: Path) -> str:
    return str(path.relative_to(TEMPLATES))


def of_kind(folder: str) -> list[Path]:
    return [path for path in FILES if folder in path.relative_to(TEMPLATES).parts]


@pytest.fixture(params=FILES, ids=name)
def template(request: pytest.FixtureRequest) -> str:
    return request.param.read_text(encoding="utf-8")


def test_first_line_says_what_it_needs(template: str) -> None:
    assert re.match(r"\{#-? .+ -?#\}\n", template)


def test_no_inline_script_style_or_handler(template: str) -> None:
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=|javascript:|hx-on|hx-vals='js", template)
    assert not re.search(r"<script(?![^>]*\bsrc=)", template)


def test_no_text_is_trusted(template: str) -> None:
    assert not re.search(r"\|\s*safe\b", template)
    assert "autoescape" not in template


def test_every_htmx_action_works_without_htmx(template: str) -> None:
    for tag in TAG.findall(template):
        # What only a script shows has its equivalent elsewhere on the page.
        is_shown = not re.search(r"\shidden\b", tag)
        if is_shown and re.search(r"\shx-(get|post|delete|put|patch)=", tag):
            assert re.search(r"\s(href|(form)?action)=", tag), tag


def test_forms_that_change_something_carry_the_token(template: str) -> None:
    for form in re.findall(r"<form.*?</form>", template, re.DOTALL):
        if 'method="post"' in form:
            assert "csrf_field()" in form or 'name="csrf_token"' in form


def test_nothing_is_loaded_from_elsewhere(template: str) -> None:
    assert not re.search(r"(src|href)=\"(https?:)?//", template)


def test_attributes_on_lines_of_their_own_do_not_run_together(template: str) -> None:
    # The newline after a block and the spaces before one are trimmed: `required` and `autofocus`
    # on two lines would come out as `requiredautofocus`.
    assert not re.search(r"[a-z]\{% endif %\}\n *\{%-? if", template)


def test_templates_that_it_names_exist(template: str) -> None:
    for other in re.findall(r"\{% (?:extends|include|from|import) \"([^\"]+)\"", template):
        assert (TEMPLATES / other).is_file(), other


@pytest.mark.parametrize("path", of_kind("fragments"), ids=name)
def test_fragment_never_extends(path: Path) -> None:
    assert "{% extends" not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", of_kind("pages"), ids=name)
def test_page_has_a_title(path: Path) -> None:
    assert "{% block title %}" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_script_needs_nothing_that_the_policy_forbids(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    assert not re.search(
        r"\beval\(|new Function|innerHTML\s*=|\.style\b|setAttribute\(.style", text
    )
    for other in re.findall(r'from "(\./[^"]+)"', text):
        assert (script.parent / other).is_file()


def test_each_colour_has_its_dark_twin() -> None:
    light, dark = (
        COLOUR.findall((STATIC / "css" / f"{sheet}.css").read_text(encoding="utf-8"))
        for sheet in ("tokens", "tokens-dark")
    )
    assert set(light) == set(dark)


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda path: path.name)
def test_colours_come_from_the_tokens(sheet: Path) -> None:
    if not sheet.name.startswith("tokens"):
        assert not re.search(r"#[0-9a-f]{3,8}\b|rgba?\(|hsl", sheet.read_text(encoding="utf-8"))
