"""Convert conversations, messages and citations to JSON."""

from __future__ import annotations

from typing import Any

from portal.api.answers.conversation_schemas import (
    CitationModel,
    MessageModel,
    ReplayModel,
    SupportModel,
)
from portal.domain.conversations import Citation, ConversationSummary, Message
from portal.domain.documents import Failure
from portal.http.messages import failure_message


def summary_fields(summary: ConversationSummary) -> dict[str, Any]:
    return {
        "id": summary.id,
        "title": summary.title,
        "created_at": summary.created_at,
        "updated_at": summary.updated_at,
        "message_count": summary.message_count,
        "url": f"/chat/{summary.id}",
    }


def message(of: Message) -> MessageModel:
    return MessageModel(
        id=of.id,
        conversation_id=of.conversation_id,
        role=of.role,
        content=of.content,
        status=of.status,
        created_at=of.created_at,
        citations=[citation(one) for one in of.citations if one.was_cited],
        consulted=[citation(one) for one in of.citations if not one.was_cited],
        support=[SupportModel.model_validate(one) for one in of.support],
        feedback=of.feedback,
        feedback_reason=of.feedback_reason,
        error=_failure(of),
        replay=ReplayModel.model_validate(of.replay) if of.replay else None,
    )


def message_json(of: Message) -> dict[str, Any]:
    return message(of).model_dump(mode="json")


def _failure(of: Message) -> dict[str, Any] | None:
    failure = Failure.stored(of.replay.extra.get("failure")) if of.replay else None
    return {"code": failure.code, "message": failure_message(failure)} if failure else None


def citation(of: Citation) -> CitationModel:
    values = {name: getattr(of, name) for name in CitationModel.model_fields if name != "url"}
    url = f"/documents/{of.document_id}?citation={of.id}"
    return CitationModel(**values, url=url if of.can_open else None)
