"""Bundles of our style sheets and scripts: one request each, without a build step.

Each module becomes a function that returns its exports, and follows the modules that it imports.
Only the syntax that our modules use is supported: named imports from the same folder, and exported
functions, constants and classes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w-]+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function\*?|const|class) (\w+))", re.MULTILINE)
_OTHER = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


def bundle_styles(paths: Sequence[Path]) -> str:
    """Return style sheets joined in their order."""
    return "\n".join(path.read_text("utf-8") for path in paths)


def bundle_scripts(entry: Path) -> str:
    """Return a module and everything that it imports as one script.

    Raises ValueError for circular imports, and for imports or exports that are not supported.
    """
    parts: dict[str, str] = {}
    _add(entry.stem, entry.parent, parts, ())
    return '"use strict";\n(() => {\n' + "".join(parts.values()) + "})();\n"


def _add(name: str, folder: Path, parts: dict[str, str], above: tuple[str, ...]) -> None:
    if name in parts:
        return
    if name in above:
        raise ValueError(f"modules import each other: {' > '.join((*above, name))}")
    source = (folder / f"{name}.js").read_text("utf-8")
    for match in _IMPORT.finditer(source):
        _add(match[2], folder, parts, (*above, name))
    exports = ", ".join(match[1] for match in _EXPORT.finditer(source))
    source = _EXPORT.sub("", _IMPORT.sub(_as_constants, source))
    if other := _OTHER.search(source):
        raise ValueError(f"{name}.js cannot be bundled: {other[0]}")
    parts[name] = f"const {_variable(name)} = (() => {{\n{source}return {{ {exports} }};\n}})();\n"


def _as_constants(match: re.Match[str]) -> str:
    names = match[1].replace(" as ", ": ")
    return f"const {{{names}}} = {_variable(match[2])};\n"


def _variable(name: str) -> str:
    return "$" + name.replace("-", "_")
