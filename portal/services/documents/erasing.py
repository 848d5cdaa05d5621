"""What a purge takes out of answers: the purged document's own words (docs/adr/0012).

A citation keeps that it was made: title, hash, place and dates. A sentence of an answer that is a
sentence of the quotation goes; what was said in other words belongs to whoever asked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from uuid import UUID

from portal.answering.prompt import without_markers_of_its_own
from portal.domain.answering import SentenceSupport
from portal.store.answers import messages as message_store
from portal.store.answers import quotations
from portal.store.session import Session
from portal.text.sentences import sentence_spans

ERASED = "[…]"
# What stands around quoted words in an answer: markers, also before the full stop, quotation marks,
# signs of lists and quotes, and the dots of what was shortened.
_AROUND = re.compile(
    r"\A(?:\[\d{1,3}\]|[\s>*_\-…“”\"'「」『』‘’])+"
    r"|(?:\[\d{1,3}\]|[\s*_…“”\"'「」『』‘’])+[.!?。！？；]*\Z"
)
_MARKER = re.compile(r"\[\d{1,3}\]")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_MIN_CHARACTERS = 4


def erase_from_answers(session: Session, document_id: UUID) -> None:
    """Take a document's words out of every answer and citation that has them."""
    for quoted in quotations.lock_quotations(session, document_id):
        content, support = without_quotations(quoted.content, quoted.support, quoted.quotes)
        if content != quoted.content:
            message_store.rewrite(session, quoted.message_id, content=content, support=support)
    quotations.erase_quotes(session, document_id)


def without_quotations(
    content: str, support: Sequence[SentenceSupport], quotes: Sequence[str]
) -> tuple[str, tuple[SentenceSupport, ...]]:
    """An answer without whole sentences of these texts, and its sentences where they stand
    then."""
    spans = _verbatim(content, quotes)
    return _without(content, spans), tuple(_moved(one, spans) for one in support)


def _verbatim(content: str, quotes: Sequence[str]) -> list[tuple[int, int]]:
    """Where an answer has whole sentences of a quotation, without what stands around them."""
    texts = [_squeezed(quote) for quote in quotes]
    found = []
    for start, end in sentence_spans(content):
        sentence = content[start:end]
        head = _AROUND.match(sentence)
        first = head.end() if head else 0
        bare = _AROUND.sub("", sentence)
        words = _squeezed(_MARKER.sub("", bare))
        if len(words) >= _MIN_CHARACTERS and any(words in text for text in texts):
            found.append((start + first, start + first + len(bare)))
    return found


def _squeezed(text: str) -> str:
    """Text without what a quotation may have changed: white space, signs that were escaped, and
    brackets that would have passed for markers."""
    return "".join(without_markers_of_its_own(_ESCAPED.sub(r"\1", text)).split())


def _without(content: str, spans: Sequence[tuple[int, int]]) -> str:
    for start, end in reversed(spans):
        content = content[:start] + ERASED + content[end:]
    return content


def _moved(support: SentenceSupport, spans: Sequence[tuple[int, int]]) -> SentenceSupport:
    return SentenceSupport(
        _place(support.start, spans),
        _place(support.end, spans),
        support.markers,
        support.is_supported,
        support.likeness,
    )


def _place(place: int, spans: Sequence[tuple[int, int]]) -> int:
    """Where a place of the text is after the spans were taken out."""
    moved = place
    for start, end in spans:
        if place >= end:
            moved += len(ERASED) - (end - start)
        elif place > start:
            moved += len(ERASED) - (place - start)
    return moved
