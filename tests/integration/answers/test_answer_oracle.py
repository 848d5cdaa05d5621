"""No disabled, deleted or foreign document ever reaches a prompt or a citation.

The world of test_selection_oracle changes at random; after each change a user asks in their
conversation, in one of two processes. The model repeats every chunk that it is given, so that a
leak would come back in the history. Every request to the model, every stored citation and the hash
of the selection are compared with the oracle in plain Python.
"""

from __future__ import annotations

import hashlib
import os
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from uuid import UUID

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from portal.answering.writing import prompt
from portal.domain.answering import ChatEvent, ChatRequest, TextDelta, Turn
from portal.domain.conversations import Message
from portal.domain.people import User
from portal.services import Services
from portal.services.answers.retrieving import ask_in, retrieve
from portal.store.session import Session
from tests.factories.answers import ask, asked, saying
from tests.integration.documents.selection.selection_model import Asker, Chunk, Document
from tests.integration.documents.selection.selection_world import World, random_question
from tests.integration.documents.selection.small_portal import Seat, Step
from tests.integration.documents.selection.test_selection_oracle import STEPS, steps

# Ten thousand take 15 minutes; CONTRIBUTING.md says when to run them.
STATES = int(os.environ.get("PORTAL_ORACLE_STATES", "400"))
EXAMPLES = -(-STATES // STEPS)
# The other steps only search and build a prompt, without storing an answer.
WHOLE_ANSWER_EVERY = 8
# This change locks a row that storing an answer needs.
HELD = "hold back"


def repeat(request: ChatRequest) -> Iterator[ChatEvent]:
    for source in request.sources:
        yield TextDelta(f"{source.text} [{source.number}]. ")


@dataclass(slots=True)
class AskingWorld(World):
    """A world in which users ask questions. `written` lists all chunks that ever existed, with
    their documents."""

    written: list[tuple[UUID, Chunk]] = field(default_factory=list)

    def reset(self) -> None:
        self.written = []
        World.reset(self)

    def _insert_text(
        self, session: Session, texts: Sequence[tuple[UUID, str, tuple[Chunk, ...]]]
    ) -> list[UUID]:
        self.written += [(document, chunk) for document, _, chunks in texts for chunk in chunks]
        return World._insert_text(self, session, texts)

    def check(self, step: Step) -> None:
        if step.moves:
            self._seat = Seat(step.asks, in_conversation=True, process=step.seed % 2)
        user, services = self.users[self._seat.user], self.processes[self._seat.process]
        conversation = self._conversation(self._seat.user)
        question = random_question(random.Random(step.seed + 1), is_narrow=step.is_narrow).text
        asked(services).clear()
        if step.seed % WHOLE_ANSWER_EVERY or step.change == HELD:
            self._check_prompt(services, user, conversation, question)
        else:
            answer = ask(services, user, conversation, question)
            self._check_answer(user, conversation, answer)
        for request in asked(services):
            self._check_prompt_text(user, conversation, request.system)
            self._check_history(user, conversation, request.turns)
            assert not request.tool_turns

    def _conversation(self, place: int) -> UUID:
        """Return the conversation of a user, a new one if theirs was deleted."""
        conversation = self.conversations[place]
        if conversation is None:
            with self._begin(0) as session:
                conversation = self._new_conversation(session, place)
            self.conversations[place] = conversation
        return conversation

    def _check_prompt(
        self, services: Services, user: User, conversation: UUID, question: str
    ) -> None:
        retrieved = retrieve(services, ask_in(services, user, conversation, question, None))
        built = prompt.build(retrieved.sources, language="en")
        self._check_prompt_text(user, conversation, built.system)
        self._check_history(user, conversation, retrieved.turns)
        self._check_snapshot(user, conversation, retrieved.snapshot.selection_hash)

    def _check_answer(self, user: User, conversation: UUID, answer: Message) -> None:
        allowed = self._allowed(user, conversation)
        assert {one.document_id for one in answer.citations} <= set(allowed)
        chunks = {chunk.id for one in allowed.values() for chunk in one.chunks}
        assert {one.chunk_id for one in answer.citations} <= chunks
        self._check_prompt_text(user, conversation, answer.content)
        assert answer.replay
        self._check_snapshot(user, conversation, answer.replay.selection_hash)

    def _allowed(self, user: User, conversation: UUID) -> dict[UUID, Document]:
        asker = Asker(user.id, user.is_admin)
        return {
            one.id: one
            for one in self.model.documents.values()
            if self.model.counts(asker, conversation, one)
        }

    def _check_snapshot(self, user: User, conversation: UUID, selection_hash: str) -> None:
        ids = "\n".join(sorted(str(one) for one in self._allowed(user, conversation)))
        assert selection_hash == hashlib.sha256(ids.encode()).hexdigest()

    def _check_prompt_text(self, user: User, conversation: UUID, text: str) -> None:
        """Check that the prompt contains only chunks and titles that are enabled right now."""
        allowed = self._allowed(user, conversation)
        may = {chunk.id for one in allowed.values() for chunk in one.chunks}
        for _, chunk in self.written:
            assert chunk.id in may or not _holds(text, " ".join(chunk.words)), user.name
        for document in self.model.documents.values():
            assert document.id in allowed or not _holds(text, document.title), user.name

    def _check_history(self, user: User, conversation: UUID, turns: Sequence[Turn]) -> None:
        """Check that the history is based on enabled documents only, possibly older versions."""
        allowed = self._allowed(user, conversation)
        text = "\n".join(turn.content for turn in turns)
        for document, chunk in self.written:
            assert document in allowed or not _holds(text, " ".join(chunk.words)), user.name


def _holds(text: str, words: str) -> bool:
    # Chunks and titles end in a unique number, which must not match the start of a longer one.
    return words in text and re.search(rf"{re.escape(words)}(?!\d)", text) is not None


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_prompts_and_citations_contain_only_what_the_oracle_allows(
    make_services: Callable[..., Services],
) -> None:
    world = AskingWorld.of(*(saying(make_services(), repeat) for _ in range(2)))
    states = whole = 0

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        # Shrinking an example of forty steps takes longer than reading it.
        phases=[Phase.generate],
    )
    @given(st.lists(steps, min_size=STEPS, max_size=STEPS))
    def live(life: list[Step]) -> None:
        nonlocal states, whole
        world.reset()
        for step in life:
            world.apply(step)
            world.check(step)
            states += 1
            whole += step.seed % WHOLE_ANSWER_EVERY == 0
        world.let_go()

    live()
    assert states >= STATES
    assert whole >= STATES // (2 * WHOLE_ANSWER_EVERY)
