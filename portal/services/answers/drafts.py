"""An answer in progress: its text, its citations so far, and how both are stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from typing import Any
from uuid import UUID

from portal.answering import support
from portal.answering.markers import MarkerStream
from portal.answering.quoting.outlines import outlined_count
from portal.domain.answering import (
    Abstained,
    ChatModel,
    ChatRequest,
    MarkedText,
    Outcome,
    Quoted,
    Source,
)
from portal.domain.conversations import Message, MessageStatus, Replay
from portal.domain.documents import Failure
from portal.domain.people import User
from portal.domain.search.degraded import ANSWER_CUT_OFF, PARTLY_READ
from portal.errors import PortalError, existing
from portal.services import Services
from portal.services.answers.quoted_ranges import quoted_range
from portal.services.documents.erasing import without_quotations
from portal.services.search import dynamic_config
from portal.store.answers import citations as citation_store
from portal.store.answers import messages as message_store
from portal.store.answers.citations import CitedSource
from portal.store.people import accounts as account_store
from portal.store.session import Session

# Key in the stored data of a reply: it may name documents that it does not cite.
NAMES_DOCUMENTS = "names_documents"
# Keys of the model that failed, in an answer that quotes instead.
FAILED_PROVIDER, FAILED_MODEL = "failed_provider", "failed_model"
# Key of how many chunks of the documents were read, and how many there are.
READ_OF = "read_of"


class AnswerDraft:
    """The answer with the id `message_id`. `register` lists the chunks that were found for it,
    numbered from 1."""

    def __init__(
        self,
        services: Services,
        user: User,
        message_id: UUID,
        *,
        replay: Replay,
        found: Sequence[Source],
        shown: Sequence[Source],
    ) -> None:
        self.message_id = message_id
        self.register: list[Source] = list(found)
        self.is_finished = False
        self._services = services
        self._user = user
        self.replay = replay
        self._markers = MarkerStream(shown)
        self._in_prompt = {source.number for source in shown}
        self._text: list[str] = []
        self._quoted: dict[int, Quoted] = {}
        self._kept = self.cited

    @property
    def content(self) -> str:
        return "".join(self._text)

    @property
    def has_text(self) -> bool:
        return bool(self.content.strip())

    @property
    def cited(self) -> list[CitedSource]:
        """Return the citations of the text so far, as whole chunks, so that the numbers are right
        even if this process dies."""
        return self._cited(self._in_prompt, "")

    def feed(self, text: str) -> tuple[MarkedText, ...]:
        """Add the model's output, and return it with valid markers only."""
        return self._take(self._markers.feed(text))

    def close(self, status: MessageStatus) -> tuple[MarkedText, ...]:
        """Return the text that was held back because it might have become a marker."""
        is_cut = status is not MessageStatus.DONE or ANSWER_CUT_OFF in self.replay.degraded
        return self._take(self._markers.close(is_cut=is_cut))

    def _take(self, pieces: Sequence[MarkedText]) -> tuple[MarkedText, ...]:
        self._text += [piece.text for piece in pieces]
        return tuple(pieces)

    def quote(self, quoted: Quoted) -> None:
        """Register the exact words that a number cites; one source may be cited in many places."""
        self._quoted[quoted.number] = quoted
        confidence = min(one.confidence for one in self._quoted.values())
        self._note(outcome=Outcome.QUOTED.value, confidence=round(confidence, 3))
        self._register(quoted)

    def abstain(self, abstained: Abstained) -> None:
        """Keep only the quotations that are about the question."""
        if abstained.outcome is not None:
            # A reply that outlines a document keeps its quotations.
            if abstained.outcome is not Outcome.REPLY:
                self._quoted = {one.number: one for one in abstained.about}
            self._in_prompt = set(self._quoted)
            self._note(outcome=abstained.outcome.value)
            if abstained.outcome is Outcome.REPLY and abstained.text:
                self._note(**{NAMES_DOCUMENTS: True})
            for one in abstained.about:
                self._register(one)

    def _register(self, quoted: Quoted) -> None:
        """Add the source under the number of the quotation, unless the number is known."""
        if all(one.number != quoted.number for one in self.register):
            source = replace(quoted.source, number=quoted.number)
            self.register.append(source)
            self._markers.add_sources([source])

    def _note(self, **values: Any) -> None:
        self.replay = replace(self.replay, extra=self.replay.extra | values)

    def add_consulted(
        self, query: str, found: Sequence[Source], shown: Sequence[Source], tokens: int
    ) -> None:
        """Add the chunks of another search; those in `shown` are now in the model's prompt."""
        known = {source.number for source in self.register}
        self.register += sorted(
            (one for one in found if one.number not in known), key=lambda one: one.number
        )
        self._in_prompt |= {source.number for source in shown}
        self._markers.add_sources(shown)
        self.replay = replace(
            self.replay,
            further_queries=(*self.replay.further_queries, query),
            context_tokens=max(self.replay.context_tokens, tokens),
        )

    def record_failure(self, error: PortalError) -> None:
        """Record why there is no answer, or no more of it."""
        self._note(failure=Failure.of(error).as_json())

    def start_over(self, chat: ChatModel) -> None:
        """Discard the text of a model that failed, for `chat` to write another."""
        self._text, self._quoted = [], {}
        self._markers = MarkerStream(self.register)
        failed = self.replay
        self.replay = replace(failed, chat_provider=chat.provider, chat_model=chat.model)
        self._note(**{FAILED_PROVIDER: failed.chat_provider, FAILED_MODEL: failed.chat_model})

    def note_read(self, chat: ChatModel, request: ChatRequest, total: int) -> None:
        """Record how much `chat` reads of whole documents with `total` chunks, if not all."""
        if not request.is_outline:
            return
        sources = request.sources
        read = outlined_count(sources) if chat.only_quotes else len(sources)
        if read < total:
            self._note(**{READ_OF: (read, total)})
            self._degrade(PARTLY_READ)

    def cut_off(self) -> None:
        """Record that the model has reached the limit of its length, if it has written anything."""
        if self.has_text:
            self._degrade(ANSWER_CUT_OFF)

    def _degrade(self, code: str) -> None:
        degraded = dict.fromkeys((*self.replay.degraded, code))
        self.replay = replace(self.replay, degraded=tuple(degraded))

    def save_progress(self) -> bool:
        """Store the text so far; return whether to continue the answer."""
        cited = self.cited
        is_new = cited != self._kept
        with self._services.database.begin() as session:
            if is_new:
                alive = citation_store.hold_documents(session, cited)
                if not self._save_text(session, _erased(cited, alive)):
                    return False
                citation_store.replace_citations(session, self.message_id, cited, alive)
            else:
                if not self._save_text(session, ()):
                    return False
                # A purge in progress waits for the answer, which is locked now.
                erased = _erased(cited, citation_store.find_alive(session, cited))
                if erased:
                    self._save_text(session, erased)
        self._kept = cited
        return True

    def _save_text(self, session: Session, erased: Sequence[str]) -> bool:
        content, _ = without_quotations(self.content, (), erased)
        return message_store.keep_alive(session, self.message_id, content)

    def finish(self, status: MessageStatus) -> Message:
        """Store the final answer. Raises NotFound when its conversation was deleted."""
        self.is_finished = True
        content = self.content
        is_answer = status in {MessageStatus.DONE, MessageStatus.STOPPED}
        keeps_prompt = is_answer or status is MessageStatus.ABSTAINED
        shown = self._in_prompt if keeps_prompt else {one.number for one in self.register}
        cited = self._cited(shown, content)
        texts = {one.marker: one.source.text for one in cited if one.was_cited}
        # Quotations are the source's own words, so there is nothing to compare.
        checked = support.check(content, texts) if is_answer and not self._quoted else ()
        with self._services.database.begin() as session:
            alive = citation_store.hold_documents(session, cited)
            row = existing(message_store.lock_message(session, self.message_id))
            citation_store.replace_citations(session, self.message_id, cited, alive)
            # Sentences of documents that were purged while the answer was written are removed too.
            content, checked = without_quotations(content, checked, _erased(cited, alive))
            if row.status == MessageStatus.STREAMING:
                row.status = status.value
            row.content = content
            row.support = [one.as_json() for one in checked]
            row.retrieval = asdict(self.replay)
            session.flush()
            current = account_store.with_current_rights(session, self._user)
            reader = current or replace(self._user, is_admin=False)
            # A finished answer is never stale.
            return message_store.get_message(session, reader, self.message_id, stale_after_s=0)

    def give_up(self) -> None:
        """End the answer as it was last stored, because it cannot be continued."""
        with self._services.database.begin() as session:
            message_store.stop(session, self.message_id)

    def _cited(self, shown: set[int], content: str) -> list[CitedSource]:
        """Return cited sources by marker, then consulted ones by rank."""
        # Each is narrowed to the quotation, or to the sentences that support `content`.
        by_number = {source.number: self._rated(source) for source in self.register}
        order = self._markers.order
        rest = [one.number for one in self.register if one.number in shown - set(order)]
        return [
            CitedSource(
                marker,
                by_number[number],
                number in order,
                *self._range(by_number[number], content, marker),
            )
            for marker, number in enumerate((*order, *rest), 1)
        ]

    def _rated(self, source: Source) -> Source:
        """Return a source with the confidence of its quotation if that is greater: the model that
        read the statement knows more than the search."""
        quoted = self._quoted.get(source.number)
        if quoted is None or quoted.confidence <= source.confidence:
            return source
        is_low = quoted.confidence < self._confidence_threshold
        return replace(source, confidence=quoted.confidence, low_confidence=is_low)

    @cached_property
    def _confidence_threshold(self) -> float:
        with self._services.database.read() as session:
            config = dynamic_config.read(session, self._services.settings.search)
        return config.confidence_threshold

    def _range(self, source: Source, content: str, marker: int) -> tuple[int, int]:
        """Return which characters of a source a marker cites."""
        if (quoted := self._quoted.get(source.number)) is not None:
            return quoted.start, quoted.end
        return quoted_range(source.text, content, marker)


def _erased(cited: Sequence[CitedSource], alive: Mapping[UUID, bool]) -> list[str]:
    """Return the cited texts of documents that were purged meanwhile."""
    return [one.source.text for one in cited if not alive.get(one.source.document_id)]
