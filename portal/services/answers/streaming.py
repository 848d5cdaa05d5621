"""Write an answer: store the model's text and pass it on to the reader.

No transaction is open while the model writes. The text is stored about once a second, which is also
when a stop requested in any process takes effect.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import structlog

from portal.answering.writing import prompt
from portal.answering.writing.prompt import Prompt
from portal.domain.answering import (
    Abstained,
    ChatRequest,
    Heartbeat,
    SearchCall,
    Source,
    TextDelta,
    Truncated,
    Turn,
)
from portal.domain.conversations import (
    AnswerBegun,
    AnswerEvent,
    AnswerFinished,
    AnswerPending,
    Message,
    MessageStatus,
    Role,
    SearchedAgain,
    TextDiscarded,
    TextWritten,
)
from portal.errors import ChatUnavailable, DatabaseUnavailable, PortalError
from portal.observability import tracing
from portal.services import Services
from portal.services.answers import writers
from portal.services.answers.drafts import AnswerDraft
from portal.services.answers.model_events import chat_events
from portal.services.answers.retrieving import (
    Asked,
    Retrieved,
    search_across,
    search_further,
    still_readable,
)
from portal.services.answers.slots import Slot

T = TypeVar("T")

log = structlog.get_logger(__name__)

MAX_SEARCHES = 2
HISTORY_TOKENS = 1500
SAVE_EVERY_S = 1.0
_RETRY_PAUSES_S = (0.5, 2.0)


@dataclass(frozen=True, slots=True)
class Answering:
    """A stored question, with what its answer is written from."""

    asked: Asked
    retrieved: Retrieved
    prompt: Prompt
    question: Message
    draft: AnswerDraft


class AnswerStream(Iterator[AnswerEvent]):
    """The events while an answer is written: `AnswerBegun` first, `AnswerFinished` last. Closing
    the stream stops a language model, and keeps its text so far; quotations are finished. A failure
    of the endpoint is not an error: the answer is then `unavailable`, and quotes the documents if
    they answer. Raises NotFound if the conversation is deleted meanwhile, and DatabaseUnavailable
    if it cannot be stored at the end."""

    def __init__(self, services: Services, answering: Answering, slot: Slot) -> None:
        self._services = services
        self._answering = answering
        self._slot = slot
        self._draft = answering.draft
        self._saved_at = time.monotonic()
        # Created on first use: its reference cycle would keep an unused stream alive.
        self._events: Generator[AnswerEvent, None, None] | None = None

    def __iter__(self) -> AnswerStream:
        return self

    def __next__(self) -> AnswerEvent:
        if self._events is None:
            self._events = self._run()
        return next(self._events)

    def close(self) -> None:
        """End the answer at any point, also before the start."""
        if self._events is None:
            # Closing a generator that never started runs no `finally`.
            next(self)
        if self._services.chat.only_quotes and not self._draft.is_finished:
            self._finish()
        if self._events is not None:
            self._events.close()

    def _run(self) -> Generator[AnswerEvent, None, None]:
        answering = self._answering
        try:
            yield AnswerBegun(
                question=answering.question,
                answer_id=self._draft.message_id,
                search_query=answering.retrieved.search_query,
                source_count=len(answering.prompt.sources),
            )
            status = yield from self._write()
            if rest := self._draft.close(status):
                yield TextWritten(rest)
            with tracing.span("answer.cite"):
                finished = AnswerFinished(self._store(status))
            # Released here, because a reader may stop reading after the last event.
            self._slot.release()
            yield finished
        except GeneratorExit:
            self._stop()
            raise
        except Exception:
            self._give_up()
            raise
        finally:
            self._slot.release()

    def _store(self, status: MessageStatus) -> Message:
        """Store the final answer, so that the reader does not lose what they have seen."""
        return _retry(partial(self._draft.finish, status))

    def _finish(self) -> None:
        """Write the rest without a reader, unless the answer was stopped; quoting takes no time."""
        try:
            if self._keep():
                for _event in self:
                    pass
        except PortalError as error:
            log.warning("answer_not_finished", code=error.code)

    def _stop(self) -> None:
        """Store the text so far. Errors are only logged, because the reader has left."""
        if self._draft.is_finished:
            return
        try:
            self._draft.close(MessageStatus.STOPPED)
            self._store(MessageStatus.STOPPED)
        except PortalError as error:
            log.warning("stopped_answer_not_kept", code=error.code)
            self._give_up()
        except Exception as error:
            log.exception("stopped_answer_not_kept", error_type=type(error).__name__)
            self._give_up()

    def _give_up(self) -> None:
        """Mark an answer that could not be finished as ended."""
        try:
            self._draft.give_up()
        except PortalError as error:
            log.warning("answer_left_open", code=error.code)

    def _write(self) -> Generator[AnswerEvent, None, MessageStatus]:
        """Ask the model, and again after each search that it requests."""
        request, chat = self._first_request(), self._services.chat
        self._draft.note_read(chat, request, self._answering.retrieved.chunk_count)
        if request.is_outline and not chat.only_quotes:
            try:
                read = yield from self._read_in_parts(request)
            except ChatUnavailable as error:
                return (yield from self._fail(error, request))
            if read is None:
                return MessageStatus.STOPPED
            request = read
        searches = 0
        while True:
            ended = yield from self._call_model(request)
            if not isinstance(ended, SearchCall):
                return ended
            searches += 1
            request = self._search_again(request, ended, may_again=searches < MAX_SEARCHES)
            yield SearchedAgain(ended.query, len(request.sources))

    def _call_model(
        self, request: ChatRequest
    ) -> Generator[AnswerEvent, None, MessageStatus | SearchCall]:
        """Run one call of the model, until it ends, searches or is stopped."""
        try:
            ended = yield from self._read_events(request)
        except ChatUnavailable as error:
            return (yield from self._fail(error, request))
        if ended is MessageStatus.DONE and not self._draft.has_text:
            silent = ChatUnavailable("its endpoint wrote nothing")
            return (yield from self._fail(silent, request))
        return ended

    def _fail(
        self, error: ChatUnavailable, request: ChatRequest
    ) -> Generator[AnswerEvent, None, MessageStatus]:
        log.warning("answer_unavailable", code=error.code)
        self._draft.record_failure(error)
        yield from self._quote_instead(request)
        return MessageStatus.UNAVAILABLE

    def _read_in_parts(
        self, request: ChatRequest
    ) -> Generator[AnswerEvent, None, ChatRequest | None]:
        """Return the request with all sources in its prompt, or with the model's notes on each part
        where they do not fit; None when the answer was stopped. Raises ChatUnavailable."""
        language, budget = request.language, self._answering.retrieved.token_budget
        parts = list(prompt.in_parts(request.sources, language=language, token_budget=budget))
        if len(parts) == 1:
            return replace(request, system=parts[0].system, can_search=False)
        notes: list[tuple[Sequence[Source], str]] = []
        for part in parts:
            # Each part takes the model some seconds, in which rights may change.
            sources = self._still_readable(part.sources)
            if not sources:
                continue
            built = prompt.build(sources, language=language, token_budget=budget)
            asked = replace(
                request,
                system=built.system,
                sources=built.sources,
                turns=(prompt.take_notes(self._answering.asked.question),),
                can_search=False,
            )
            written: list[str] = []
            with closing(chat_events(self._services, asked)) as events:
                for event in events:
                    if isinstance(event, TextDelta):
                        written.append(event.text)
                    yield AnswerPending()
                    if not self._is_wanted():
                        return None
            notes.append((built.sources, "".join(written)))
        # Notes repeat their documents, so drop those whose chunks may no longer be read.
        readable = self._still_readable(request.sources)
        ids = {one.chunk_id for one in readable}
        kept = [note for read, note in notes if ids.issuperset(one.chunk_id for one in read)]
        if kept:
            system = prompt.from_notes(kept, language=language, token_budget=budget)
        else:
            system = prompt.build((), language=language, token_budget=budget).system
        return replace(request, system=system, sources=readable, can_search=False)

    def _read_events(
        self, request: ChatRequest
    ) -> Generator[AnswerEvent, None, MessageStatus | SearchCall]:
        with closing(chat_events(self._services, request)) as events:
            for event in events:
                if isinstance(event, SearchCall):
                    # A call of a tool that is no longer offered is ignored.
                    if request.can_search:
                        return event
                    continue
                if isinstance(event, Truncated):
                    self._draft.cut_off()
                    continue
                if isinstance(event, TextDelta) and event.quoted:
                    self._draft.quote(event.quoted)
                if isinstance(event, Heartbeat):
                    yield AnswerPending()
                elif pieces := self._draft.feed(event.text):
                    yield TextWritten(pieces)
                if isinstance(event, Abstained):
                    self._draft.abstain(event)
                    return MessageStatus.ABSTAINED
                if not self._is_wanted():
                    return MessageStatus.STOPPED
        return MessageStatus.DONE

    def _quote_instead(self, request: ChatRequest) -> Generator[AnswerEvent, None, None]:
        """Quote the sources in place of the text of a model that failed; keep that text if there is
        nothing to quote."""
        if self._services.chat.only_quotes:
            return
        quoting = writers.without_model(self._services)
        # Rights may have changed if the model failed late.
        request = replace(request, sources=self._still_readable(request.sources))
        self._draft.note_read(quoting.chat, request, self._answering.retrieved.chunk_count)
        has_quoted = False
        with suppress(ChatUnavailable), closing(chat_events(quoting, request)) as events:
            for event in events:
                if isinstance(event, TextDelta) and not has_quoted:
                    has_quoted = True
                    self._draft.start_over(quoting.chat)
                    yield TextDiscarded()
                if isinstance(event, TextDelta) and event.quoted:
                    self._draft.quote(event.quoted)
                if isinstance(event, TextDelta | Abstained) and has_quoted:
                    yield TextWritten(self._draft.feed(event.text))
                if isinstance(event, Abstained) and has_quoted:
                    self._draft.abstain(event)

    def _is_wanted(self) -> bool:
        """Store the text from time to time; return whether to continue."""
        return time.monotonic() - self._saved_at < SAVE_EVERY_S or self._keep()

    def _keep(self) -> bool:
        """Store the text so far; return whether to continue."""
        self._saved_at = time.monotonic()
        try:
            return self._draft.save_progress()
        except DatabaseUnavailable as error:
            # The next attempt, or the last, stores this text as well.
            log.warning("answer_not_kept", code=error.code)
            return True

    def _first_request(self) -> ChatRequest:
        answering = self._answering
        retrieved, asked = answering.retrieved, answering.asked
        turns = (*retrieved.turns, Turn(Role.USER.value, asked.question))
        return ChatRequest(
            system=answering.prompt.system,
            turns=prompt.within_budget(turns, HISTORY_TOKENS),
            # For a provider that ignores turns, the question must be understood alone.
            question=retrieved.search_query,
            language=asked.language,
            sources=answering.prompt.sources,
            can_search=self._services.chat.takes_tools,
            reply=retrieved.reply,
            is_outline=retrieved.is_outline,
            is_more=retrieved.is_more,
            search_across=self._search_across,
        )

    def _search_across(self) -> Sequence[Source]:
        answering = self._answering
        try:
            return search_across(
                self._services,
                answering.asked,
                answering.retrieved.search_query,
                self._draft.register,
            )
        except PortalError as error:
            log.warning("search_across_failed", code=error.code)
            return ()

    def _search_again(
        self, request: ChatRequest, call: SearchCall, *, may_again: bool
    ) -> ChatRequest:
        """Return the next request, with the new hits in the prompt and the old ones that fit."""
        answering = self._answering
        found = self._found(call)
        known = self._still_readable(request.sources)
        built = prompt.build(
            list({one.number: one for one in (*found, *known)}.values()),
            language=answering.asked.language,
            token_budget=answering.retrieved.token_budget,
            can_search=may_again,
        )
        self._draft.add_consulted(call.query, found, built.sources, built.tokens)
        self._keep()
        shown = {source.number for source in built.sources}
        exchange = prompt.tool_exchange(call, [one for one in found if one.number in shown])
        return replace(
            request,
            system=built.system,
            sources=built.sources,
            can_search=may_again,
            tool_turns=(*request.tool_turns, *exchange),
        )

    def _still_readable(self, sources: Sequence[Source]) -> tuple[Source, ...]:
        try:
            return _retry(partial(still_readable, self._services, self._answering.asked, sources))
        except PortalError as error:
            log.warning("sources_not_read_again", code=error.code)
            return ()

    def _found(self, call: SearchCall) -> tuple[Source, ...]:
        """Search; a failure counts as no hits, and the model answers from what it has."""
        try:
            return search_further(
                self._services, self._answering.asked, call.query, self._draft.register
            )
        except PortalError as error:
            log.warning("further_search_failed", code=error.code)
            return ()


def _retry(work: Callable[[], T]) -> T:
    """Return the result of `work`, retrying briefly while the database is unavailable."""
    for pause_s in _RETRY_PAUSES_S:
        try:
            return work()
        except DatabaseUnavailable:
            time.sleep(pause_s)
    return work()
