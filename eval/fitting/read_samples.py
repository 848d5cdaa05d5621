"""Samples as the portal reads them: a folder's documents are searched for each of its questions.

What a search finds beside the answer is what a user might be given in its place, so it is harder to
tell apart than the statements of one document. A folder has the documents of an organisation, and
`questions.jsonl` with ``{document, kind, zh, en, gold}`` a line as `eval/data/team/train`, or
``{file, kind, question, gold}`` as `./run eval --answers` takes it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from eval.answers.quality import engine_of
from eval.answers.sets import QUESTIONS, SHIPPED, documents_in, gold_of
from eval.fitting.reader_samples import MANY, Sample, Statement, share_of_gold
from eval.sets import read_rows
from portal.domain.embedding import Embedder, Vector
from portal.embeddings.layer import EmbedderLayer

_COLLEAGUES = SHIPPED.parent / "colleagues"
_TRAINED_ON = [
    "two",
    "four",
    "six",
    "eight",
    "ten",
    "twelve",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "twenty",
    "twenty-two",
    "twenty-three",
    "twenty-four",
    "twenty-five",
    "twenty-six",
    "twenty-seven",
    "twenty-eight",
    "twenty-nine",
]
FOLDERS = (
    *sorted(path for path in (SHIPPED.parent / "organisations").iterdir() if path.is_dir()),
    SHIPPED.parent / "everyday",
    *(_COLLEAGUES / name for name in _TRAINED_ON),
)
_MAX_TEMPTING = 3


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question about a file. `gold` are the alternatives for each thing that an answer has."""

    text: str
    kind: str
    file: str
    gold: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class _Reading:
    """Statements that were compared with a part of a question, and the log odds that each answers
    it: NaN if the model did not read it."""

    question: str
    statements: Sequence[Statement]
    log_odds: Sequence[float]


class _Recorder(EmbedderLayer):
    """An embedder that keeps what it reads."""

    def __init__(self, readings: list[_Reading], embedder: Embedder) -> None:
        super().__init__(embedder)
        self._readings = readings

    def embed_query(self, text: str) -> Vector:
        return self._embedder.embed_query(text)

    def embed_chunks(self, texts: Sequence[str]) -> Vector:
        return self._embedder.embed_chunks(texts)

    def read_answers(
        self,
        question: str,
        statements: Sequence[Statement],
        priorities: Sequence[float],
        max_read: int,
        by_nearness: float = 0.0,
    ) -> Vector:
        odds = super().read_answers(question, statements, priorities, max_read, by_nearness)
        self._readings.append(_Reading(question, statements, odds.tolist()))
        return odds


def read_samples(folder: Path) -> list[Sample]:
    """Ask a portal that holds the documents of a folder its questions, and return what is read for
    each part of them. Raises BadSet."""
    readings: list[_Reading] = []
    samples: list[Sample] = []
    with engine_of(documents_in(folder), partial(_Recorder, readings)) as engine:
        for asked in _questions(folder):
            readings.clear()
            engine.converse([asked.text])
            title = engine.titles.get(asked.file)
            samples += filter(None, (_sample(asked, one, title, folder.name) for one in readings))
    return samples


def _questions(folder: Path) -> Iterator[_Asked]:
    """Yield the questions, in both languages where they are written in both."""
    for row in read_rows(folder / QUESTIONS):
        file = row.get("document") or row.get("file")
        gold = gold_of(row.get("gold") or [], row.place)
        for text in map(row.get, ("question", "zh", "en")):
            if text:
                yield _Asked(text, row.get("kind"), file, gold)


def _sample(asked: _Asked, reading: _Reading, title: str | None, folder: str) -> Sample | None:
    """Return what was read for a part of a question, and the answers that were compared with it.

    Statements of other documents with the same gold words may answer or not: they are left out.
    """
    kept: list[tuple[Statement, float, float]] = []
    for statement, odds in zip(reading.statements, reading.log_odds, strict=True):
        share = share_of_gold(statement, asked.gold)
        share = share if share == 1 or asked.kind in MANY else 0.0
        is_own = title in {None, statement[0].split(" > ")[0]}
        if (share and is_own) or not (share or math.isnan(odds)):
            kept.append((statement, odds, share))
    if len(kept) < 2:
        return None
    answering = [place for place, (*_, share) in enumerate(kept) if share]
    whole = [place for place in answering if kept[place][2] == 1]
    wrong = [place for place in range(len(kept)) if place not in answering]
    # A part of two is read for one of the answers, and the whole for both.
    is_whole = asked.kind == "list" or reading.question == asked.text
    return Sample(
        reading.question,
        f"{folder} {asked.file}",
        tuple(statement for statement, *_ in kept),
        tuple(whole or answering),
        tuple(sorted(wrong, key=lambda place: -kept[place][1])[:_MAX_TEMPTING]),
        all_right=asked.kind in MANY and is_whole and not whole,
    )
