"""Detection of server errors that repeat the input.

Some servers quote the input that they reject. Their messages are shown to users and logged, and
must not contain a question or a chunk of a document.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from portal.text.characters.scripts import HAN_RUN

# How much of a server's message is shown, and how much is read to see whether it repeats the input.
_MAX_LENGTH = 200
MAX_READ_LENGTH = 4 * _MAX_LENGTH
# This many equal characters in a row are not a coincidence; fewer suffice in Chinese.
_RUN, _RUN_HAN = 20, 5
_LEFT_OUT = "(it repeats what was sent, which is left out here)"
_ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})")


def strip_echo(said: str, sent: Iterable[str]) -> str:
    """Return the server's message on one line, or a note that it only repeated the input."""
    line = _plain(said)
    is_echo = any(_repeats(line, _plain(text)) for text in sent)
    return _LEFT_OUT if is_echo else " ".join(said.split())


def shown_error(said: str, sent: Iterable[str], key: str) -> str:
    """Return the beginning of a server's message, on one line, without the key and the input."""
    line = strip_echo(said, sent)
    return (line.replace(key, "…") if key else line)[:_MAX_LENGTH]


def _repeats(line: str, text: str) -> bool:
    for run in (_RUN_HAN, _RUN):
        if len(text) <= run:
            return len(text) > 1 and _stands_in(line, text)
        pieces = (line[start : start + run] for start in range(len(line) - run + 1))
        if any(piece in text for piece in pieces if run == _RUN or HAN_RUN.search(piece)):
            return True
    return False


def _stands_in(line: str, text: str) -> bool:
    """Return whether a short text is in a line; Latin letters as whole words only, so that "hi" is
    not in "this"."""
    if HAN_RUN.search(text):
        return text in line
    return re.search(rf"(?<!\w){re.escape(text)}(?!\w)", line) is not None


def _plain(text: str) -> str:
    unescaped = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)
    return " ".join(unescaped.casefold().split())
