"""Input and output of chat models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol
from uuid import UUID

from portal.domain.documents.structure import Block
from portal.domain.search import SearchMode


@dataclass(frozen=True, slots=True)
class Source:
    """A chunk that an answer may cite. `text` is characters `char_start` to `char_end` of revision
    `revision_id`; chunks added through the API have no revision, and their range is that of their
    own text. The scores of a chunk that was not searched for are the defaults."""

    document_id: UUID
    revision_id: UUID | None
    chunk_id: UUID
    title: str
    media_type: str
    text: str
    char_start: int
    char_end: int
    language: str
    page: int | None = None
    heading: str | None = None
    number: int = 0
    """Its number among the answer's sources, from 1, as the model sees it; readers see numbers in
    order of first use."""
    score: float = 1.0
    vector_score: float | None = None
    text_score: float = 0.0
    confidence: float = 1.0
    low_confidence: bool = False
    found_by: SearchMode = SearchMode.HYBRID
    page_label: str | None = None
    heading_starts: frozenset[int] = frozenset()
    """The offsets of lines of `text` that are headings; empty if none is known."""
    context: str | None = None
    """Caption and header of the table that `text` begins in, one per line."""
    blocks: tuple[Block, ...] = ()
    """The blocks of `text`, headings included, with offsets from its beginning."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of the conversation as the model sees it."""

    role: str
    content: str


class Outcome(StrEnum):
    """The outcome of an answer by quotation. `on_topic`: the documents are about the subject but do
    not say what was asked. `reply`: the message was not a question about the documents."""

    QUOTED = "quoted"
    ON_TOPIC = "on_topic"
    NOTHING = "nothing"
    REPLY = "reply"


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A request to a chat model. `system` holds the instructions and the chunks as data; `sources`
    are the same chunks for a provider that needs no prompt; `turns` end with the question;
    `language` is the question's, `zh` or `en`. With `can_search` the model may ask for another
    search. `reply` is the portal's own reply to a message that is not about the documents; with
    `is_outline` the sources are from one document, whose outline goes above the reply, if there is
    one, and with `is_more` they are those that the last answer quotes from. `search_across`
    searches the other language, for a provider that finds no answer in the sources."""

    system: str
    turns: Sequence[Turn]
    question: str
    language: str
    sources: Sequence[Source]
    can_search: bool = False
    reply: str | None = None
    is_outline: bool = False
    is_more: bool = False
    tool_turns: Sequence[dict[str, Any]] = ()
    search_across: Callable[[], Sequence[Source]] | None = None


@dataclass(frozen=True, slots=True)
class Quoted:
    """From here on, `number` cites characters `start` to `end` of `source`. `confidence` is the
    probability that all quotations for the same part of the question together answer it."""

    number: int
    source: Source
    start: int
    end: int
    confidence: float = 1.0


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More text of the answer; `quoted` if it is a quotation with a known place."""

    text: str
    quoted: Quoted | None = None


@dataclass(frozen=True, slots=True)
class SearchCall:
    """A request of the model for another search."""

    call_id: str
    query: str


@dataclass(frozen=True, slots=True)
class Abstained:
    """The provider found no answer in the sources, as `text` says. With an `outcome`, `about` are
    the places that are at least on topic; without one, any source may be."""

    text: str
    outcome: Outcome | None = None
    about: tuple[Quoted, ...] = ()


@dataclass(frozen=True, slots=True)
class Truncated:
    """The answer ends here because it has reached the limit of its length."""


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """No news, sent so that a disconnected reader is noticed."""


ChatEvent = TextDelta | SearchCall | Abstained | Truncated | Heartbeat


class ChatModel(Protocol):
    """A provider of answers."""

    @property
    def provider(self) -> str: ...

    @property
    def model(self) -> str: ...

    @property
    def only_quotes(self) -> bool:
        """Return whether it only quotes its sources, and reads no prompt and no earlier answers."""
        ...

    @property
    def takes_tools(self) -> bool:
        """Return whether the model may ask for another search."""
        ...

    def stream(self, request: ChatRequest) -> Iterator[ChatEvent]:
        """Yield the answer in pieces as they arrive; closing the iterator ends the request at once.
        Raises ChatUnavailable."""
        ...


@dataclass(frozen=True, slots=True)
class MarkedText:
    """A piece of an answer; for a marker ``[n]``, `marker` is the number shown."""

    text: str
    marker: int | None = None


@dataclass(frozen=True, slots=True)
class SentenceSupport:
    """Characters `start` to `end` of an answer are one sentence, which cites `markers`.
    `is_supported` is None where nothing is claimed: a greeting, a heading, code."""

    start: int
    end: int
    markers: tuple[int, ...] = ()
    is_supported: bool | None = None
    likeness: float | None = None

    def as_json(self) -> list[Any]:
        """Return the JSON that `from_json` reads."""
        return [self.start, self.end, list(self.markers), self.is_supported, self.likeness]

    @classmethod
    def from_json(cls, stored: Sequence[Any]) -> SentenceSupport:
        start, end, markers, is_supported, likeness = stored
        return cls(start, end, tuple(markers), is_supported, likeness)
