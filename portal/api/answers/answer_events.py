"""Serve an answer as server-sent events: ``delta``, ``citations``, ``done``, ``error``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from flask import Response

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
from portal.http.event_streams import NOTHING_NEW, encode, respond
from portal.http.messages import error_message
from portal.services.answers.streaming import AnswerStream

ToBody = Callable[[Message], dict[str, Any]]


def last_message(stream: AnswerStream) -> Message:
    """Return the complete answer."""
    for event in stream:
        if isinstance(event, Finished):
            return event.answer
    raise PortalError


def event_stream(stream: AnswerStream, to_body: ToBody) -> Response:
    """Yield the answer as it is written; a client that disconnects stops it."""
    return respond(stream, write=lambda event: _lines(event, to_body), fail=_failure)


def _failure(error: PortalError) -> str:
    return encode("error", {"code": error.code, "message": error_message(error)})


def _lines(event: AnswerEvent, to_body: ToBody) -> Iterator[str]:
    if isinstance(event, Began):
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
    elif isinstance(event, Wrote):
        for piece in event.pieces:
            yield encode("delta", _delta(piece))
    elif isinstance(event, Finished):
        yield from _end(to_body(event.answer), event.answer.status)
    else:
        yield NOTHING_NEW


def _delta(piece: MarkedText) -> dict[str, Any]:
    return {"text": piece.text} | ({"marker": piece.marker} if piece.marker is not None else {})


def _end(body: dict[str, Any], status: MessageStatus) -> Iterator[str]:
    """Yield the citations, then `done` or `error` as the last event."""
    yield encode("citations", {name: body[name] for name in ("citations", "consulted")})
    if status is MessageStatus.UNAVAILABLE:
        yield encode("error", (body["error"] or {}) | {"answer": body})
    else:
        yield encode("done", body)
