"""Metrics of chat models: time to the first and the last word, and outcomes."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from contextlib import closing

from portal.domain.answering import (
    Abstained,
    ChatEvent,
    ChatModel,
    ChatRequest,
    Heartbeat,
    SearchCall,
)
from portal.observability import metrics


class MeasuredChatModel:
    """A chat model whose calls are counted and timed under its provider's name."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model

    @property
    def provider(self) -> str:
        return self._model.provider

    @property
    def model(self) -> str:
        return self._model.model

    @property
    def only_quotes(self) -> bool:
        return self._model.only_quotes

    @property
    def takes_tools(self) -> bool:
        return self._model.takes_tools

    def stream(self, request: ChatRequest) -> Iterator[ChatEvent]:
        """Yield the model's events, and raise its errors."""
        started = time.perf_counter()
        outcome, has_begun = metrics.CANCELLED, False
        try:
            with closing(_events(self._model, request)) as events:
                for event in events:
                    if not has_begun and not isinstance(event, Heartbeat):
                        has_begun = True
                        metrics.chat_began(self.provider, time.perf_counter() - started)
                    # After one of these the consumer closes the stream.
                    if isinstance(event, (Abstained, SearchCall)):
                        outcome = metrics.OK
                    yield event
            outcome = metrics.OK
        except Exception:
            outcome = metrics.ERROR
            raise
        finally:
            metrics.chat_ended(self.provider, outcome, time.perf_counter() - started)

    def close(self) -> None:
        """Close the model, if it has anything to close."""
        close = getattr(self._model, "close", None)
        if close is not None:
            close()


def _events(model: ChatModel, request: ChatRequest) -> Generator[ChatEvent, None, None]:
    # Closing this closes the model's own stream, for any type of iterator.
    yield from model.stream(request)
