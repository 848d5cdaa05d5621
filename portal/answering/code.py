"""Code within Markdown that is still being streamed: where it certainly begins and ends.

A renderer decides what is code from the complete text. A reader of the stream has to come to the
same result, or a link that was taken for code would be live on the page. Ambiguous text is
therefore rewritten: unmatched backticks are escaped, an indented fence ends where its list would
end, and its closing line is indented like its opening one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_FENCE = re.compile(r"(?P<indent>[ \t]*)(?P<run>`{3,}|~{3,})(?P<info>[^\n]*)")
_LANGUAGE = re.compile(r" ?[\w+#.-]+(?=\s|\Z)")
_MAYBE_FENCE = re.compile(r"[ \t]*(?:`{0,2}|~{0,2})\Z")
_SPECIAL = re.compile(r"[\\`\n]")
_BACKTICKS = re.compile(r"`+")
# A code span is a word or a line; a longer one probably starts with a stray backtick.
_MAX_SPAN_LENGTH = 500


@dataclass(frozen=True, slots=True)
class Piece:
    text: str
    is_code: bool = False


@dataclass(frozen=True, slots=True)
class _Fence:
    indent: str
    run: str
    """The backticks or tildes of the opening line."""

    @property
    def closing_line(self) -> str:
        return f"{self.indent}{self.run}"

    def is_closed_by(self, line: str) -> bool:
        bare = line.strip()
        return len(bare) >= len(self.run) and not bare.strip(self.run[0])


class CodeReader:
    """Separates code from other text, delta by delta. Its output, concatenated, is the text, except
    for what was ambiguous."""

    def __init__(self) -> None:
        self._held = ""
        self._fence: _Fence | None = None
        self._at_line_start = True
        self._last_guarded = ""

    def feed(self, text: str) -> Iterator[Piece]:
        self._held += text
        yield from self._read(final=False)

    def close(self) -> Iterator[Piece]:
        """Yield the rest. An open fence is closed, so that text appended to the answer is not
        code."""
        yield from self._read(final=True)
        if self._fence is not None:
            before = "" if self._at_line_start else "\n"
            yield Piece(f"{before}{self._fence.closing_line}", is_code=True)
            self._fence = None

    def _read(self, *, final: bool) -> Iterator[Piece]:
        while self._held:
            piece = self._in_fence(final) if self._fence else self._outside(final)
            if piece is None:
                return
            if piece.text:
                self._at_line_start = piece.text.endswith("\n")
                yield piece

    def _take(self, length: int) -> str:
        taken, self._held = self._held[:length], self._held[length:]
        return taken

    # Inside a fence.

    def _in_fence(self, final: bool) -> Piece | None:
        assert self._fence is not None  # noqa: S101 - for the type checker
        if not self._at_line_start:
            return self._guarded(self._take(self._held.find("\n") + 1 or len(self._held)))
        line_end = self._held.find("\n")
        line = self._held if line_end < 0 else self._held[:line_end]
        code = line.lstrip(" \t")
        first = code[:1].strip()
        if line_end < 0 and not final and not first:
            return None
        if first:
            if self._is_left_by(line.removesuffix(code)):
                return self._leave(f"{self._fence.closing_line}\n")
            if first == self._fence.run[0]:
                if line_end < 0 and not final:
                    return None
                if self._fence.is_closed_by(line):
                    self._take(len(line) + (line_end >= 0))
                    return self._leave(self._fence.closing_line + "\n" * (line_end >= 0))
        return self._guarded(self._take(line_end + 1 or len(self._held)))

    def _is_left_by(self, indent: str) -> bool:
        """Return whether a line is indented less than the fence, so that its list is over."""
        assert self._fence is not None  # noqa: S101 - for the type checker
        return len(indent.expandtabs(4)) < len(self._fence.indent.expandtabs(4))

    def _leave(self, text: str) -> Piece:
        self._fence = None
        return Piece(text, is_code=True)

    def _guarded(self, code: str) -> Piece:
        """Return code that is not a link even if a renderer takes it for text."""
        if self._fence is not None and not self._fence.indent:
            return Piece(code, is_code=True)
        guarded = code.replace("](", "] (")
        if self._last_guarded == "]" and code.startswith("("):
            guarded = f" {guarded}"
        self._last_guarded = code[-1:]
        return Piece(guarded, is_code=True)

    # Outside.

    def _outside(self, final: bool) -> Piece | None:
        if self._at_line_start:
            if not final and "\n" not in self._held and _MAYBE_FENCE.match(self._held):
                return None
            if match := _FENCE.match(self._held):
                return self._open(match, final)
        return self._inline(final)

    def _open(self, match: re.Match[str], final: bool) -> Piece | None:
        line_end = self._held.find("\n")
        if line_end < 0 and not final:
            return None
        if match["run"][0] == "`" and "`" in match["info"]:
            return self._inline(final)
        self._fence = _Fence(match["indent"], match["run"])
        self._last_guarded = ""
        self._take(line_end + 1 or len(self._held))
        # Keep only the language: some renderers take the rest of this line for a table header.
        language = _LANGUAGE.match(match["info"])
        opening = f"{match['indent']}{match['run']}{language.group() if language else ''}"
        return Piece(opening + "\n" * (line_end >= 0), is_code=True)

    def _inline(self, final: bool) -> Piece | None:
        special = _SPECIAL.search(self._held)
        if special is None:
            return Piece(self._take(len(self._held)))
        if special.start() > 0:
            return Piece(self._take(special.start()))
        if special.group() == "\n":
            return Piece(self._take(1))
        if special.group() == "\\":
            if len(self._held) == 1 and not final:
                return None
            return Piece(self._take(1 if self._held[1:2] == "\n" else 2))
        return self._span(final)

    def _span(self, final: bool) -> Piece | None:
        run = _BACKTICKS.match(self._held)
        assert run is not None  # noqa: S101 - for the type checker
        length = run.end()
        if length == len(self._held) and not final:
            return None
        line_end = self._held.find("\n")
        limit = len(self._held) if line_end < 0 else line_end
        for other in _BACKTICKS.finditer(self._held, length, min(limit, _MAX_SPAN_LENGTH)):
            if other.end() == len(self._held) and not final:
                return None  # The run may continue, which would change its length.
            if other.end() - other.start() == length and other.end() < _MAX_SPAN_LENGTH:
                self._last_guarded = ""
                return self._guarded(self._take(other.end()))
        if line_end < 0 and not final and len(self._held) < _MAX_SPAN_LENGTH:
            return None
        self._take(length)
        return Piece("\\`" * length)
