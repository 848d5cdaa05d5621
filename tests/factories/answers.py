"""A chat model with scripted answers that records its requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from portal.domain.answering import ChatEvent, ChatRequest, TextDelta
from portal.domain.conversations import AnswerEvent, AnswerFinished, Message, QuotedText
from portal.domain.people import User
from portal.services import Services
from portal.services.answers import answering

# A text, a sequence of events and errors, or a function of the request that returns them.
Script = str | Iterable[ChatEvent | Exception | str] | Callable[[ChatRequest], Iterable[ChatEvent]]


@dataclass
class SaysWhatIsWritten:
    """A scripted chat model: each request uses the next of `scripts`, and the last is repeated."""

    scripts: list[Script]
    takes_tools: bool = False
    only_quotes: bool = False
    provider: str = "scripted"
    model: str = "scripted-1"
    requests: list[ChatRequest] = field(default_factory=list)
    open_streams: int = 0

    def stream(self, request: ChatRequest) -> Iterator[ChatEvent]:
        self.requests.append(request)
        script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
        self.open_streams += 1
        try:
            for event in _events(script, request):
                if isinstance(event, Exception):
                    raise event
                yield TextDelta(event) if isinstance(event, str) else event
        finally:
            self.open_streams -= 1


def _events(script: Script, request: ChatRequest) -> Iterable[ChatEvent | Exception | str]:
    if isinstance(script, str):
        return [script]
    return script(request) if callable(script) else script


def saying(services: Services, *scripts: Script, takes_tools: bool = False) -> Services:
    """Return the same services with a chat model that plays these scripts in turn."""
    return replace(services, chat=SaysWhatIsWritten(list(scripts), takes_tools=takes_tools))


def asked(services: Services) -> list[ChatRequest]:
    """Return the requests to the scripted model so far."""
    assert isinstance(services.chat, SaysWhatIsWritten)
    return services.chat.requests


def ask(
    services: Services, user: User, conversation_id: object, question: str, **more: object
) -> Message:
    """Ask a question and return the finished answer."""
    return answer_of(answering.ask(services, user, conversation_id, question, **more))


def answer_of(events: Iterable[AnswerEvent]) -> Message:
    *_, last = events
    assert isinstance(last, AnswerFinished)
    return last.answer


def parts_of(quoted: QuotedText) -> tuple[str, str, str]:
    """Return the text before a quotation, the quotation, and the text after it."""
    text, span = quoted.text.content, quoted.span
    return text[: span.start], text[span.start : span.end], text[span.end :]
