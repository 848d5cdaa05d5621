"""Whether a server's complaint repeats what it was sent.

Some quote the input that they refuse. What they say is shown to people and told to operators, and
a question or a passage of a document must not travel there with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from portal.text.scripts import HAN

# So many characters in a row are no coincidence; Chinese says more with each.
_RUN, _RUN_HAN = 20, 5
_LEFT_OUT = "(it repeats what was sent, which is left out here)"
_HAN = re.compile(f"[{HAN}]")
_ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})")


def without_echo(said: str, sent: Iterable[str]) -> str:
    """What the server said in one line, or that it only repeated what it was sent."""
    line = _plain(said)
    is_echo = any(_repeats(line, _plain(text)) for text in sent)
    return _LEFT_OUT if is_echo else " ".join(said.split())


def _repeats(line: str, text: str) -> bool:
    for run in (_RUN_HAN, _RUN):
        if len(text) <= run:
            return len(text) > 1 and text in line
        pieces = (line[start : start + run] for start in range(len(line) - run + 1))
        if any(piece in text for piece in pieces if run == _RUN or _HAN.search(piece)):
            return True
    return False


def _plain(text: str) -> str:
    unescaped = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)
    return " ".join(unescaped.casefold().split())
