"""Tells how long a chat model takes to its first word and to its last, and how it ends."""

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
    def takes_tools(self) -> bool:
        return self._model.takes_tools

    def stream(self, request: ChatRequest) -> Iterator[ChatEvent]:
        """As the model's own, which says what it gives and raises."""
        started = time.perf_counter()
        outcome, has_begun = metrics.CANCELLED, False
        try:
            with closing(_events(self._model, request)) as events:
                for event in events:
                    if not has_begun and not isinstance(event, Heartbeat):
                        has_begun = True
                        metrics.chat_began(self.provider, time.perf_counter() - started)
                    # After these the reader has what it wants, and leaves.
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
        """End what the model keeps open, where it keeps anything."""
        close = getattr(self._model, "close", None)
        if close is not None:
            close()


def _events(model: ChatModel, request: ChatRequest) -> Generator[ChatEvent, None, None]:
    # Closing it closes the model's own stream, whatever kind of iterator that is.
    yield from model.stream(request)
