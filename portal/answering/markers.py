"""Markers: which source a part of an answer cites. The server owns the register, not the model.

A model writes ``[2]``, ``【1】`` or ``[^1, 3]`` for the numbers that its prompt gave to chunks.
`MarkerStream` reads its text as it arrives. A marker of a registered source becomes ``[n]``, where
n counts sources by first use; other markers are removed. Code is not changed.

The output is Markdown. Renderers can rely on this, outside code:

- ``[n]`` with one to three digits is always a marker, and there is none inside code;
- there is no link and no image: ``](``, ``![`` before text, ``]:`` at the start of a line and ``<``
  before a tag or an address do not occur. The text of a picture or a link stays; its address is
  removed, because it could send what the model read to another server.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import ClassVar

from portal.answering.code import CodeReader, Piece
from portal.answering.marker_syntax import (
    ADDRESS,
    ALMOST_MARKER,
    BEGINNING,
    LINE_PREFIX,
    LOOKS_REMOTE,
    MARKER,
    MAX_ADDRESS_LENGTH,
    MAX_BODY_LENGTH,
    MAYBE_ADDRESS,
    OPENS_TAG,
    PLAIN,
    SHOWN,
    SPACES,
    numbers_in,
    without_markers,
)
from portal.domain.answering import MarkedText, Source


def shown_markers(content: str) -> list[tuple[int, int, int]]:
    """Return start, end and number of each marker in a finished answer, in order, outside code."""
    reader, found, place = CodeReader(), [], 0
    for piece in (*reader.feed(content), *reader.close()):
        if not piece.is_code:
            found += [
                (place + match.start(), place + match.end(), int(match[1]))
                for match in SHOWN.finditer(piece.text)
            ]
        place += len(piece.text)
    return found


class MarkerStream:
    """A filter for a model's text. Its output, concatenated, is the answer, for any split of the
    input."""

    def __init__(self, sources: Iterable[Source]) -> None:
        self._known = {source.number for source in sources}
        self._shown: dict[int, int] = {}
        self._code = CodeReader()
        self._held = ""
        self._spaces = ""
        self._line = ""
        self._last_marker: int | None = None
        self._is_dropping = False
        self._before_dropped = ""
        self._out: list[MarkedText] = []

    @property
    def order(self) -> tuple[int, ...]:
        """Return the numbers of the cited sources, by first use: marker n is number n - 1 here."""
        return tuple(self._shown)

    def add_sources(self, sources: Iterable[Source]) -> None:
        """Register sources that were found in the meantime."""
        self._known |= {source.number for source in sources}

    def feed(self, text: str) -> list[MarkedText]:
        for piece in self._code.feed(text):
            self._take_piece(piece)
        return self._take_output()

    def close(self, *, is_cut: bool = False) -> list[MarkedText]:
        """Return the rest. `is_cut` drops the beginning of a marker in which the text was cut."""
        for piece in self._code.close():
            self._take_piece(piece)
        if is_cut and BEGINNING.match(self._held):
            self._held = ""
        self._finish()
        self._flush_spaces()
        return self._take_output()

    def _take_output(self) -> list[MarkedText]:
        pieces, self._out = self._out, []
        merged: list[MarkedText] = []
        for piece in pieces:
            if merged and piece.marker is None and merged[-1].marker is None:
                merged[-1] = MarkedText(merged[-1].text + piece.text)
            else:
                merged.append(piece)
        return merged

    def _take_piece(self, piece: Piece) -> None:
        if not piece.is_code:
            self._held += piece.text
            self._scan(final=False)
            return
        self._finish()
        self._give(piece.text)

    def _finish(self) -> None:
        """Process the buffer as complete text."""
        self._scan(final=True)
        if self._is_dropping:
            self._end_dropping()
            self._scan(final=True)

    # The buffer, from its front.

    def _scan(self, *, final: bool) -> None:
        while self._held and self._step(final):
            pass

    def _step(self, final: bool) -> bool:
        """Process one token; return False when more text is needed to recognise it."""
        if self._is_dropping:
            return self._drop()
        if plain := PLAIN.match(self._held):
            self._write(self._take(plain.end()))
            return True
        if spaces := SPACES.match(self._held):
            self._spaces += self._take(spaces.end())
            return True
        reader = self._READERS.get(self._held[0])
        return reader(self, final) if reader else self._opening(final)

    def _take(self, length: int) -> str:
        taken, self._held = self._held[:length], self._held[length:]
        return taken

    def _write_plain(self, length: int = 1) -> bool:
        self._write(self._take(length))
        return True

    def _escape(self, _final: bool) -> bool:
        return self._write_plain(2)

    @property
    def _after_marker(self) -> bool:
        return self._last_marker is not None and not self._spaces

    def _opening(self, final: bool) -> bool:
        match = MARKER.match(self._held)
        body = (match["inner"] or match["body"]) if match else ""
        if match and len(body) <= MAX_BODY_LENGTH:
            self._take(match.end())
            self._write_markers(body)
            return True
        if not final and BEGINNING.match(self._held):
            return False
        return self._write_plain()

    def _write_markers(self, body: str) -> None:
        """Write the markers of all sources that a marker names, skipping unknown ones."""
        named = [number for number in numbers_in(body) if number in self._known]
        if not named and self._line:
            self._spaces = ""
        for number in named:
            shown = self._shown.setdefault(number, len(self._shown) + 1)
            if shown == self._last_marker and not self._spaces:
                continue
            self._flush_spaces()
            self._out.append(MarkedText(f"[{shown}]", shown))
            self._line += f"[{shown}]"
            self._last_marker = shown

    def _closing(self, final: bool) -> bool:
        if len(self._held) == 1 and not final:
            return False
        if self._held[1:2] == "(":
            if (end := self._address_end(1, final)) is None:
                return False
            # The bracket stays, because another address may follow the removed one.
            return self._without(1, end) if end else self._write_instead("] ")
        defines = self._held[1:2] == ":" and LINE_PREFIX.match(self._line)
        return self._write_plain() if not defines else self._write_instead("] ")

    def _without(self, start: int, end: int) -> bool:
        """Remove an address, or as much of it as has arrived."""
        if self._is_dropping:
            self._before_dropped = self._held[:start]
            self._held = self._held[end:]
        else:
            self._held = self._held[:start] + self._held[end:]
        return True

    def _write_instead(self, instead: str) -> bool:
        self._take(1)
        self._write(instead)
        return True

    def _address_end(self, start: int, final: bool) -> int | None:
        """Return where the address at `start` ends; 0 if there is none, None while unknown."""
        if match := ADDRESS.match(self._held, start):
            return match.end()
        if not final and MAYBE_ADDRESS.match(self._held, start):
            if len(self._held) < MAX_ADDRESS_LENGTH:
                return None
            self._is_dropping = True
            return len(self._held)
        return 0

    def _parenthesis(self, final: bool) -> bool:
        """Handle what directly follows a marker: an address, or words in parentheses."""
        if not self._after_marker:
            return self._write_plain()
        if (end := self._address_end(0, final)) is None:
            return False
        if end and LOOKS_REMOTE.search(self._held, 0, end):
            return self._without(0, end)
        return self._write_instead(" (")

    def _drop(self) -> bool:
        end = re.search(r"[\s)]", self._held)
        self._take(end.end() if end else len(self._held))
        if end:
            self._end_dropping()
        return True

    def _end_dropping(self) -> None:
        self._is_dropping = False
        self._held, self._before_dropped = self._before_dropped + self._held, ""

    def _colon(self, _final: bool) -> bool:
        starts_line = self._after_marker and not without_markers(self._line).strip(" \t>*+-.")
        return self._write_instead(" :") if starts_line else self._write_plain()

    def _exclamation(self, final: bool) -> bool:
        if len(self._held) == 1 and not final:
            return False
        if self._held[1:2] != "[" or MARKER.match(self._held, 1):
            return self._write_plain()
        if not final and BEGINNING.match(self._held, 1):
            return False
        self._take(1)
        return True

    def _angle(self, final: bool) -> bool:
        if len(self._held) == 1 and not final:
            return False
        opens = OPENS_TAG.match(self._held, 1)
        return self._write_instead("\\<") if opens else self._write_plain()

    # The output.

    def _write(self, text: str) -> None:
        if text in {"]", "\\]"} and ALMOST_MARKER.search(self._line + self._spaces):
            # Left over next to removed text, the bracket would complete a marker.
            text = " ]"
        self._give(text)

    def _give(self, text: str) -> None:
        self._flush_spaces()
        self._out.append(MarkedText(text))
        self._line = (self._line + text).rpartition("\n")[2]
        self._last_marker = None

    def _flush_spaces(self) -> None:
        if self._spaces:
            self._out.append(MarkedText(self._spaces))
            self._line += self._spaces
            self._last_marker = None
        self._spaces = ""

    _READERS: ClassVar[dict[str, Callable[[MarkerStream, bool], bool]]] = {
        "\\": _escape,
        "<": _angle,
        "!": _exclamation,
        "(": _parenthesis,
        ":": _colon,
        "]": _closing,
    }
