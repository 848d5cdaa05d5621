"""A chat model with scripted replies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from portal.domain.answering import ChatEvent, ChatRequest, TextDelta

Step = ChatEvent | str | Exception


class ScriptedChatModel:
    """A chat model that plays one script per request, in order, and repeats the last one. Text
    becomes a TextDelta, an exception is raised. `requests` are those it received; `closed` counts
    streams that the reader closed before their end."""

    provider = "scripted"
    model = "scripted"
    only_quotes = False
    takes_tools = False

    def __init__(self, *scripts: Sequence[Step]) -> None:
        self._scripts = list(scripts)
        self.requests: list[ChatRequest] = []
        self.closed = 0

    def stream(self, request: ChatRequest) -> Iterator[ChatEvent]:
        self.requests.append(request)
        place = min(len(self.requests), len(self._scripts)) - 1
        return self._play(self._scripts[place])

    def _play(self, script: Iterable[Step]) -> Iterator[ChatEvent]:
        try:
            for step in script:
                if isinstance(step, Exception):
                    raise step
                yield TextDelta(step) if isinstance(step, str) else step
        except GeneratorExit:
            self.closed += 1
            raise
