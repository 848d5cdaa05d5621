"""Unicode normalisation that keeps a map to the original characters."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from dataclasses import dataclass, field, replace
from functools import lru_cache

# The Unicode Stream-Safe Text Format allows 30 combining marks in a row. Normalising longer runs
# takes time that grows with the square of their length, so they are normalised in parts.
MAX_MARK_RUN_LENGTH = 30

_STABLE, _JOINS_PREVIOUS, _CHANGES, _DROPPED = range(4)

# Invisible characters that affect display, not meaning: soft hyphen, joiners, direction marks,
# variation selectors, byte order mark, tags. They would split or hide words.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u180b-\u180f\u200c-\u200f\u202a-\u202e\u2060-\u206f"
    "\ufe00-\ufe0f\ufeff\U000e0000-\U000e0fff]"
)
# Known characters that stay as they are.
_known_stable: set[str] = set()
_MAX_CACHED = 65536
_ZERO_WIDTH_SPACE = "\u200b"  # It marks a word boundary, so it becomes a space.


@dataclass(frozen=True, slots=True)
class NormalisedText:
    """Normalised text with offsets: any range of `text` maps to a range of the original.

    Only positions where lengths differ are stored, so plain text costs nothing.
    """

    text: str
    _starts: list[int] = field(default_factory=list)
    _ends: list[int] = field(default_factory=list)
    _original_starts: list[int] = field(default_factory=list)
    _original_ends: list[int] = field(default_factory=list)

    def original_span(self, start: int, end: int) -> tuple[int, int]:
        """Return the smallest range of the original that yields `text[start:end]` (not empty)."""
        if not self._starts:
            return start, end
        return self._original_range(start)[0], self._original_range(end - 1)[1]

    def with_text(self, text: str) -> NormalisedText:
        """Return a text that was changed character for character, with the same offsets."""
        if len(text) != len(self.text):
            raise ValueError("the changed text has another length")
        return replace(self, text=text)

    def _original_range(self, position: int) -> tuple[int, int]:
        place = bisect_right(self._starts, position) - 1
        if place < 0:
            return position, position + 1
        if position < self._ends[place]:
            return self._original_starts[place], self._original_ends[place]
        shift = self._original_ends[place] - self._ends[place]
        return position + shift, position + shift + 1


def normalise(text: str) -> NormalisedText:
    """Return NFKC text without NUL, lone surrogates and invisible characters.

    Linear in len(text).
    """
    if text.isascii() and "\0" not in text:
        return NormalisedText(text)
    odd = _unstable(set(text))
    same_length = {
        ord(c): changed for c in odd if _kind(c) == _CHANGES and len(changed := _change(c)) == 1
    }
    if same_length:
        text = text.translate(same_length)
        odd = _unstable({same_length.get(ord(c), c) for c in odd})
    pattern = _odd_places(frozenset(odd)) if odd else None
    return _rewrite(text, pattern) if pattern else NormalisedText(text)


def _unstable(characters: set[str]) -> set[str]:
    """Return those characters that normalisation may change.

    Most are cached after the first time.
    """
    unknown = characters - _known_stable
    odd = {c for c in unknown if _kind(c) != _STABLE}
    if len(_known_stable) > _MAX_CACHED:
        _known_stable.clear()
    _known_stable.update(unknown - odd)
    return odd


def clean(text: str) -> str:
    """Return text that is safe for embedding models: some crash on what `normalise` removes."""
    return normalise(text).text


def clean_beginning(text: str, max_characters: int) -> str:
    """Return the beginning of a text, cleaned. It is cut before and after, because NFKC turns one
    character into up to eighteen."""
    return clean(text[:max_characters])[:max_characters]


def _rewrite(text: str, odd_places: re.Pattern[str]) -> NormalisedText:
    parts: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    original_starts: list[int] = []
    original_ends: list[int] = []
    done = length = 0
    for match in odd_places.finditer(text):
        old = match.group()
        kept = "".join(c for c in old if _kind(c) != _DROPPED)
        new = unicodedata.normalize("NFKC", kept)
        if new == old:
            continue
        parts += (text[done : match.start()], new)
        length += match.start() - done
        starts.append(length)
        length += len(new)
        ends.append(length)
        original_starts.append(match.start())
        original_ends.append(done := match.end())
    parts.append(text[done:])
    return NormalisedText("".join(parts), starts, ends, original_starts, original_ends)


@lru_cache(maxsize=256)
def _odd_places(characters: frozenset[str]) -> re.Pattern[str] | None:
    """Return a pattern for characters that must be normalised together: one and its marks."""
    dropped, joining, changing = (
        "".join(re.escape(c) for c in sorted(characters) if _kind(c) == kind)
        for kind in (_DROPPED, _JOINS_PREVIOUS, _CHANGES)
    )
    options = []
    if joining:
        # A dropped character may be between a letter and its mark.
        first, gap = (f"[^{dropped}]", f"[{dropped}]{{0,4}}") if dropped else (".", "")
        options.append(f"{first}?(?:{gap}[{joining}]){{1,{MAX_MARK_RUN_LENGTH}}}")
    if dropped:
        options.append(f"[{dropped}]+")
    if changing:
        options.append(f"[{changing}]")
    return re.compile("|".join(options), re.DOTALL) if options else None


def _change(character: str) -> str:
    if character == _ZERO_WIDTH_SPACE:
        return " "
    return unicodedata.normalize("NFKC", character)


def normalised_alone(character: str) -> str | None:
    """Return the normalised character, if it is a single one and the same in any text."""
    changed = _change(character)
    is_alone = _kind(character) in {_STABLE, _CHANGES} and len(changed) == 1
    return changed if is_alone and _kind(changed) == _STABLE else None


@lru_cache(maxsize=65536)
def _kind(character: str) -> int:
    if character == "\0" or "\ud800" <= character <= "\udfff" or _INVISIBLE.match(character):
        return _DROPPED
    first = unicodedata.normalize("NFKD", character)[0]
    if unicodedata.category(first)[0] == "M" or "\u1160" <= first <= "\u11ff":
        return _JOINS_PREVIOUS  # Combining marks, and Korean vowels and finals.
    return _CHANGES if _change(character) != character else _STABLE
