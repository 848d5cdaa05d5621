"""Items of task lists, as Markdown writes them."""

from __future__ import annotations

import re

_BOX = re.compile(r"\A\[([ xX])\](?=\s)")


def with_task_box(item: str) -> str:
    """Return the text of an item with ☐ or ☑ instead of "[ ]" or "[x]" at its beginning."""
    return _BOX.sub(lambda box: "☐" if box[1] == " " else "☑", item)
