"""The signs that frame a heading in plain text."""

from __future__ import annotations

import re

_STROKES = r"[=\-~*#─━—]{2,}"
_FRAME = re.compile(rf"^(?:{_STROKES}[ \t]*|#[ \t]+|【)|(?:[ \t]*{_STROKES}|[ \t]+#|】)$")


def without_frame(line: str) -> str:
    """Return "Fees" for "== Fees ==", "## Fees" and 【Fees】."""
    return _FRAME.sub("", line)
