"""Chat models, one provider per file. To add one, write a file and a line in `PROVIDERS`."""

from __future__ import annotations

from collections.abc import Callable

from portal.answering.writing.measured import MeasuredChatModel
from portal.domain.answering import ChatModel
from portal.domain.embedding import Embedder
from portal.settings import ChatSettings


def _extractive(_settings: ChatSettings, embedder: Embedder | None) -> ChatModel:
    from portal.answering.quoting.extractive import ExtractiveChatModel

    return ExtractiveChatModel(embedder)


def _openai(settings: ChatSettings, _embedder: Embedder | None) -> ChatModel:
    from portal.answering.writing.openai import OpenAIChatModel

    return OpenAIChatModel(
        model=settings.model,
        api_base=settings.api_base,
        api_key=settings.api_key.get_secret_value() if settings.api_key else None,
        timeout_s=settings.timeout_s,
        first_token_timeout_s=settings.first_token_timeout_s,
        max_tokens=settings.max_tokens,
    )


PROVIDERS: dict[str, Callable[[ChatSettings, Embedder | None], ChatModel]] = {
    "extractive": _extractive,
    "openai": _openai,
}


def create_chat_model(settings: ChatSettings, embedder: Embedder | None = None) -> ChatModel:
    """Create the configured chat model without contacting its endpoint, so that the portal starts
    even if that is unreachable. The extractive model uses `embedder` if it can read statements."""
    return MeasuredChatModel(PROVIDERS[settings.provider](settings, embedder))
