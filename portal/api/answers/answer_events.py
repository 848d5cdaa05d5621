"""An answer as server-sent events: ``start``, ``search``, ``delta``, ``discard``, ``citations``,
and finally ``done`` or ``error``."""

from __future__ import annotations

from collections.abc import Iterator

from flask import Response

from portal.api.answers.conversation_schemas import message_model
from portal.domain.conversations import (
    AnswerBegun,
    AnswerEvent,
    AnswerFinished,
    Message,
    MessageStatus,
    SearchedAgain,
    TextDiscarded,
    TextWritten,
)
from portal.errors import PortalError
from portal.http.messages import error_message
from portal.http.responses.event_streams import NOTHING_NEW, encode, respond
from portal.services.answers.streaming import AnswerStream


def last_message(stream: AnswerStream) -> Message:
    """Consume the stream and return the complete answer. Raises PortalError if there is none."""
    for event in stream:
        if isinstance(event, AnswerFinished):
            return event.answer
    raise PortalError


def event_stream(stream: AnswerStream) -> Response:
    """Return the answer as it is written; it is stopped if the client disconnects."""
    return respond(stream, write=_lines, fail=_failure)


def _failure(error: PortalError) -> str:
    return encode("error", {"code": error.code, "message": error_message(error)})


def _lines(event: AnswerEvent) -> Iterator[str]:
    if isinstance(event, AnswerBegun):
        yield encode(
            "start",
            {
                "id": str(event.answer_id),
                "question_id": str(event.question.id),
                "search_query": event.search_query,
                "source_count": event.source_count,
            },
        )
    elif isinstance(event, SearchedAgain):
        yield encode("search", {"query": event.query, "source_count": event.source_count})
    elif isinstance(event, TextWritten):
        for piece in event.pieces:
            marker = {} if piece.marker is None else {"marker": piece.marker}
            yield encode("delta", {"text": piece.text} | marker)
    elif isinstance(event, TextDiscarded):
        yield encode("discard", {})
    elif isinstance(event, AnswerFinished):
        yield from _end(event.answer)
    else:
        yield NOTHING_NEW


def _end(answer: Message) -> Iterator[str]:
    """Yield the citations, then `done` or `error` as the last event."""
    body = message_model(answer).model_dump(mode="json")
    yield encode("citations", {name: body[name] for name in ("citations", "consulted")})
    if answer.status is MessageStatus.UNAVAILABLE:
        yield encode("error", (body["error"] or {}) | {"answer": body})
    else:
        yield encode("done", body)
