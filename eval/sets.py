"""Reading question sets."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DATA_VARIABLE = "PORTAL_EVAL_DATA"
SHIPPED = Path(__file__).parent / "data" / "mini"

_DOCUMENTS = ".docs.jsonl"
_QUESTIONS = ".queries.jsonl"


@dataclass(frozen=True, slots=True)
class Passage:
    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    id: str
    text: str
    relevant: frozenset[str]


@dataclass(frozen=True, slots=True)
class QuestionSet:
    name: str
    passages: tuple[Passage, ...]
    questions: tuple[Question, ...]


def data_dir(chosen: Path | None = None) -> Path:
    """Where the sets are: the argument, PORTAL_EVAL_DATA, or the small set that is shipped."""
    configured = os.environ.get(DATA_VARIABLE)
    return chosen or (Path(configured) if configured else SHIPPED)


def names(directory: Path) -> list[str]:
    """Sets in the directory: those that have both files."""
    return sorted(
        path.name.removesuffix(_QUESTIONS)
        for path in directory.glob(f"*{_QUESTIONS}")
        if path.with_name(path.name.replace(_QUESTIONS, _DOCUMENTS)).is_file()
    )


def load(directory: Path, name: str, *, limit: int | None = None) -> QuestionSet:
    """One set; `limit` keeps that many questions, spread evenly, and every passage."""
    passages = tuple(
        Passage(id=str(row["id"]), title=row.get("title") or "", text=row["text"])
        for row in _rows(directory / f"{name}{_DOCUMENTS}")
    )
    known = {passage.id for passage in passages}
    questions = [
        Question(id=str(row["id"]), text=row["text"], relevant=relevant)
        for row in _rows(directory / f"{name}{_QUESTIONS}")
        if (relevant := _relevant(row) & known)
    ]
    if limit is not None and limit < len(questions):
        step = len(questions) / limit
        questions = [questions[int(place * step)] for place in range(limit)]
    return QuestionSet(name=name, passages=passages, questions=tuple(questions))


def _relevant(row: dict[str, Any]) -> frozenset[str]:
    judged = row.get("qrels") or {}
    return frozenset(str(document) for document, grade in judged.items() if grade > 0)


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.strip():
                yield json.loads(line)
