"""Why something is refused is told in the reader's language, wherever the reason is written."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from portal.http import messages

PORTAL = Path(messages.__file__).parents[1]
# Told to programs in their own process, examples of the API's document, and on a command line.
_IN_ENGLISH = {
    "api/openapi/errors.py",
    "domain/text_filter.py",
    "services/collections/checks.py",
    "services/collections/records.py",
}
_ENGLISH_ERRORS = {"BackupRefused", "ServerSetup", "warning"}
_NAMES_OF_FIELDS = re.compile(r"\w+(, \w+)*")


def _words(value: ast.expr) -> str:
    """The text of a reason with a 7 for each value in it; empty where it is no text of ours."""
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return value.value
    if isinstance(value, ast.JoinedStr):
        words = [part.value if isinstance(part, ast.Constant) else "7" for part in value.values]
        return "".join(map(str, words))
    return ""


def _reasons(source: str) -> Iterator[tuple[int, str]]:
    """The line of each reason that a reader may see, and the reason itself."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        if ast.unparse(node.func).rpartition(".")[2] in _ENGLISH_ERRORS:
            continue
        for argument in node.keywords:
            words = _words(argument.value) if argument.arg == "reason" else ""
            if re.search("[A-Za-z]", words) and not _NAMES_OF_FIELDS.fullmatch(words):
                yield node.lineno, words


def _untold(source: str) -> list[tuple[int, str]]:
    patterns = [pattern for _, pattern in messages._patterns()]
    return [
        (line, words)
        for line, words in _reasons(source)
        if not any(pattern.fullmatch(words) for pattern in patterns)
    ]


def test_every_reason_is_a_phrase_for_the_translators() -> None:
    paths = {path.relative_to(PORTAL).as_posix(): path for path in PORTAL.rglob("*.py")}
    assert paths.keys() >= _IN_ENGLISH
    readers = [name for name in paths if name not in _IN_ENGLISH]
    untold = {name: _untold(paths[name].read_text(encoding="utf-8")) for name in readers}
    assert {name: found for name, found in untold.items() if found} == {}


def test_a_reason_that_nobody_translates_is_found() -> None:
    source = """
raise InvalidInput(reason="the moon is full")
raise InvalidInput(reason=f"{count} moons are full")
raise InvalidInput(reason="a version is a single file")
raise InvalidInput(reason="visibility, language")
raise errors.ServerSetup(reason="there is no moon")
"""
    assert _untold(source) == [(2, "the moon is full"), (3, "7 moons are full")]
