"""Removal of a purged document's own words from answers (docs/adr/0012).

A citation keeps its title, hash, position and dates. Sentences of an answer that repeat the
quotation are removed; paraphrases belong to the user who asked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from portal.answering.marker_syntax import without_markers_of_its_own
from portal.domain.answering import SentenceSupport
from portal.store.answers import messages as message_store
from portal.store.answers import quotations
from portal.store.session import Session
from portal.text.layout.sentences import sentence_spans

ERASED = "[…]"
# What may surround quoted words in an answer: markers, also before the full stop, quotation marks,
# list and quote signs, and the dots of an ellipsis.
_AROUND = re.compile(
    r"\A(?:\[\d{1,3}\]|[\s>*_\-…“”\"'「」『』‘’])+"
    r"|(?<![\s*_…“”\"'「」『』‘’])(?:\[\d{1,3}\]|[\s*_…“”\"'「」『』‘’])++[.!?。！？；]*\Z"
)
_MARKER = re.compile(r"\[\d{1,3}\]")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_MIN_CHARACTERS = 4


def erase_from_answers(session: Session, document_id: UUID) -> None:
    """Remove a document's words from every answer and citation that quotes them."""
    for quoted in quotations.lock_quotations(session, document_id):
        content, support = without_quotations(quoted.content, quoted.support, quoted.quotes)
        if content != quoted.content:
            message_store.rewrite(session, quoted.message_id, content=content, support=support)
    quotations.erase_quotes(session, document_id)


def without_quotations(
    content: str, support: Sequence[SentenceSupport], quotes: Sequence[str]
) -> tuple[str, tuple[SentenceSupport, ...]]:
    """Return an answer with whole sentences of these texts erased, and its support with the
    positions moved accordingly."""
    if not quotes:
        return content, tuple(support)
    spans = _find_verbatim(content, quotes)
    return _cut_out(content, spans), tuple(_move_support(verdict, spans) for verdict in support)


def _find_verbatim(content: str, quotes: Sequence[str]) -> list[tuple[int, int]]:
    """Return the ranges of an answer that repeat whole sentences of a quotation."""
    texts = [_comparable(quote) for quote in quotes]
    found = []
    for start, end in sentence_spans(content):
        sentence = content[start:end]
        head = _AROUND.match(sentence)
        first = head.end() if head else 0
        bare = _AROUND.sub("", sentence)
        words = _comparable(_MARKER.sub("", bare))
        if len(words) >= _MIN_CHARACTERS and any(words in text for text in texts):
            found.append((start + first, start + first + len(bare)))
    return found


def _comparable(text: str) -> str:
    """Remove what quoting may change: white space, escapes, and brackets that look like markers."""
    return "".join(without_markers_of_its_own(_ESCAPED.sub(r"\1", text)).split())


def _cut_out(content: str, spans: Sequence[tuple[int, int]]) -> str:
    for start, end in reversed(spans):
        content = content[:start] + ERASED + content[end:]
    return content


def _move_support(support: SentenceSupport, spans: Sequence[tuple[int, int]]) -> SentenceSupport:
    return replace(
        support,
        start=_move_position(support.start, spans),
        end=_move_position(support.end, spans),
    )


def _move_position(place: int, spans: Sequence[tuple[int, int]]) -> int:
    """Map a position in the text to its position after the spans are erased."""
    moved = place
    for start, end in spans:
        if place >= end:
            moved += len(ERASED) - (end - start)
        elif place > start:
            moved += len(ERASED) - (place - start)
    return moved
