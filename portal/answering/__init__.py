"""What writes answers, one provider a file. A new one is a file and a line in `PROVIDERS`."""

from __future__ import annotations

from collections.abc import Callable

from portal.answering.measured import MeasuredChatModel
from portal.domain.answering import ChatModel
from portal.settings import ChatSettings


def _extractive(_settings: ChatSettings) -> ChatModel:
    from portal.answering.extractive import ExtractiveChatModel

    return ExtractiveChatModel()


def _openai(settings: ChatSettings) -> ChatModel:
    from portal.answering.openai import OpenAIChatModel

    return OpenAIChatModel(
        model=settings.model,
        api_base=settings.api_base,
        api_key=settings.api_key.get_secret_value() if settings.api_key else None,
        timeout_s=settings.timeout_s,
        first_token_timeout_s=settings.first_token_timeout_s,
        max_tokens=settings.max_tokens,
    )


PROVIDERS: dict[str, Callable[[ChatSettings], ChatModel]] = {
    "extractive": _extractive,
    "openai": _openai,
}


def create_chat_model(settings: ChatSettings) -> ChatModel:
    """The model that the settings name. Nobody is asked yet, so an endpoint that is down stops no
    process from starting."""
    return MeasuredChatModel(PROVIDERS[settings.provider](settings))
