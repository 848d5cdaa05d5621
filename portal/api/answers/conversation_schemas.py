"""Bodies of the conversation API."""

from __future__ import annotations

from uuid import UUID

from pydantic import AwareDatetime, Field

from portal.api.documents.schemas.jobs import FailureModel, failure_model
from portal.api.schemas import (
    TIME_CURSOR,
    CleanText,
    PageLabel,
    RequestModel,
    ResponseModel,
    ScopeBody,
    cursor_field,
)
from portal.domain.conversations import (
    MAX_MESSAGE_CHARACTERS,
    MAX_TITLE_CHARACTERS,
    Citation,
    ConversationSummary,
    Feedback,
    FeedbackReason,
    Message,
    MessageStatus,
    Role,
    SourceState,
)
from portal.domain.documents import Failure
from portal.domain.search import SearchMode
from portal.services.answers.exporting import ExportFormat


class ConversationBody(RequestModel):
    title: CleanText = Field(
        "", max_length=MAX_TITLE_CHARACTERS, description="default: made from the first question"
    )
    scope: ScopeBody | None = Field(
        None,
        description="switch these on in the conversation and everything else off; default: "
        "everything on",
    )


class ConversationChangeBody(RequestModel):
    """Omitted fields are left unchanged."""

    title: CleanText | None = Field(None, min_length=1, max_length=MAX_TITLE_CHARACTERS)
    pinned: bool | None = Field(None, description="pinned to the top of the list")


class ConversationQuery(RequestModel):
    q: CleanText = Field("", max_length=200, description="words in a title or a message")
    cursor: str | None = cursor_field(TIME_CURSOR, max_length=2000)
    limit: int = Field(50, ge=1, le=200, description="conversations per page")


class ExportQuery(RequestModel):
    format: ExportFormat = Field(ExportFormat.MARKDOWN, description="Markdown, or DOCX for Word")


class MessageBody(RequestModel):
    content: CleanText = Field(
        min_length=1, max_length=MAX_MESSAGE_CHARACTERS, examples=["年假有多少天？"]
    )
    stream: bool = Field(False, description="answer as server-sent events")
    replace_from: UUID | None = Field(
        None, description="replace this question and everything after it"
    )
    scope: ScopeBody | None = Field(
        None,
        description="limit this question to these, among what is switched on; default: as "
        "in the conversation",
    )


class RetryBody(RequestModel):
    stream: bool = Field(False, description="answer as server-sent events")


class FeedbackBody(RequestModel):
    feedback: Feedback | None = Field(description="null withdraws the rating")
    reason: FeedbackReason | None = Field(None, description="why an answer is not useful")


class CitationModel(ResponseModel):
    id: UUID
    marker: int = Field(description="the number n of [n] in the answer")
    document_id: UUID | None = Field(description="null if the document was purged")
    revision_id: UUID | None
    chunk_id: UUID | None
    title: str
    excerpt: str = Field(description="the quoted words; empty if the document was purged")
    char_start: int = Field(
        description="position in the text of the revision; without a revision_id, in the "
        "passage added by a program"
    )
    char_end: int
    page: int | None
    page_label: PageLabel
    heading: str | None
    score: float
    vector_score: float | None
    text_score: float
    confidence: float
    low_confidence: bool
    source: SearchMode
    state: SourceState = Field(description="what has happened to the document since then")
    url: str | None = Field(
        description="address of the document at the quoted words; null if it cannot be opened"
    )
    quote_sha256: str


class SupportModel(ResponseModel):
    start: int = Field(
        description="range of the sentence, in characters of the content", examples=[0]
    )
    end: int = Field(examples=[12])
    markers: list[int]
    is_supported: bool | None = Field(
        description="null if the sentence makes no claim", examples=[True]
    )


class ReplayModel(ResponseModel):
    selection_hash: str = Field(
        description="SHA-256 of the sorted ids of the enabled documents, one per line"
    )
    enabled_count: int
    document_count: int
    search_query: str = Field(
        description="what was searched for in addition to the question", examples=["年假有多少天？"]
    )
    further_queries: list[str] = Field(description="queries chosen by the model", examples=[[]])
    search_method: str = Field(examples=["hybrid"])
    degraded: list[str] = Field(
        description="what the search or the answer lacks, as codes", examples=[[]]
    )
    embedding_model: str | None
    chat_provider: str = Field(examples=["extractive"])
    chat_model: str = Field(examples=["extractive"])
    context_tokens: int = Field(examples=[418])
    scope: dict[str, list[str]] | None = Field(
        None,
        description="scope of the question, else of its conversation; null for everything",
        examples=[None],
    )


class MessageModel(ResponseModel):
    id: UUID
    conversation_id: UUID
    role: Role = Field(examples=[Role.ASSISTANT])
    content: str = Field(description="Markdown; [n] outside code refers to citation n")
    status: MessageStatus = Field(examples=[MessageStatus.DONE])
    created_at: AwareDatetime
    citations: list[CitationModel] = Field(description="citations of the answer")
    consulted: list[CitationModel] = Field(
        description="passages given to the model but not cited", examples=[[]]
    )
    support: list[SupportModel] = Field(description="support for each sentence by its citations")
    feedback: Feedback | None = Field(examples=[None])
    feedback_reason: FeedbackReason | None = Field(examples=[None])
    error: FailureModel | None = Field(
        None, description="why there is no answer, or only an incomplete one", examples=[None]
    )
    replay: ReplayModel | None = Field(None, description="what the answer was based on")


class ConversationModel(ResponseModel):
    id: UUID
    title: str
    created_at: AwareDatetime
    updated_at: AwareDatetime
    message_count: int
    pinned: bool
    url: str


class ConversationDetailModel(ConversationModel):
    messages: list[MessageModel]


class ConversationListResponse(ResponseModel):
    conversations: list[ConversationModel]
    next_cursor: str | None = Field(description="null on the last page", examples=[None])


class VerificationModel(ResponseModel):
    citation_id: UUID
    stands: bool | None = Field(description="null if the revision was purged", examples=[True])
    quote_sha256: str
    found_sha256: str | None = Field(description="hash of the words in the stored revision")


def conversation_model(summary: ConversationSummary) -> ConversationModel:
    return ConversationModel.of(summary, pinned=summary.is_pinned, url=f"/chat/{summary.id}")


def message_model(message: Message) -> MessageModel:
    failure = Failure.stored(message.replay.extra.get("failure")) if message.replay else None
    return MessageModel.of(
        message,
        citations=[
            citation_model(citation) for citation in message.citations if citation.was_cited
        ],
        consulted=[
            citation_model(citation) for citation in message.citations if not citation.was_cited
        ],
        error=failure_model(failure),
    )


def citation_model(citation: Citation) -> CitationModel:
    url = f"/documents/{citation.document_id}?citation={citation.id}"
    return CitationModel.of(citation, url=url if citation.can_open else None)
