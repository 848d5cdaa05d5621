"""The events of the chat model, with one type of error."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import structlog

from portal.domain.answering import ChatRequest
from portal.errors import ChatUnavailable
from portal.services import Services

log = structlog.get_logger(__name__)


def chat_events(services: Services, request: ChatRequest) -> Generator[Any, None, None]:
    """Yield the model's events, with any error translated to ChatUnavailable."""
    try:
        yield from services.chat.stream(request)
    except ChatUnavailable:
        raise
    except Exception as error:
        log.error("chat_model_failed", error_type=type(error).__name__, exc_info=error)
        raise ChatUnavailable(
            "its endpoint failed (%(error)s)", error=type(error).__name__
        ) from error
