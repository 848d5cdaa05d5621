"""Every reason shown to users is marked for translation and has a Chinese translation."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import portal
from portal import errors
from portal.web import translations

PORTAL = Path(portal.__file__).parent
_ENGLISH = {error.__name__ for error in errors.tree(errors.CommandRefused)}
_ERRORS = {error.__name__ for error in errors.tree(errors.PortalError)} - _ENGLISH


def _unmarked(source: str) -> list[int]:
    """Return the lines where an error's reason, or N_, gets neither a literal nor a Message."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return sorted({call.lineno for call in calls if any(_faults(call))})


def _faults(call: ast.Call) -> Iterator[bool]:
    name = ast.unparse(call.func).rpartition(".")[2]
    if name == "N_":
        yield not (call.args and isinstance(call.args[0], ast.Constant))
    elif name in _ERRORS:
        texts = (ast.JoinedStr, ast.BinOp)
        reasons = [*call.args[:1], *(k.value for k in call.keywords if k.arg == "reason")]
        yield any(isinstance(reason, texts) for reason in reasons)
        yield any(k.arg == "reason" and isinstance(k.value, ast.Constant) for k in call.keywords)
        yield any("gettext" in ast.unparse(value) for value in reasons)


def _templates() -> Iterator[str]:
    for path in PORTAL.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and node.args:
                name = ast.unparse(node.func).rpartition(".")[2]
                is_reason = name in _ERRORS and isinstance(node.args[0], ast.Constant)
                if name == "N_" or is_reason:
                    yield ast.literal_eval(node.args[0])


def test_every_reason_is_marked_where_it_is_raised() -> None:
    unmarked = {p: _unmarked(p.read_text(encoding="utf-8")) for p in PORTAL.rglob("*.py")}
    assert {path: lines for path, lines in unmarked.items() if lines} == {}


def test_every_marked_template_has_a_chinese_translation() -> None:
    chinese = translations.load()["zh_Hans_CN"]
    templates = set(_templates())
    assert len(templates) > len(_ERRORS)
    assert {template for template in templates if not chinese.gettext(template)} == set()
    assert {template for template in templates if template not in chinese._catalog} == set()


def test_unmarked_reason_is_found() -> None:
    source = """
raise InvalidInput(reason="the moon is full")
raise errors.InvalidInput(reason=f"{count} moons are full")
raise InvalidInput(reason=gettext("the moon is full"))
raise InvalidInput(reason=N_(f"{count} moons are full"))
raise InvalidInput(f"{count} moons are full")
raise InvalidInput(gettext("the moon is full"))
raise InvalidInput("%(count)s moons are full", count=count)
raise InvalidInput(reason=N_("%(count)s moons are full", count=count))
raise InvalidInput(reason=reason)
raise errors.ServerSetup(reason="there is no moon")
"""
    assert _unmarked(source) == [2, 3, 4, 5, 6, 7]
