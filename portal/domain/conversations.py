"""Conversations, messages and citations."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from portal.domain.answering import MarkedText, SentenceSupport
from portal.domain.documents.selection import NamedScope
from portal.domain.documents.structure import LaidOutText
from portal.domain.search import SearchMode, Span

MAX_TITLE_CHARACTERS = 200
MAX_MESSAGE_CHARACTERS = 4096


class Role(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"


class MessageStatus(StrEnum):
    """`stopped` by the reader, or because the process ended; `abstained` without an answer in the
    documents; `unavailable` if the chat model failed: quotations or the hits are shown instead."""

    STREAMING = "streaming"
    DONE = "done"
    STOPPED = "stopped"
    ABSTAINED = "abstained"
    UNAVAILABLE = "unavailable"


class Feedback(StrEnum):
    USEFUL = "useful"
    NOT_USEFUL = "not_useful"


class FeedbackReason(StrEnum):
    """The reason why an answer was not useful."""

    WRONG = "wrong"
    INCOMPLETE = "incomplete"
    OUTDATED = "outdated"
    BAD_SOURCE = "bad_source"


class SourceState(StrEnum):
    """The current state of a cited document: unchanged, with a newer text, in the trash, or gone
    (purged, or no longer visible to this reader)."""

    CURRENT = "current"
    REPLACED = "replaced"
    TRASHED = "trashed"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class ConversationSummary:
    id: UUID
    title: str
    created_at: datetime
    updated_at: datetime
    message_count: int = 0
    is_pinned: bool = False


@dataclass(frozen=True, slots=True)
class Citation:
    """A source of an answer, as it was then. `excerpt` is characters `char_start` to `char_end` of
    revision `revision_id`, or, without a revision, of a chunk added through the API; `quote_sha256`
    is its hash. `was_cited` if a marker names it, otherwise it was only consulted. `page_label` is
    the label printed on the page, if that is not its number. `can_open` if this reader may open the
    document, `can_restore` if it is in a trash that this reader sees. A purged source has no
    excerpt; `gone_at` is when it was purged."""

    id: UUID
    marker: int
    document_id: UUID | None
    revision_id: UUID | None
    chunk_id: UUID | None
    title: str
    excerpt: str
    quote_sha256: str
    char_start: int
    char_end: int
    page: int | None
    page_label: str | None
    heading: str | None
    score: float
    vector_score: float | None
    text_score: float
    confidence: float
    low_confidence: bool
    source: SearchMode
    was_cited: bool
    state: SourceState
    can_open: bool
    can_restore: bool
    cited_at: datetime
    gone_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class CitedIn:
    """A citation with the conversation that it is in."""

    citation: Citation
    conversation_id: UUID
    conversation_title: str


@dataclass(frozen=True, slots=True)
class Replay:
    """The input of an answer. `selection_hash` is SHA-256 over the sorted ids of the enabled
    documents; `search_query` is the query searched for, which in a follow-up differs from the
    question; `further_queries` are those that the model asked for. `scope` is that of the question,
    else of its conversation; None for all documents."""

    selection_hash: str
    enabled_count: int
    document_count: int
    search_query: str
    further_queries: tuple[str, ...]
    search_method: str
    degraded: tuple[str, ...]
    embedding_model: str | None
    chat_provider: str
    chat_model: str
    context_tokens: int
    scope: dict[str, list[str]] | None = None
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Message:
    """`content` is Markdown in which ``[n]`` stands for citation n; `support` has its sentences. A
    question with a `scope` is only about that scope."""

    id: UUID
    conversation_id: UUID
    role: Role
    content: str
    status: MessageStatus
    created_at: datetime
    citations: tuple[Citation, ...] = ()
    support: tuple[SentenceSupport, ...] = ()
    replay: Replay | None = None
    feedback: Feedback | None = None
    feedback_reason: FeedbackReason | None = None
    scope: NamedScope | None = None

    @property
    def quotes_instead(self) -> bool:
        """Return whether an answer quotes the documents because the language model failed."""
        # Only quotations have an outcome.
        has_outcome = self.replay is not None and self.replay.extra.get("outcome") is not None
        return self.status is MessageStatus.UNAVAILABLE and has_outcome


@dataclass(frozen=True, slots=True)
class Reader:
    """A user with whom a conversation is shared."""

    id: UUID
    name: str


@dataclass(frozen=True, slots=True)
class SharedConversation:
    """A conversation that another user shares."""

    id: UUID
    title: str
    owner_name: str


class Withheld(StrEnum):
    """Why an answer is withheld: a source that it relies on is hidden from the reader, or in the
    trash."""

    HIDDEN = "hidden"
    TRASHED = "trashed"


@dataclass(frozen=True, slots=True)
class SharedMessage:
    """A message as a reader sees it, with only the sources that they may see. If its text relies on
    others, the text and all sources are left out."""

    message: Message
    withheld: Withheld | None = None

    @property
    def is_withheld(self) -> bool:
        return self.withheld is not None


@dataclass(frozen=True, slots=True)
class Verification:
    """Whether quoted words are still in their source; `stands` is None if the source was purged."""

    citation_id: UUID
    stands: bool | None
    quote_sha256: str
    found_sha256: str | None


@dataclass(frozen=True, slots=True)
class QuotedText:
    """A quotation, `span`, with its surroundings in the revision that it was taken from.
    `starts_text` and `ends_text` are true if the whole text begins or ends there."""

    citation: Citation
    text: LaidOutText
    span: Span
    starts_text: bool
    ends_text: bool


@dataclass(frozen=True, slots=True)
class AnswerBegun:
    """The question and its answer are stored, and the model is being asked. `search_query` differs
    from the question in a follow-up."""

    question: Message
    answer_id: UUID
    search_query: str
    source_count: int


@dataclass(frozen=True, slots=True)
class SearchedAgain:
    """The model asked for another search."""

    query: str
    source_count: int


@dataclass(frozen=True, slots=True)
class TextWritten:
    """More text of the answer."""

    pieces: tuple[MarkedText, ...]


@dataclass(frozen=True, slots=True)
class TextDiscarded:
    """The text so far does not count: the model failed, and quotations follow instead."""


@dataclass(frozen=True, slots=True)
class AnswerPending:
    """No news, sent so that a disconnected reader is noticed."""


@dataclass(frozen=True, slots=True)
class AnswerFinished:
    """The stored answer, complete or not; always the last event."""

    answer: Message


AnswerEvent = (
    AnswerBegun | SearchedAgain | TextWritten | TextDiscarded | AnswerPending | AnswerFinished
)
