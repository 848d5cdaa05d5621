"""Statements with their chances to answer a question."""

from __future__ import annotations

from dataclasses import dataclass

from portal.answering.quoting.judging.evidence import Evidence
from portal.answering.quoting.phrasing import context_of
from portal.answering.quoting.statements import Statement
from portal.domain.answering import Source


@dataclass(frozen=True, slots=True)
class Candidate:
    """A statement and its chance to answer: 0 if rules exclude it or the model did not read it."""

    statement: Statement
    evidence: Evidence
    chance: float


@dataclass(frozen=True, slots=True)
class Judged:
    """A source and its statements, in order."""

    source: Source
    candidates: tuple[Candidate, ...]
    is_foreign: bool
    """In another language than the question."""

    @property
    def chance(self) -> float:
        """Return the chance that the source answers the question."""
        return max((one.chance for one in self.candidates), default=0.0)

    @property
    def best(self) -> Candidate:
        return max(self.candidates, key=lambda one: one.chance)

    def said(self, candidate: Candidate) -> str:
        """Return a statement below its title and context."""
        place = candidate.statement
        return f"{context_of(self.source, place)} {self.source.text[place.start : place.end]}"

    @property
    def on_topic(self) -> float:
        """Return how far the source is on the subject of the question, whether it answers or not:
        by the words that it shares, across languages by its search confidence."""
        if self.is_foreign:
            return self.source.confidence
        return max((one.evidence.met for one in self.candidates), default=0.0)
