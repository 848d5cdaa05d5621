"""An answer as server-sent events: safe HTML, and plain text between two renderings.

==========  ======================================================================
`begun`     `html` of the question and of the empty answer, `answer` its id, `title`
            of the conversation, `use`: its time and message count
`searched`  `html`: a line for another search that the model asked for
`html`      `html` of the text so far
`text`      `text` to append to it, until the next rendering
`done`      `html` of the finished answer, `title`
`error`     `html` of a note
==========  ======================================================================
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

from flask import Response, render_template
from markupsafe import Markup

from portal.domain.answering import MarkedText
from portal.domain.conversations import (
    AnswerBegun,
    AnswerEvent,
    AnswerFinished,
    AnswerPending,
    ConversationSummary,
    Message,
    SearchedAgain,
    TextDiscarded,
    TextWritten,
)
from portal.errors import PortalError
from portal.http import context
from portal.http.messages import error_message
from portal.http.responses import event_streams
from portal.http.responses.event_streams import NOTHING_NEW, encode
from portal.services.answers import conversations
from portal.services.answers.streaming import AnswerStream
from portal.web.answers.html import to_html
from portal.web.answers.rendering import begun

# Prose is rendered at most this often; in between it is sent as plain text.
RENDER_INTERVAL_S = 0.15
# Lines that start with markup, which readers must not see: tables, quotations, lists, headings.
_MARKED_LINE = re.compile(r"\s*([|>#*+-]|\d+[.)])")
# An incomplete row, and a header whose delimiter line has not arrived yet.
_ROW = r"[> ]*\|[^\n]*"
_UNFINISHED_TABLE = re.compile(rf"(?:(?<!\|\n)(?:^|(?<=\n)){_ROW}\n(?:{_ROW})?|(?<=\n){_ROW})\Z")


def respond(stream: AnswerStream) -> Response:
    """Stream the events of an answer; the answer is closed when the reader disconnects."""
    return event_streams.respond(stream, write=_Writer().written, fail=_error)


class _Writer:
    """Encodes events as text, and keeps the answer so far."""

    def __init__(self) -> None:
        self._question: Message | None = None
        self._content = ""
        self._markers: set[int] = set()
        self._rendered_at = 0.0

    def written(self, event: AnswerEvent) -> Iterator[str]:
        if isinstance(event, TextWritten):
            yield self._wrote(event.pieces)
        elif isinstance(event, TextDiscarded):
            # What comes next is rendered as a whole, in place of the text on the page.
            self._content, self._markers, self._rendered_at = "", set(), 0.0
            yield _event("html", html="")
        elif isinstance(event, AnswerPending):
            yield NOTHING_NEW
        elif isinstance(event, AnswerBegun):
            yield self._began(event)
        elif isinstance(event, SearchedAgain):
            yield _event("searched", html=_fragment("_searched_again", query=event.query))
        else:
            yield self._render_finished(event)

    def _began(self, event: AnswerBegun) -> str:
        self._question = event.question
        content = event.question.content.strip()
        query = event.search_query if event.search_query.strip() != content else None
        values = {"message": begun(event), "question": event.question, "query": query}
        html, conversation = _fragment("_begun", **values), _conversation(event.question)
        use = render_template("fragments/conversations/_row_use.html", conversation=conversation)
        title = conversation.title
        return _event("begun", html=html, answer=str(event.answer_id), title=title, use=use)

    def _wrote(self, pieces: tuple[MarkedText, ...]) -> str:
        text = "".join(piece.text for piece in pieces)
        self._markers |= {piece.marker for piece in pieces if piece.marker is not None}
        if not text:
            return NOTHING_NEW
        self._content += text
        now = time.monotonic()
        if now - self._rendered_at < RENDER_INTERVAL_S and "\n" not in text:
            line = self._content.rpartition("\n")[2]
            return NOTHING_NEW if _MARKED_LINE.match(line) else _event("text", text=text)
        self._rendered_at = now
        content = _UNFINISHED_TABLE.sub("", self._content)
        html = to_html(content, markers=self._markers, marker_html=_pending_marker)
        return _event("html", html=html)

    def _render_finished(self, event: AnswerFinished) -> str:
        question = self._question.content if self._question else None
        html = _fragment("_answer", message=event.answer, question_text=question)
        return _event("done", html=html, title=_conversation(event.answer).title)


def _conversation(message: Message) -> ConversationSummary:
    """Return the message's conversation; its first question has set the title."""
    return conversations.get(*context.caller(), message.conversation_id)


def _pending_marker(number: int) -> Markup:
    """Render a marker whose source is not stored yet; the finished answer has a link."""
    return Markup('<span class="citation-pending">[{}]</span>').format(number)


def _fragment(name: str, **values: Any) -> str:
    return render_template(f"fragments/chat/{name}.html", is_fragment=True, **values)


def _error(error: PortalError) -> str:
    message, request_id = error_message(error), context.request_id()
    values = {"message": message, "request_id": request_id, "code": error.code}
    return _event("error", html=render_template("errors/_error.html", **values))


def _event(name: str, **values: Any) -> str:
    return encode(name, values)
