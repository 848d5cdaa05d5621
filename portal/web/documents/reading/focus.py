"""Targets of links into a document: a chunk, the words of a citation, matches or a position."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from flask import request

from portal.domain.conversations import Citation, QuotedText, SourceState
from portal.domain.documents import DocumentDetail, StoredChunk
from portal.domain.search import Span
from portal.errors import NotFound
from portal.http import context
from portal.services.answers import citing
from portal.services.documents import library
from portal.services.documents.versions import revisions
from portal.text.terms.analyser import query_terms
from portal.text.terms.highlight import highlight_spans, occurrences, whole_words

MAX_FIND_CHARACTERS = 200
MAX_DIGITS = 8


@dataclass(frozen=True, slots=True)
class Focus:
    """The target of a link in a document.

    `chunk` contains the target or its beginning. A citation of the current text is marked in place;
    for one of an earlier text, `quoted` has that text and `quoted_number` the number of its
    revision. `is_gone` is true if the target no longer exists. `position` is where a heading begins
    in the text.
    """

    chunk: StoredChunk | None = None
    citation: Citation | None = None
    quoted: QuotedText | None = None
    quoted_number: int | None = None
    query: str = ""
    conversation_id: UUID | None = None
    is_gone: bool = False
    find: str = ""
    matches: tuple[Span, ...] = ()
    match_number: int = 0
    position: int | None = None

    def chosen(self, stored: StoredChunk) -> Span | None:
        """Return the part of the chosen match that lies in a chunk."""
        if not self.match_number:
            return None
        match = self.matches[self.match_number - 1]
        return _overlap(stored, match.start, match.end)

    def spans(self, chunks: Iterable[StoredChunk]) -> dict[UUID, tuple[Span, ...]]:
        """Return the ranges to mark in each of these chunks, by chunk id."""
        if self.find:
            return {stored.id: self._found(stored) for stored in chunks}
        if self.chunk is None or self.quoted is not None:
            return {}
        if self.citation is None:
            return {self.chunk.id: _words(self.chunk.chunk.content, self.query)}
        if self.chunk.chunk.char_start is None:
            # Cited from a chunk that was added through the API: the range is within that chunk.
            return {self.chunk.id: (Span(self.citation.char_start, self.citation.char_end),)}
        found = {
            stored.id: _overlap(stored, self.citation.char_start, self.citation.char_end)
            for stored in chunks
        }
        return {chunk_id: (span,) for chunk_id, span in found.items() if span}

    def _found(self, stored: StoredChunk) -> tuple[Span, ...]:
        if stored.chunk.char_start is None:
            found = occurrences(stored.chunk.content, self.find)
            return tuple(Span(start, end) for start, end in found)
        first = bisect_right(self.matches, stored.chunk.char_start, key=lambda match: match.end)
        last = bisect_left(self.matches, stored.chunk.char_end, key=lambda match: match.start)
        parts = (_overlap(stored, match.start, match.end) for match in self.matches[first:last])
        return tuple(filter(None, parts))


def find_focus(detail: DocumentDetail) -> Focus:
    """Return the target in the request's address."""
    query = request.args.get("q", "").strip()
    if words := " ".join(request.args.get("find", "")[:MAX_FIND_CHARACTERS].split()):
        return _found_in_text(detail, words)
    if (position := natural(request.args.get("at"))) is not None:
        return Focus(_chunk_at(detail, position), position=position)
    if citation_id := request.args.get("citation", type=UUID):
        return cited_focus(detail.summary.id, citation_id)
    chunk_id = request.args.get("chunk", type=UUID)
    if chunk_id is None:
        return Focus(query=query)
    try:
        chunk = library.find_chunk(*context.caller(), detail.summary.id, chunk_id)
    except NotFound:
        # The text has been indexed again since the link was made; show the document anyway.
        return Focus(query=query, is_gone=True)
    return Focus(chunk, query=query)


def _found_in_text(detail: DocumentDetail, words: str) -> Focus:
    """Return the matches of these words, and the chunk of the one with the number `match`."""
    try:
        _, text = library.read_text(*context.caller(), detail.summary.id)
    except NotFound:
        return Focus(find=words)
    matches = tuple(Span(*found) for found in occurrences(text, words))
    if not matches:
        return Focus(find=words)
    number = min(max(1, natural(request.args.get("match")) or 1), len(matches))
    chunk = _chunk_at(detail, matches[number - 1].start)
    return Focus(chunk, find=words, matches=matches, match_number=number)


def _chunk_at(detail: DocumentDetail, position: int) -> StoredChunk | None:
    try:
        return library.find_chunk_at(*context.caller(), detail.summary.id, position)
    except NotFound:
        return None


def natural(text: str | None) -> int | None:
    """Parse a whole number from 0; return None for anything else."""
    is_number = text and text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS
    return int(text) if text and is_number else None


def positive(text: str | None, *, otherwise: int = 1) -> int:
    """Parse a whole number, at least 1; return `otherwise` for anything else."""
    number = natural(text)
    return otherwise if number is None else max(1, number)


def came_from() -> UUID | None:
    """Return the conversation that a link to a citation came from, to link back to it."""
    return request.args.get("conversation", type=UUID)


def cited_focus(document_id: UUID, citation_id: UUID) -> Focus:
    """Return the target of a citation in this document."""
    services, user = context.caller()
    try:
        citation = citing.get_citation(services, user, citation_id)
        if citation.document_id != document_id:
            return Focus(is_gone=True)
        if citation.state is SourceState.REPLACED:
            quoted = citing.quoted_text(services, user, citation_id)
            number = None
            if citation.revision_id is not None:
                number = revisions.find_number(services, user, document_id, citation.revision_id)
            return Focus(
                citation=citation, quoted=quoted, quoted_number=number, conversation_id=came_from()
            )
        chunk = _chunk_of(document_id, citation)
    except NotFound:
        return Focus(is_gone=True)
    return Focus(chunk, citation, conversation_id=came_from())


def _chunk_of(document_id: UUID, citation: Citation) -> StoredChunk:
    """Return the chunk in which a citation of the current text begins. Raises NotFound."""
    services, user = context.caller()
    if citation.revision_id is None and citation.chunk_id is not None:
        return library.find_chunk(services, user, document_id, citation.chunk_id)
    return library.find_chunk_at(services, user, document_id, citation.char_start)


def _overlap(stored: StoredChunk, start: int, end: int) -> Span | None:
    """Return the part of a chunk that lies between `start` and `end` of the text."""
    chunk = stored.chunk
    if chunk.char_start is None or chunk.char_end is None:
        return None
    first, last = max(start, chunk.char_start), min(end, chunk.char_end)
    if first >= last:
        return None
    return Span(first - chunk.char_start, last - chunk.char_start)


def _words(text: str, query: str) -> tuple[Span, ...]:
    """Return the ranges of the query's words in the chunk."""
    if not query:
        return ()
    spans = whole_words(text, highlight_spans(text, query_terms(query)), query)
    return tuple(Span(start, end) for start, end in spans)
