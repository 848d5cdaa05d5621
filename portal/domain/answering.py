"""Answers from chunks: what a chat model is given, and what it gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol
from uuid import UUID

from portal.domain.search import SearchMode
from portal.domain.structure import Block


@dataclass(frozen=True, slots=True)
class Source:
    """A chunk that an answer may cite. `number` is its place in the register of the answer,
    from 1, as the model sees it; what a reader sees follows first use. `text` are characters
    `char_start` to `char_end` of revision `revision_id`; chunks that a program added have none,
    and are characters 0 to their end of themselves."""

    number: int
    document_id: UUID
    revision_id: UUID | None
    chunk_id: UUID
    title: str
    media_type: str
    text: str
    char_start: int
    char_end: int
    language: str
    page: int | None
    heading: str | None
    score: float
    vector_score: float | None
    text_score: float
    confidence: float
    low_confidence: bool
    found_by: SearchMode
    page_label: str | None = None
    heading_starts: frozenset[int] = frozenset()
    """Where the lines of `text` begin that are headings; empty where none is known."""
    context: str | None = None
    """Caption and header of the table that `text` begins within, one a line."""
    blocks: tuple[Block, ...] = ()
    """What `text` is made of, headings included, counted from its beginning."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of the conversation as the model sees it."""

    role: str
    content: str


class Outcome(StrEnum):
    """How an answer by quotation ends: `quoted`; `on_topic` when passages are about the subject but
    do not say what was asked; `nothing`; `reply` when nothing was asked of the documents."""

    QUOTED = "quoted"
    ON_TOPIC = "on_topic"
    NOTHING = "nothing"
    REPLY = "reply"


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """What a chat model is asked. `system` holds the instructions and the chunks as data;
    `sources` are the same chunks for a provider that needs no prompt; `turns` end with the
    question; `language` is the question's, `zh` or `en`. With `can_search` the model may ask
    for another search. `reply` is what the portal itself says to a message that asks nothing of
    the documents; with `is_outline` the sources are one document's, to be outlined."""

    system: str
    turns: Sequence[Turn]
    question: str
    language: str
    sources: Sequence[Source]
    can_search: bool = False
    reply: str | None = None
    is_outline: bool = False
    tool_turns: Sequence[dict[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class Quoted:
    """From here on the number `number` cites characters `start` to `end` of `source`, which answer
    with a chance of `confidence`."""

    number: int
    source: Source
    start: int
    end: int
    confidence: float = 1.0


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More of the answer; `quoted` when it is a quotation whose place is known."""

    text: str
    quoted: Quoted | None = None


@dataclass(frozen=True, slots=True)
class SearchCall:
    """The model wants to look for something else."""

    call_id: str
    query: str


@dataclass(frozen=True, slots=True)
class Abstained:
    """The provider has no answer in these sources; `text` says so. With an `outcome`, `about` are
    the numbers of the sources that are at least about it; without one all of them may be."""

    text: str
    outcome: Outcome | None = None
    about: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Nothing new yet: a moment to notice that the reader has left."""


ChatEvent = TextDelta | SearchCall | Abstained | Heartbeat


class ChatModel(Protocol):
    """What writes answers."""

    @property
    def provider(self) -> str: ...

    @property
    def model(self) -> str: ...

    @property
    def takes_tools(self) -> bool:
        """Return whether the model may ask for another search."""
        ...

    def stream(self, request: ChatRequest) -> Iterator[ChatEvent]:
        """Yield the answer in pieces, as they come; closing the iterator ends the request at once.
        Raises ChatUnavailable."""
        ...


@dataclass(frozen=True, slots=True)
class MarkedText:
    """Characters of an answer. `marker` is the number shown when this piece is a marker, whose
    text is then ``[n]``."""

    text: str
    marker: int | None = None


@dataclass(frozen=True, slots=True)
class SentenceSupport:
    """Characters `start` to `end` of an answer are one sentence, which cites `markers`.
    `is_supported` is None where nothing was claimed: a greeting, a heading, code."""

    start: int
    end: int
    markers: tuple[int, ...] = ()
    is_supported: bool | None = None
    likeness: float | None = field(default=None)
