"""An answer as server-sent events: ``delta``, ``citations``, ``done``, ``error``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import structlog
from flask import Response, stream_with_context

from portal.domain.answering import MarkedText
from portal.domain.conversations import (
    AnswerEvent,
    Began,
    Finished,
    Message,
    MessageStatus,
    SearchedAgain,
    Wrote,
)
from portal.errors import PortalError
from portal.phrases import error_message
from portal.services.answer_stream import AnswerStream

log = structlog.get_logger(__name__)

# A comment: it reaches a reader who is there, and tells us of one who is not.
_NOTHING_NEW = ": waiting\n\n"

ToBody = Callable[[Message], dict[str, Any]]


def last_message(stream: AnswerStream) -> Message:
    """The answer when it is whole."""
    for event in stream:
        if isinstance(event, Finished):
            return event.answer
    raise PortalError


def event_stream(stream: AnswerStream, to_body: ToBody) -> Response:
    """The answer as it comes; a reader who leaves stops it."""
    response = Response(stream_with_context(_lines(stream, to_body)), mimetype="text/event-stream")
    response.headers["Cache-Control"] = "no-store"
    # Proxies that gather an answer before they pass it on would defeat the purpose.
    response.headers["X-Accel-Buffering"] = "no"
    response.call_on_close(stream.close)
    return response


def _lines(stream: AnswerStream, to_body: ToBody) -> Iterator[str]:
    try:
        for event in stream:
            yield from _line(event, to_body)
    except PortalError as error:
        yield _event("error", {"code": error.code, "message": error_message(error)})
    except Exception as error:
        log.error("answer_failed", error_type=type(error).__name__, exc_info=error)
        unforeseen = PortalError()
        yield _event("error", {"code": unforeseen.code, "message": error_message(unforeseen)})


def _line(event: AnswerEvent, to_body: ToBody) -> Iterator[str]:
    if isinstance(event, Began):
        yield _event(
            "start",
            {
                "id": str(event.answer_id),
                "question_id": str(event.question.id),
                "search_query": event.search_query,
                "source_count": event.source_count,
            },
        )
    elif isinstance(event, SearchedAgain):
        yield _event("search", {"query": event.query, "source_count": event.source_count})
    elif isinstance(event, Wrote):
        for piece in event.pieces:
            yield _event("delta", _delta(piece))
    elif isinstance(event, Finished):
        yield from _end(to_body(event.answer), event.answer.status)
    else:
        yield _NOTHING_NEW


def _delta(piece: MarkedText) -> dict[str, Any]:
    return {"text": piece.text} | ({"marker": piece.marker} if piece.marker is not None else {})


def _end(body: dict[str, Any], status: MessageStatus) -> Iterator[str]:
    """Sources always, then either `done` or `error`, which is the last event."""
    yield _event("citations", {name: body[name] for name in ("citations", "consulted")})
    if status is MessageStatus.UNAVAILABLE:
        yield _event("error", (body["error"] or {}) | {"answer": body})
    else:
        yield _event("done", body)


def _event(name: str, data: dict[str, Any]) -> str:
    return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n"
