"""Helpers that ask an extractive model, with reading models scripted by the test."""

from __future__ import annotations

import numpy as np

from portal.answering.markers import MarkerStream
from portal.answering.quoting.extractive import ExtractiveChatModel
from portal.domain.answering import ChatRequest, TextDelta, Turn
from tests.unit.answering.sources import source

LEAVE = source(
    1,
    "The handbook is for everybody. Employees get 25 days of annual leave. Ask your manager first.",
    title="Handbook",
)
CATS = source(2, "Cats purr when they are content. Dogs bark at night.", confidence=0.1)
ZH = source(
    3, "本手册适用于全体员工。年假每年为二十五天。申请须提前两周提交给主管。", title="员工手册"
)


def request(question, sources, language="en"):
    return ChatRequest("", (Turn("user", question),), question, language, sources)


def ask(question, sources, language="en"):
    return list(ExtractiveChatModel().stream(request(question, sources, language)))


def content_of(events, sources):
    markers = MarkerStream(sources)
    pieces = []
    for event in events:
        if isinstance(event, TextDelta) and event.quoted:
            markers.add_sources([source(event.quoted.number)])
        pieces += markers.feed(event.text)
    pieces += markers.close()
    return "".join(piece.text for piece in pieces), markers.order


class Reader:
    """A model that finds one statement likely, and counts what it is asked to compare."""

    def __init__(self, likely: str, odds: float = 6.0) -> None:
        self.likely = likely
        self.odds = odds
        self.compared = 0
        self.asked = ""

    def read_answers(self, question, statements, *_):
        self.asked = question
        self.compared += len(statements)
        return np.array([self.odds if self.likely in text else -9.0 for _, text in statements])


class OddsReader:
    """A model that returns given log odds of statements, and other odds for some questions."""

    def __init__(self, odds, of_question=None):
        self.odds = odds
        self.of_question = of_question or {}

    def read_answers(self, question, statements, *_):
        odds = self.of_question.get(question.strip("?？"), self.odds)
        return np.array([odds.get(text, -9.0) for _, text in statements])


def is_quoted(reader, asked):
    """Return whether anything is quoted when `reader` reads the statements."""
    return any(isinstance(event, TextDelta) for event in ExtractiveChatModel(reader).stream(asked))
