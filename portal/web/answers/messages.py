"""Questions and answers: ask, stop, retry, edit and ask again, give feedback, replay."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask import render_template, request, url_for
from flask_babel import gettext
from werkzeug.wrappers import Response

from portal.domain.conversations import Feedback, FeedbackReason, Message, Role, Verification
from portal.errors import MalformedRequest, NotFound, NotSignedIn, PortalError, verbatim
from portal.http import context
from portal.http.messages import error_message
from portal.services.answers import answering, citing, conversations
from portal.services.answers.streaming import AnswerStream
from portal.web.answers import about, chat, streaming
from portal.web.blueprint import PageBlueprint
from portal.web.layout import Answer, see_other, wants_fragment

blueprint = PageBlueprint("messages", __name__, "/chat/<uuid:conversation_id>/messages")


@blueprint.post("")
def ask(conversation_id: UUID) -> Answer:
    """Ask a question; with `replace_from`, it replaces an earlier one and everything after it."""
    question = request.form.get("content", "")
    if about.is_changed():
        values = chat.page_values(conversation_id) | {"draft": question}
        return render_template("pages/answers/conversation.html", **values)
    replaced = _find_replaced()
    try:
        stream = answering.ask(
            *context.caller(), conversation_id, question, replace_from=replaced, scope=about.read()
        )
    except (NotSignedIn, NotFound):
        raise
    except PortalError as error:
        if wants_fragment():
            raise
        values = chat.page_values(conversation_id)
        values |= {"error": error_message(error), "draft": question}
        headers = {"Retry-After": str(error.retry_after_s)} if error.retry_after_s else {}
        return render_template("pages/answers/conversation.html", **values), error.status, headers
    return _send_answer(conversation_id, stream)


@blueprint.post("/<uuid:message_id>/retry")
def retry(conversation_id: UUID, message_id: UUID) -> Answer:
    message = _message(conversation_id, message_id)
    stream = answering.retry(*context.caller(), message.id)
    return _send_answer(conversation_id, stream)


@blueprint.post("/<uuid:message_id>/stop")
def stop(conversation_id: UUID, message_id: UUID) -> Answer:
    message = _message(conversation_id, message_id)
    stopped = answering.stop(*context.caller(), message.id)
    return _show(conversation_id, stopped)


@blueprint.get("/<uuid:message_id>")
def show(conversation_id: UUID, message_id: UUID) -> Answer:
    return _show(conversation_id, _message(conversation_id, message_id))


@blueprint.get("/<uuid:message_id>/edit")
def edit(conversation_id: UUID, message_id: UUID) -> Answer:
    """Show a form to edit a question and ask it again."""
    message = _message(conversation_id, message_id)
    if message.role is not Role.USER:
        raise NotFound
    values = {**chat.page_values(conversation_id), "message": message}
    name = "fragments/chat/_edit.html" if wants_fragment() else "pages/answers/edit_question.html"
    return render_template(name, **values)


@blueprint.post("/<uuid:message_id>/feedback")
def set_feedback(conversation_id: UUID, message_id: UUID) -> Answer:
    """Mark an answer as useful or not, and why; the same click again removes the mark."""
    message = _message(conversation_id, message_id)
    has_reason = "reason" in request.form
    name = Feedback.NOT_USEFUL if has_reason else request.form.get("feedback", "")
    if name not in set(Feedback):
        raise MalformedRequest(verbatim("feedback"))
    wanted = None if message.feedback == name and not has_reason else Feedback(name)
    changed = conversations.set_feedback(*context.caller(), message.id, wanted, _reason(message))
    if wants_fragment():
        return render_template("fragments/chat/_feedback.html", message=changed)
    return _to_message(conversation_id, message_id)


@blueprint.post("/<uuid:message_id>/branch")
def branch(conversation_id: UUID, message_id: UUID) -> Answer:
    """Continue from this answer in a new conversation."""
    message = _message(conversation_id, message_id)
    begun = conversations.branch(*context.caller(), message.id)
    address = url_for("chat.show", conversation_id=begun.id)
    return see_other(address, gettext("Copied to a new conversation. The original is unchanged."))


@blueprint.get("/<uuid:message_id>/replay")
def replay(conversation_id: UUID, message_id: UUID) -> Answer:
    """Show what an answer was made from, and whether its quotations still match."""
    message = _message(conversation_id, message_id)
    if message.replay is None:
        raise NotFound
    services, user = context.caller()
    values: dict[str, Any] = {
        "conversation": conversations.get(services, user, conversation_id),
        "message": message,
        "question_text": conversations.question_of(services, user, message),
        "verified": {source.id: _verify(source.id) for source in message.citations},
    }
    return render_template("pages/answers/replay.html", **values)


def _reason(message: Message) -> FeedbackReason | None:
    """Return the reason that was clicked; None if there is none or the answer already has it."""
    name = request.form.get("reason")
    if name is None or name == message.feedback_reason:
        return None
    if name not in set(FeedbackReason):
        raise MalformedRequest(verbatim("reason"))
    return FeedbackReason(name)


def _verify(citation_id: UUID) -> Verification | None:
    try:
        return citing.verify(*context.caller(), citation_id)
    except NotFound:
        return None


def _send_answer(conversation_id: UUID, stream: AnswerStream) -> Answer:
    """Stream events to a script; redirect other browsers to the finished answer."""
    if request.accept_mimetypes.best == "text/event-stream":
        return streaming.respond(stream)
    return _to_message(conversation_id, chat.run(stream))


def _show(conversation_id: UUID, message: Message) -> Answer:
    if not wants_fragment():
        return _to_message(conversation_id, message.id)
    question = conversations.question_of(*context.caller(), message)
    values = {"message": message, "question_text": question, "is_fragment": True}
    return render_template("fragments/chat/_message.html", **values)


def _message(conversation_id: UUID, message_id: UUID) -> Message:
    """Return a message of this conversation. Raises NotFound."""
    message = conversations.get_message(*context.caller(), message_id)
    if message.conversation_id != conversation_id:
        raise NotFound
    return message


def _to_message(conversation_id: UUID, message_id: UUID | None) -> Response:
    address = url_for("chat.show", conversation_id=conversation_id)
    return see_other(f"{address}#message-{message_id}" if message_id else address)


def _find_replaced() -> UUID | None:
    """Return the id of the question that the new one replaces. Raises MalformedRequest."""
    replaced = request.form.get("replace_from", type=UUID)
    if request.form.get("replace_from") and replaced is None:
        raise MalformedRequest(verbatim("replace_from"))
    return replaced
