"""Reader of a Markdown text, in UTF-8, that yields it as the body of a web page.

    {"html": "<h1>…"}

HTML within it stays as it is: the page is only for a sandbox without scripts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from markdown_it import MarkdownIt

_DEEPEST_NESTING = 60
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)


def read(file: BinaryIO) -> Iterator[dict[str, Any]]:
    """Yield the one record; front matter is code."""
    source = _FRONT_MATTER.sub(r"```\n\1\n```\n\n", file.read().decode(), count=1)
    parser = MarkdownIt("commonmark", {"maxNesting": _DEEPEST_NESTING, "html": True})
    yield {"html": parser.enable(["table", "strikethrough"]).render(source)}
