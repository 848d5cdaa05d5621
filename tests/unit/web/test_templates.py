"""Every template keeps the house's rules."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from portal.web import TEMPLATES
from portal.web.assets import STATIC

TEMPLATE_PATHS = sorted(TEMPLATES.rglob("*.html"))
SCRIPTS = sorted(STATIC.rglob("*.js"))
TAG = re.compile(r"<[a-z][^<>]*?(?:\{[{%].*?[%}]\}[^<>]*?)*>", re.DOTALL)


def _names(paths: list[Path]) -> list[str]:
    return [path.name for path in paths]


@pytest.fixture(params=TEMPLATE_PATHS, ids=_names(TEMPLATE_PATHS))
def template(request) -> str:
    return request.param.read_text(encoding="utf-8")


def test_it_says_first_what_it_needs(template):
    assert re.match(r"\{#-? .+ -?#\}\n", template)


def test_it_has_no_inline_script_or_style(template):
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=|javascript:|hx-on|hx-vals='js", template)
    assert not re.search(r"<script(?![^>]*\bsrc=)", template)


def test_it_trusts_no_text(template):
    assert "|safe" not in template.replace(" ", "")
    assert "autoescape" not in template


def test_every_htmx_action_works_without_htmx(template):
    for tag in TAG.findall(template):
        # What only a script shows has its equivalent elsewhere on the page.
        is_shown = not re.search(r"\shidden\b", tag)
        if is_shown and re.search(r"\shx-(get|post|delete|put|patch)=", tag):
            assert re.search(r"\s(href|(form)?action)=", tag), tag


def test_forms_that_change_something_carry_the_token(template):
    for form in re.findall(r"<form.*?</form>", template, re.DOTALL):
        if 'method="post"' in form:
            assert "csrf_field()" in form or 'name="csrf_token"' in form


def test_it_asks_for_nothing_from_elsewhere(template):
    assert not re.search(r"(src|href)=\"(https?:)?//", template)


@pytest.mark.parametrize("path", [p for p in TEMPLATE_PATHS if "fragments" in p.parts], ids=str)
def test_a_fragment_never_extends(path):
    assert "{% extends" not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", [p for p in TEMPLATE_PATHS if "pages" in p.parts], ids=str)
def test_a_page_has_a_title(path):
    assert "{% block title %}" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("script", SCRIPTS, ids=_names(SCRIPTS))
def test_a_script_needs_nothing_that_the_policy_forbids(script):
    text = script.read_text(encoding="utf-8")
    assert not re.search(
        r"\beval\(|new Function|innerHTML\s*=|\.style\b|setAttribute\(.style", text
    )
    for name in re.findall(r'from "(\./[^"]+)"', text):
        assert (script.parent / name).is_file()


def test_each_colour_has_its_dark_twin():
    light = (STATIC / "css" / "tokens.css").read_text(encoding="utf-8")
    dark = (STATIC / "css" / "tokens-dark.css").read_text(encoding="utf-8")
    colours = set(re.findall(r"(--[a-z-]+): (?:#|rgb|0 )", light))
    assert colours == set(re.findall(r"(--[a-z-]+): (?:#|rgb|0 )", dark))


@pytest.mark.parametrize("sheet", sorted((STATIC / "css").glob("*.css")), ids=lambda p: p.name)
def test_colours_come_from_the_tokens(sheet):
    if not sheet.name.startswith("tokens"):
        assert not re.search(r"#[0-9a-f]{3,8}\b|rgba?\(|hsl", sheet.read_text(encoding="utf-8"))
