"""Load question sets. Errors are `BadSet`, with the file and the line."""

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


class BadSet(Exception):
    """A folder or a file that is not a question set, with the reason."""


@dataclass(frozen=True, slots=True)
class Chunk:
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
    chunks: tuple[Chunk, ...]
    questions: tuple[Question, ...]


def data_dir(chosen: Path | None = None) -> Path:
    """Return the folder of sets: the argument, PORTAL_EVAL_DATA, or the shipped small set."""
    configured = os.environ.get(DATA_VARIABLE)
    return chosen or (Path(configured) if configured else SHIPPED)


def names(directory: Path) -> list[str]:
    """Return the sets in the directory that have both files. Raises BadSet if there are none."""
    if not directory.is_dir():
        raise BadSet(f"{directory} is no directory")
    found = sorted(
        path.name.removesuffix(_QUESTIONS)
        for path in directory.glob(f"*{_QUESTIONS}")
        if path.with_name(path.name.replace(_QUESTIONS, _DOCUMENTS)).is_file()
    )
    if not found:
        raise BadSet(
            f"there is no set in {directory}: a set is two files, NAME{_DOCUMENTS} and "
            f"NAME{_QUESTIONS}"
        )
    return found


def load(directory: Path, name: str, *, limit: int | None = None) -> QuestionSet:
    """Load a set; `limit` keeps that many questions, evenly spread, and all chunks. Questions
    without a known answer are dropped. Raises BadSet."""
    chunks = tuple(
        Chunk(id=_id(row), title=_string(row, "title", ""), text=_string(row, "text"))
        for row in read_rows(directory / f"{name}{_DOCUMENTS}")
    )
    known = {chunk.id for chunk in chunks}
    if len(known) < len(chunks):
        raise BadSet(f"{name}{_DOCUMENTS}: {len(chunks) - len(known)} ids occur twice")
    # Questions are validated before they are dropped, so that mistakes are reported.
    asked = [
        Question(id=_id(row), text=_string(row, "text"), relevant=_relevant(row) & known)
        for row in read_rows(directory / f"{name}{_QUESTIONS}")
    ]
    questions = [question for question in asked if question.relevant]
    if not questions:
        raise BadSet(f"{name}{_QUESTIONS}: no question has a passage of the set in its `qrels`")
    if limit is not None and limit < len(questions):
        step = len(questions) / limit
        questions = [questions[int(place * step)] for place in range(limit)]
    return QuestionSet(name=name, chunks=chunks, questions=tuple(questions))


class Row(dict[str, Any]):
    """The values of a line, and its `place` for error messages."""

    def __init__(self, values: dict[str, Any], place: str) -> None:
        super().__init__(values)
        self.place = place


def _relevant(row: Row) -> frozenset[str]:
    judged = row.get("qrels") or {}
    if not isinstance(judged, dict):
        raise BadSet(f"{row.place}: `qrels` has to map ids of passages to grades")
    try:
        return frozenset(str(document) for document, grade in judged.items() if float(grade) > 0)
    except (TypeError, ValueError) as error:
        raise BadSet(f"{row.place}: a grade in `qrels` is no number") from error


def _id(row: Row) -> str:
    if not isinstance(row.get("id"), str | int):
        raise BadSet(f"{row.place}: `id` is missing, or neither text nor a number")
    return str(row["id"])


def _string(row: Row, name: str, default: str | None = None) -> str:
    value = row.get(name)
    if value is None and default is not None:
        return default
    if not isinstance(value, str):
        raise BadSet(f"{row.place}: `{name}` is missing or no text")
    return value


def read_rows(path: Path) -> Iterator[Row]:
    """Read the lines of a JSONL file. Raises BadSet."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield _row(line, f"{path.name}, line {number}")
    except (OSError, UnicodeDecodeError) as error:
        raise BadSet(f"{path} cannot be read: {error}") from error


def _row(line: str, place: str) -> Row:
    try:
        values = json.loads(line)
    except ValueError as error:
        raise BadSet(f"{place}: no JSON ({error})") from error
    if not isinstance(values, dict):
        raise BadSet(f"{place}: no JSON object")
    return Row(values, place)
