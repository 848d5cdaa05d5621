"""Context around a chunk that is short, or that begins or ends mid-sentence."""

from __future__ import annotations

from dataclasses import dataclass

from portal.text.layout.endings import end_before_heading
from portal.text.layout.sentences import sentence_spans, trim
from portal.text.layout.tables import CELL_BORDER

# White space between two chunks of a document; a longer gap is text that neither chunk holds.
_MAX_GAP_LENGTH = 12
# For a sentence that began long before the chunk, only the end is shown.
_MAX_REST_LENGTH = 160


@dataclass(frozen=True, slots=True)
class Fragment:
    """A `text` that is at characters `start` to `end` of a document."""

    text: str
    start: int
    end: int

    @property
    def is_exact(self) -> bool:
        """Return whether the range matches the text, which is not certain for chunks added by
        API."""
        return len(self.text) == self.end - self.start


def join_neighbours(
    chunk: Fragment, before: Fragment | None, after: Fragment | None, *, wanted_chars: int
) -> Fragment:
    """Return the whole chunk extended with text from its neighbours.

    `text[i]` of the result is character `start + i` of the document. Sentences that the chunk cuts
    are completed, up to 160 characters. A chunk shorter than `wanted_chars` is filled up with whole
    sentences, first from what follows, then from what precedes. Ranges may overlap; no text is
    repeated. A neighbour is left out if there is other text in between, or if the overlapping words
    differ.
    """
    if not chunk.is_exact:
        return chunk
    joined = _with_following(chunk, after)
    end = _reading_end(joined, chunk, wanted_chars)
    cut = Fragment(joined.text[: end - joined.start], joined.start, end)
    whole = _with_preceding(cut, before)
    start = _reading_start(whole, chunk, wanted_chars)
    return Fragment(whole.text[start - whole.start :], start, whole.end)


def _with_following(chunk: Fragment, after: Fragment | None) -> Fragment:
    if after is None or not after.is_exact or after.start < chunk.start:
        return chunk
    overlap = chunk.end - after.start
    if overlap < -_MAX_GAP_LENGTH or after.end <= chunk.end:
        return chunk
    if overlap > 0 and not chunk.text.endswith(after.text[:overlap]):
        return chunk
    rest = after.text[max(overlap, 0) :]
    text = chunk.text + _white_space(-overlap, chunk.text, rest) + rest
    return Fragment(text, chunk.start, after.end)


def _with_preceding(chunk: Fragment, before: Fragment | None) -> Fragment:
    if before is None or not before.is_exact or before.start >= chunk.start:
        return chunk
    overlap = before.end - chunk.start
    if overlap < -_MAX_GAP_LENGTH or before.end > chunk.end:
        return chunk
    if overlap > 0 and not before.text.endswith(chunk.text[:overlap]):
        return chunk
    kept = before.text[: chunk.start - before.start]
    text = kept + _white_space(-overlap, kept, chunk.text) + chunk.text
    return Fragment(text, before.start, chunk.end)


def _white_space(length: int, before: str, after: str) -> str:
    """Return the white space between two chunks: a space between sentences, a new line between
    rows of a table, or a new paragraph."""
    rows = before.rpartition("\n")[2], after.partition("\n")[0]
    is_space = length == 1 and not all(CELL_BORDER in row for row in rows)
    return " " if is_space else "\n" * length


def _reading_end(joined: Fragment, chunk: Fragment, wanted_chars: int) -> int:
    """Return where to stop reading in the text after the chunk."""
    end, limit = chunk.end, chunk.start + wanted_chars
    for first, last in sentence_spans(joined.text):
        first, last = first + joined.start, last + joined.start  # noqa: PLW2901 - of the document
        if last <= chunk.end:
            continue
        if first < chunk.end:  # The sentence that the chunk cuts.
            end = last if last - chunk.end <= _MAX_REST_LENGTH else _word_end(joined, end)
        elif last <= limit:
            end = last
        else:
            break
    start = joined.start
    return start + end_before_heading(joined.text, 0, end - start, chunk.end - start)


def _reading_start(joined: Fragment, chunk: Fragment, wanted_chars: int) -> int:
    """Return where to begin reading in the text before the chunk."""
    start, limit = chunk.start, joined.end - wanted_chars
    for first, last in reversed(sentence_spans(joined.text)):
        first, last = first + joined.start, last + joined.start  # noqa: PLW2901 - of the document
        if first >= chunk.start:
            continue
        if last > chunk.start:
            start = first if chunk.start - first <= _MAX_REST_LENGTH else _word_start(joined, start)
        elif first >= limit:
            start = first
        else:
            break
    return start


def _word_end(joined: Fragment, end: int) -> int:
    """Return the last end of a word, or of a row of a table, within the visible rest of a
    sentence."""
    rest = joined.text[end - joined.start : end - joined.start + _MAX_REST_LENGTH]
    line = rest.rfind("\n")
    space = line if line > 0 and CELL_BORDER in rest else max(rest.rfind(" "), line)
    return end + trim(rest, 0, space if space > 0 else len(rest))[1]


def _word_start(joined: Fragment, start: int) -> int:
    """Return the first beginning of a word, or of a row of a table, within the visible rest of a
    sentence."""
    rest = joined.text[max(0, start - joined.start - _MAX_REST_LENGTH) : start - joined.start]
    line = rest.find("\n")
    space = line if line >= 0 and CELL_BORDER in rest else rest.find(" ")
    return start - len(rest) + trim(rest, space + 1, len(rest))[0]
