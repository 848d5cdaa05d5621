"""Serve conversations: create them, ask questions, and check citations."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask import Response

from portal.api.answers import answer_events
from portal.api.answers import conversation_schemas as schemas
from portal.api.blueprint import ApiBlueprint
from portal.api.schemas import file_response_doc, read_scope
from portal.domain.documents import MediaType
from portal.http import context
from portal.http.responses.downloads import conversation_file
from portal.services.answers import answering, citing, conversations
from portal.services.answers.streaming import AnswerStream

TAG = {
    "name": "Conversations",
    "description": "Ask questions, and get answers whose citations open the quoted words.",
}

blueprint = ApiBlueprint("conversations_api", __name__, url_prefix="/api", tag=TAG)

_ANSWERS = (
    "With `stream`, server-sent events: `start`, then `delta` (`text`, and `marker` if it "
    "refers to citation n), `search` if the model searched again, `discard` if the text so far "
    "does not count, because the model failed and quotations follow, `citations`, and finally "
    "`done` with the answer or `error`. Closing the connection stops the answer. If the model "
    "fails, `status` is `unavailable`, `error` says why, `content` quotes the documents if they "
    "answer, and `consulted` contains the passages found."
)
_EVENTS: Any = {
    "200": {
        "description": "the answer, or its events",
        "content": {
            "text/event-stream": {
                "schema": {  # Of each event.
                    "type": "object",
                    "required": ["event", "data"],
                    "properties": {
                        "event": {
                            "enum": [
                                "start",
                                "search",
                                "delta",
                                "discard",
                                "citations",
                                "done",
                                "error",
                            ]
                        },
                        "data": {"type": "string", "contentMediaType": "application/json"},
                    },
                },
                "example": {"event": "delta", "data": '{"text": "[1]", "marker": 1}'},
            }
        },
    }
}


@blueprint.get("/conversations")
def list_conversations(query_data: schemas.ConversationQuery) -> schemas.ConversationListResponse:
    """List your conversations."""
    page = conversations.list_conversations(
        *context.caller(), contains=query_data.q, cursor=query_data.cursor, limit=query_data.limit
    )
    return schemas.ConversationListResponse(
        conversations=[schemas.conversation_model(item) for item in page.items],
        next_cursor=page.next_cursor,
    )


@blueprint.post("/conversations", body_is_optional=True, status_code=201, errors=(404,))
def create_conversation(json_data: schemas.ConversationBody) -> schemas.ConversationModel:
    """Create a conversation."""
    scope = read_scope(json_data.scope)
    made = conversations.create(*context.caller(), json_data.title, scope=scope)
    return schemas.conversation_model(made)


@blueprint.get("/conversations/<uuid:conversation_id>")
def get_conversation(conversation_id: UUID) -> schemas.ConversationDetailModel:
    """Get a conversation with its messages."""
    services, user = context.caller()
    summary = conversations.get(services, user, conversation_id)
    messages = conversations.messages(services, user, conversation_id)
    shown = [schemas.message_model(message) for message in messages]
    return schemas.ConversationDetailModel.of(schemas.conversation_model(summary), messages=shown)


@blueprint.patch("/conversations/<uuid:conversation_id>")
def change_conversation(
    conversation_id: UUID, json_data: schemas.ConversationChangeBody
) -> schemas.ConversationModel:
    """Rename a conversation, or pin it."""
    services, user = context.caller()
    if json_data.title is not None:
        conversations.rename(services, user, conversation_id, json_data.title)
    if json_data.pinned is not None:
        conversations.pin(services, user, conversation_id, pinned=json_data.pinned)
    return schemas.conversation_model(conversations.get(services, user, conversation_id))


@blueprint.delete("/conversations/<uuid:conversation_id>")
def delete_conversation(conversation_id: UUID) -> None:
    """Delete a conversation.

    It disappears at once and is erased an hour later; until then its owner can undo this on the
    page.
    """
    conversations.delete(*context.caller(), conversation_id)


@blueprint.get(
    "/conversations/<uuid:conversation_id>/export",
    responses=file_response_doc("the conversation as a file", "text/markdown", MediaType.DOCX),
)
def export_conversation(conversation_id: UUID, query_data: schemas.ExportQuery) -> Response:
    """Export a conversation as Markdown or for Word."""
    return conversation_file(conversation_id, query_data.format)


@blueprint.post(
    "/conversations/<uuid:conversation_id>/messages", responses=_EVENTS, description=_ANSWERS
)
def ask(conversation_id: UUID, json_data: schemas.MessageBody) -> schemas.MessageModel | Response:
    """Ask a question."""
    stream = answering.ask(
        *context.caller(),
        conversation_id,
        json_data.content,
        replace_from=json_data.replace_from,
        scope=read_scope(json_data.scope),
    )
    return _answer(stream, as_events=json_data.stream)


@blueprint.post(
    "/messages/<uuid:message_id>/retry",
    body_is_optional=True,
    responses=_EVENTS,
    description=_ANSWERS,
)
def retry(message_id: UUID, json_data: schemas.RetryBody) -> schemas.MessageModel | Response:
    """Regenerate an answer.

    Replaces this answer and everything after it.
    """
    stream = answering.retry(*context.caller(), message_id)
    return _answer(stream, as_events=json_data.stream)


def _answer(stream: AnswerStream, *, as_events: bool) -> schemas.MessageModel | Response:
    if as_events:
        return answer_events.event_stream(stream)
    return schemas.message_model(answer_events.last_message(stream))


@blueprint.post("/messages/<uuid:message_id>/stop")
def stop(message_id: UUID) -> schemas.MessageModel:
    """Stop an answer."""
    return schemas.message_model(answering.stop(*context.caller(), message_id))


@blueprint.get("/messages/<uuid:message_id>")
def get_message(message_id: UUID) -> schemas.MessageModel:
    """Get a message."""
    return schemas.message_model(conversations.get_message(*context.caller(), message_id))


@blueprint.put("/messages/<uuid:message_id>/feedback")
def set_feedback(message_id: UUID, json_data: schemas.FeedbackBody) -> schemas.MessageModel:
    """Rate an answer."""
    return schemas.message_model(
        conversations.set_feedback(
            *context.caller(), message_id, json_data.feedback, json_data.reason
        )
    )


@blueprint.get("/citations/<uuid:citation_id>")
def get_citation(citation_id: UUID) -> schemas.CitationModel:
    """Get a citation."""
    return schemas.citation_model(citing.get_citation(*context.caller(), citation_id))


@blueprint.get("/citations/<uuid:citation_id>/verify")
def verify(citation_id: UUID) -> schemas.VerificationModel:
    """Verify a quote."""
    return schemas.VerificationModel.of(citing.verify(*context.caller(), citation_id))
