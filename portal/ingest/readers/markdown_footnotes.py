"""Markdown rules for footnotes: `[^label]` in a text, and `[^label]: …` with the note itself.

As on a page, notes are numbered by their first marks, not by their labels.
"""

from __future__ import annotations

import re
from collections.abc import MutableMapping
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline

_MARK = re.compile(r"\[\^([^\]\s]{1,100})\]")
_NOTE = re.compile(r"\[\^([^\]\s]{1,100})\]:[ \t]*")
_INDENT = 4
# Keys of the parser's environment: labels that have a note, and the numbers given to labels.
_LABELS, _NUMBERS = "footnotes", "footnote_numbers"


def extend(parser: MarkdownIt) -> None:
    """Add the rules to a parser of CommonMark."""
    # Before references, as which "[^1]: 注释" would read.
    parser.block.ruler.before("reference", "footnote", _note, {"alt": ["paragraph", "reference"]})
    parser.inline.ruler.before("link", "footnote_mark", _mark)


def number_of(label: str, environment: MutableMapping[str, Any]) -> int:
    """Return the number of a note, the next one if its label has none yet."""
    numbers: dict[str, int] = environment.setdefault(_NUMBERS, {})
    return numbers.setdefault(label, len(numbers) + 1)


def _note(state: StateBlock, line: int, last: int, silent: bool) -> bool:
    """Parse a note with the lines that continue it and the indented blocks below it."""
    begin = state.bMarks[line] + state.tShift[line]
    marker = _NOTE.match(state.src, begin, state.eMarks[line])
    if marker is None or state.is_code_block(line):
        return False
    if silent:
        return True
    state.env.setdefault(_LABELS, set()).add(marker[1])
    state.push("footnote_open", "", 1).info = marker[1]
    place = state.bMarks[line], state.tShift[line], state.sCount[line], state.blkIndent
    state.blkIndent += _INDENT
    # The first line is read from after its marker, as if it were indented.
    state.bMarks[line], state.tShift[line], state.sCount[line] = marker.end(), 0, state.blkIndent
    state.md.block.tokenize(state, line, last)
    state.bMarks[line], state.tShift[line], state.sCount[line], state.blkIndent = place
    state.push("footnote_close", "", -1)
    return True


def _mark(state: StateInline, silent: bool) -> bool:
    mark = _MARK.match(state.src, state.pos, state.posMax)
    if mark is None or mark[1] not in state.env.get(_LABELS, ()):
        return False
    if not silent:
        state.pending += f"[{number_of(mark[1], state.env)}]"
    state.pos = mark.end()
    return True
