"""Serve conversations: create them, ask questions, and check citations."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from apiflask import APIBlueprint
from flask import Response

from portal.api.answers import answer_events
from portal.api.answers.conversation_schemas import (
    CitationModel,
    ConversationBody,
    ConversationDetailModel,
    ConversationListResponse,
    ConversationModel,
    ConversationQuery,
    FeedbackBody,
    MessageBody,
    MessageModel,
    RenameBody,
    RetryBody,
    VerificationModel,
    citation_model,
    conversation_model,
    message_model,
)
from portal.api.optional_body import body_may_be_missing
from portal.api.schemas import file_response_doc
from portal.http import context
from portal.http.downloads import conversation_file
from portal.services.answers import answering, citing, conversations
from portal.services.answers.streaming import AnswerStream

_TAG = {
    "name": "Conversations",
    "description": "Ask, and get answers whose every citation opens the words it rests on.",
}

blueprint = APIBlueprint("conversations_api", __name__, url_prefix="/api", tag=_TAG)

_ANSWERS = (
    "With `stream` server-sent events: `start`, then `delta` (`text`, and `marker` where it names "
    "citation n), `search` when the model searched again, `citations`, and last either `done` "
    "with the answer or `error`. Closing the connection stops the answer. When the chat model "
    "does not answer, `status` is `unavailable`, `error` says why, and `consulted` has what was "
    "found."
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
                            "enum": ["start", "search", "delta", "citations", "done", "error"]
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
@blueprint.input(ConversationQuery, location="query")
@blueprint.output(ConversationListResponse)
@blueprint.doc(summary="List one's conversations")
def list_conversations(query_data: ConversationQuery) -> ConversationListResponse:
    page = conversations.list_conversations(
        *context.caller(), contains=query_data.q, cursor=query_data.cursor, limit=query_data.limit
    )
    return ConversationListResponse(
        conversations=[conversation_model(one) for one in page.items],
        next_cursor=page.next_cursor,
    )


@blueprint.post("/conversations")
@body_may_be_missing(ConversationBody)
@blueprint.input(ConversationBody, location="json")
@blueprint.output(ConversationModel, status_code=201)
@blueprint.doc(summary="Begin a conversation")
def create_conversation(json_data: ConversationBody) -> ConversationModel:
    made = conversations.create(*context.caller(), json_data.title)
    return conversation_model(made)


@blueprint.get("/conversations/<uuid:conversation_id>")
@blueprint.output(ConversationDetailModel)
@blueprint.doc(
    summary="One conversation with its messages",
)
def get_conversation(conversation_id: UUID) -> ConversationDetailModel:
    services, user = context.caller()
    summary = conversations.get(services, user, conversation_id)
    messages = conversations.messages(services, user, conversation_id)
    shown = [message_model(message) for message in messages]
    return ConversationDetailModel.of(conversation_model(summary), messages=shown)


@blueprint.patch("/conversations/<uuid:conversation_id>")
@blueprint.input(RenameBody, location="json")
@blueprint.output(ConversationModel)
@blueprint.doc(summary="Rename")
def rename_conversation(conversation_id: UUID, json_data: RenameBody) -> ConversationModel:
    renamed = conversations.rename(*context.caller(), conversation_id, json_data.title)
    return conversation_model(renamed)


@blueprint.delete("/conversations/<uuid:conversation_id>")
@blueprint.output({}, status_code=204)
@blueprint.doc(summary="Delete for good")
def delete_conversation(conversation_id: UUID) -> str:
    conversations.delete(*context.caller(), conversation_id)
    return ""


@blueprint.get("/conversations/<uuid:conversation_id>/export")
@blueprint.doc(
    summary="The conversation as Markdown, with its sources",
    responses=file_response_doc("the conversation as a file", "text/markdown"),
)
def export_conversation(conversation_id: UUID) -> Response:
    return conversation_file(conversation_id)


@blueprint.post("/conversations/<uuid:conversation_id>/messages")
@blueprint.input(MessageBody, location="json")
@blueprint.doc(
    summary="Ask",
    description=_ANSWERS,
    responses=_EVENTS,
)
@blueprint.output(MessageModel)
def ask(conversation_id: UUID, json_data: MessageBody) -> MessageModel | Response:
    stream = answering.ask(
        *context.caller(), conversation_id, json_data.content, replace_from=json_data.replace_from
    )
    return _answer(stream, as_events=json_data.stream)


@blueprint.post("/messages/<uuid:message_id>/retry")
@body_may_be_missing(RetryBody)
@blueprint.input(RetryBody, location="json")
@blueprint.doc(
    summary="Answer the same question again",
    description=f"Instead of this answer and all that follows it. {_ANSWERS}",
    responses=_EVENTS,
)
@blueprint.output(MessageModel)
def retry(message_id: UUID, json_data: RetryBody) -> MessageModel | Response:
    stream = answering.retry(*context.caller(), message_id)
    return _answer(stream, as_events=json_data.stream)


def _answer(stream: AnswerStream, *, as_events: bool) -> MessageModel | Response:
    if as_events:
        return answer_events.event_stream(stream)
    return message_model(answer_events.last_message(stream))


@blueprint.post("/messages/<uuid:message_id>/stop")
@blueprint.output(MessageModel)
@blueprint.doc(
    summary="Stop an answer that is being written",
)
def stop(message_id: UUID) -> MessageModel:
    return message_model(answering.stop(*context.caller(), message_id))


@blueprint.get("/messages/<uuid:message_id>")
@blueprint.output(MessageModel)
@blueprint.doc(
    summary="One message, and what it was made from",
)
def get_message(message_id: UUID) -> MessageModel:
    return message_model(conversations.get_message(*context.caller(), message_id))


@blueprint.put("/messages/<uuid:message_id>/feedback")
@blueprint.input(FeedbackBody, location="json")
@blueprint.output(MessageModel)
@blueprint.doc(
    summary="Say whether an answer was useful",
)
def set_feedback(message_id: UUID, json_data: FeedbackBody) -> MessageModel:
    return message_model(
        conversations.set_feedback(
            *context.caller(), message_id, json_data.feedback, json_data.reason
        )
    )


@blueprint.get("/citations/<uuid:citation_id>")
@blueprint.output(CitationModel)
@blueprint.doc(summary="One citation")
def get_citation(citation_id: UUID) -> CitationModel:
    return citation_model(citing.get_citation(*context.caller(), citation_id))


@blueprint.get("/citations/<uuid:citation_id>/verify")
@blueprint.output(VerificationModel)
@blueprint.doc(
    summary="Whether the quoted words still stand in the stored revision",
)
def verify(citation_id: UUID) -> VerificationModel:
    return VerificationModel.of(citing.verify(*context.caller(), citation_id))
