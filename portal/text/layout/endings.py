"""Where an excerpt ends, so that it does not end with a heading whose section is left out."""

from __future__ import annotations

import re

from portal.text.layout.sentences import LIST_ITEM
from portal.text.layout.tables import CELL_BORDER

_BLANK_LINE = re.compile(r"[^\S\n]*\n[^\S\n]*\n")
_CLOSERS = "\"'”’」』》】)） \t"
_NEVER_LAST_IN_HEADING = tuple(".!?;,:…。！？；，、：")
_MAX_HEADING_LENGTH = 80


def end_before_heading(text: str, start: int, end: int, earliest: int) -> int:
    """Return where `text[start:end]` should end, so that it does not end with the heading of the
    text that follows, the first row of its table, or the number of an item without its text. Never
    before `earliest`.

    The text has no known blocks: a short line between blank ones that does not end like a sentence
    is taken for a heading.
    """
    while end < len(text):
        line = text.rfind("\n", start, end) + 1
        kept = start + len(text[start:line].rstrip())
        if kept == start or kept < earliest or not _heads_what_follows(text, kept, line, end):
            break
        end = kept
    return end


def _heads_what_follows(text: str, before: int, line: int, end: int) -> bool:
    """Return whether the line at `line` heads what follows `end`; `before` is where the text above
    it ends."""
    if LIST_ITEM.fullmatch(text, line, end):
        return True
    last, _, below = text[line:].partition("\n")
    above = text[text.rfind("\n", 0, before) + 1 : before]
    if CELL_BORDER in last:
        return "|" in below.partition("\n")[0] and "|" not in above
    # "5. Gifts" is not a heading below "4. Meals", which is an item.
    is_item = LIST_ITEM.match(last) and (not last[0].isdigit() or LIST_ITEM.match(above))
    is_alone = text.count("\n", before, line) > 1 and _BLANK_LINE.match(text, end)
    return (
        bool(is_alone)
        and len(last) <= _MAX_HEADING_LENGTH
        and not last.rstrip(_CLOSERS).endswith(_NEVER_LAST_IN_HEADING)
        and not is_item
        # A colon introduces something else, such as a command.
        and text[before - 1] not in ":："
    )
