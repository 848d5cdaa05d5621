"""A small portal that changes at random, in step with the oracle in plain Python.

Changes go through the portal's use cases, or through plain SQL where there is no use case. Several
processes serve the same database, each with its own caches.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from portal.domain.people import User
from portal.domain.search import SearchMode, SearchRequest
from portal.errors import NotFound
from portal.services import Services
from portal.services.search import engine
from portal.store.embedding_models import registry
from portal.store.embedding_models.registry import RegisteredModel
from tests.integration.documents.selection.selection_changes import CHANGES, Changes
from tests.integration.documents.selection.selection_model import Asker, Question
from tests.integration.documents.selection.small_portal import (
    DOMAINS,
    MAX_CHUNKS,
    SLOTS,
    TITLES,
    TYPES,
    WHOLE_SEARCH_EVERY,
    WORDS,
    Seat,
    Step,
    direction_of,
)
from tests.integration.search.chunks import chunk_search


@dataclass(slots=True)
class World(Changes):
    """The oracle's library and the database, kept in step and compared."""

    def apply(self, step: Step) -> None:
        """Apply a change to the database and to the model."""
        self.let_go()
        if step.user >= len(self.users):
            step = replace(step, user=self._seat.user)
        CHANGES[step.change](self, step)

    def check(self, step: Step) -> None:
        """Search in the process that made the change or in another one, and compare the results
        with the oracle."""
        if step.moves:
            self._seat = Seat(step.asks, step.in_conversation, step.seed % len(self.processes))
        seat = self._seat
        user, services = self.users[seat.user], self.processes[seat.process]
        conversation = self.conversations[seat.user] if seat.in_conversation else None
        question = random_question(random.Random(step.seed + 1), is_narrow=step.is_narrow)
        is_whole = step.seed % WHOLE_SEARCH_EVERY == 0
        search = self._search if is_whole else self._search_chunks
        found = search(services, user, conversation, question, step.mode)
        expected = self.model.answer(
            Asker(user.id, user.is_admin), conversation, question, step.mode.value
        )
        assert set(found) == expected, (user.name, conversation, question)
        assert len(found) == len(expected), "a passage stands twice"

    def _search(
        self,
        services: Services,
        user: User,
        conversation: UUID | None,
        question: Question,
        mode: SearchMode,
    ) -> list[UUID]:
        """Search through the use case."""
        request = SearchRequest(
            question.text,
            top_n=SLOTS * MAX_CHUNKS,
            mode=mode,
            domain=question.domain,
            conversation_id=conversation,
        )
        return [hit.chunk_id for hit in engine.search(services, user, request).hits]

    def _search_chunks(
        self,
        services: Services,
        user: User,
        conversation: UUID | None,
        question: Question,
        mode: SearchMode,
    ) -> list[UUID]:
        """Search through the store alone, which takes half the time."""
        candidates, _ = chunk_search.find_chunks(
            services,
            user,
            question.text,
            direction_of(self.slots[0]),
            model=self._model(),
            total_chunks=sum(len(document.chunks) for document in self.model.documents.values()),
            mode=mode,
            limit=SLOTS * MAX_CHUNKS,
            domain=question.domain,
            conversation_id=conversation,
        )
        return [candidate.chunk.chunk_id for candidate in candidates]

    def _model(self) -> RegisteredModel:
        if self._registered is None:
            with self._begin(0) as session:
                self._registered = registry.find_active(session)
        assert self._registered is not None
        return self._registered

    def check_strangers(self) -> None:
        """Check that no user can search in another's conversation, nor in a deleted one."""
        for place, conversation in enumerate(self.conversations):
            request = SearchRequest("maple", conversation_id=conversation or self.slots[0])
            other = self.users[(place + 1) % len(self.users)]
            try:
                engine.search(self.processes[0], other, request)
            except NotFound:
                continue
            raise AssertionError("a foreign conversation was searched")


def random_question(rng: random.Random, *, is_narrow: bool) -> Question:
    words = tuple(rng.sample(WORDS, rng.randint(1, 3)))
    question = Question(words)
    if not is_narrow:
        return question
    others = [word for word in WORDS if word not in words]
    narrowed: tuple[dict[str, Any], ...] = (
        {"domain": rng.choice(DOMAINS[:-1])},
        {"title": rng.choice(TITLES).lower()},
        {"type": rng.choice(list(TYPES))},
        {"excluded": rng.choice(others)},
        {"phrase": tuple(rng.sample(others, 2))},
    )
    for wish in rng.sample(narrowed, rng.choice((1, 1, 2))):
        question = replace(question, **wish)
    return question
