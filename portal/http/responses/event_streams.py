"""Answers as server-sent events."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any

import structlog
from flask import Response, stream_with_context

from portal.domain.conversations import AnswerEvent
from portal.errors import PortalError
from portal.services.answers.streaming import AnswerStream

# A comment: the browser ignores it, and sending it fails once the reader has left.
NOTHING_NEW = ": waiting\n\n"

log = structlog.get_logger(__name__)

Write = Callable[[AnswerEvent], Iterable[str]]
Fail = Callable[[PortalError], str]


def encode(name: str, values: Mapping[str, Any]) -> str:
    # JSON escapes line breaks in the values, so that the data is one line as the format requires.
    return f"event: {name}\ndata: {json.dumps(values, ensure_ascii=False)}\n\n"


def respond(stream: AnswerStream, *, write: Write, fail: Fail) -> Response:
    """Return the events of an answer as they come, encoded by `write`. An error, encoded by `fail`,
    is the last event. The stream is closed if the reader leaves."""
    lines = stream_with_context(_lines(stream, write, fail))
    response = Response(lines, mimetype="text/event-stream")
    # If the reader leaves before the first event, `_lines` never starts and closes nothing.
    response.call_on_close(stream.close)
    # Otherwise nginx would buffer the answer instead of passing on each event.
    response.headers["X-Accel-Buffering"] = "no"
    return response


def _lines(stream: AnswerStream, write: Write, fail: Fail) -> Iterator[str]:
    with closing(stream):
        try:
            for event in stream:
                yield from write(event)
        except PortalError as error:
            yield fail(error)
        except Exception as error:
            # The response has begun, so no error page can follow.
            log.exception("answer_failed", error_type=type(error).__name__)
            yield fail(PortalError())
