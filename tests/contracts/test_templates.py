"""Every template, script and style sheet follows the house rules."""

from __future__ import annotations

import re
from pathlib import Path

from portal.web import TEMPLATES
from portal.web.assets import STATIC

TEXTS = {
    path: path.read_text(encoding="utf-8")
    for path in (*TEMPLATES.rglob("*.html"), *STATIC.rglob("*.js"), *STATIC.rglob("*.css"))
}
PAGES = {path: text for path, text in TEXTS.items() if path.suffix == ".html"}
SCRIPTS = {path: text for path, text in TEXTS.items() if path.suffix == ".js"}
TAG = re.compile(r"<[a-z][^<>]*?(?:\{[{%].*?[%}]\}[^<>]*?)*>", re.DOTALL)
COLOUR = re.compile(r"(--[a-z-]+): (?:#|rgb|0 )")


def found(pattern: str, texts: dict[Path, str] = PAGES) -> list[tuple[str, str]]:
    """Return the matches of `pattern`, each with its file."""
    matches = re.compile(pattern).finditer
    return [(path.name, match[0]) for path, text in texts.items() for match in matches(text)]


def test_first_line_says_what_the_template_needs() -> None:
    first = re.compile(r"\{#-? .+ -?#\}\n")
    assert [path for path, text in PAGES.items() if not first.match(text)] == []


def test_no_inline_script_style_or_handler() -> None:
    assert found(r"<style|\sstyle=|\son[a-z]+=|javascript:|hx-on|hx-vals='js") == []
    assert found(r"<script(?![^>]*\bsrc=)") == []


def test_no_template_switches_off_escaping() -> None:
    assert found(r"\|\s*safe\b|autoescape") == []


def test_every_htmx_action_works_without_htmx() -> None:
    tags = [(path.name, tag) for path, text in PAGES.items() for tag in TAG.findall(text)]
    acting = [
        (name, tag)
        for name, tag in tags
        # Elements that only a script shows have an equivalent elsewhere on the page.
        if not re.search(r"\shidden\b", tag)
        and re.search(r"[\s}]hx-(get|post|delete|put|patch)=", tag)
    ]
    assert acting
    # Without scripts, sending the form or reloading shows what a change or a timer would load.
    works = re.compile(r'\s(href|(form)?action)=|^<select\b|hx-trigger="(load|every|change)')
    assert [one for one in acting if not works.search(one[1])] == []


def test_forms_that_change_something_carry_the_token() -> None:
    forms = [form for form in found(r"(?s)<form.*?</form>") if 'method="post"' in form[1]]
    assert forms
    has_token = re.compile(r"csrf_field\(\)|name=\"csrf_token\"")
    assert [form for form in forms if not has_token.search(form[1])] == []


def test_nothing_is_loaded_from_elsewhere() -> None:
    assert found(r"(src|href)=\"(https?:)?//") == []


def test_conditional_attributes_do_not_run_together() -> None:
    # The newline after a block and the spaces before one are trimmed: `required` and `autofocus`
    # on two lines would come out as `requiredautofocus`.
    assert found(r"[a-z]\{% endif %\}\n *\{%-? if") == []


def test_named_templates_exist() -> None:
    naming = re.compile(r"\{% (?:extends|include|from|import) \"([^\"]+)\"")
    named = {name for text in PAGES.values() for name in naming.findall(text)}
    assert named
    assert [name for name in named if not (TEMPLATES / name).is_file()] == []


def test_fragments_never_extend_and_pages_have_a_title() -> None:
    fragments = {path for path in PAGES if "fragments" in path.relative_to(TEMPLATES).parts}
    pages = {path for path in PAGES if "pages" in path.relative_to(TEMPLATES).parts}
    assert fragments
    assert pages
    assert [path for path in fragments if "{% extends" in PAGES[path]] == []
    assert [path for path in pages if "{% block title %}" not in PAGES[path]] == []


def test_scripts_use_nothing_that_the_policy_forbids() -> None:
    forbidden = r"\beval\(|new Function|innerHTML\s*=|\.style\b|setAttribute\(.style"
    assert found(forbidden, SCRIPTS) == []


def test_scripts_import_scripts_that_exist() -> None:
    imports = re.compile(r'from "(\./[^"]+)"')
    imported = [path.parent / name for path in SCRIPTS for name in imports.findall(TEXTS[path])]
    assert imported
    assert [path for path in imported if not path.is_file()] == []


def test_each_colour_has_its_dark_twin() -> None:
    light, dark = (
        COLOUR.findall(TEXTS[STATIC / "css" / f"{sheet}.css"])
        for sheet in ("tokens", "tokens-dark")
    )
    assert light
    assert set(light) == set(dark)


def test_colours_come_from_the_tokens() -> None:
    sheets = {path: text for path, text in TEXTS.items() if path.parent == STATIC / "css"}
    other = {path: text for path, text in sheets.items() if not path.name.startswith("tokens")}
    assert other
    assert found(r"#[0-9a-f]{3,8}\b|rgba?\(|hsl", other) == []
