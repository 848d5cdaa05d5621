"""Question sets of an operator, in the format of `./run eval`: NAME.queries.jsonl and, beside it,
NAME.docs.jsonl, which has the titles of chunks by id."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from portal.errors import InvalidInput

_QUESTIONS = ".queries.jsonl"
_CHUNKS = ".docs.jsonl"


@dataclass(frozen=True, slots=True)
class Question:
    """A question and its answers: ids of chunks, or names of documents."""

    text: str
    relevant: frozenset[str]


def read(directory: Path) -> Iterator[Question]:
    """Read the questions of all sets in a folder. Answers are given by the chunk's id, and by its
    title if the set includes its chunks. Raises InvalidInput, with file and line."""
    for path in sorted(directory.glob(f"*{_QUESTIONS}")):
        titles = _titles(path.with_name(path.name.removesuffix(_QUESTIONS) + _CHUNKS))
        for row, place in _rows(path):
            try:
                judged = row.get("qrels") or {}
                ids = {str(id_) for id_, grade in judged.items() if float(grade) > 0}
                text = str(row["text"])
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise _unreadable(place, error) from error
            yield Question(text, frozenset(ids | {titles[id_] for id_ in ids if id_ in titles}))


def _titles(path: Path) -> dict[str, str]:
    """Return the titles of a set's chunks by their ids; none if the set has only questions."""
    found = {}
    for row, place in _rows(path) if path.is_file() else ():
        try:
            if title := str(row.get("title") or ""):
                found[str(row["id"])] = title
        except KeyError as error:
            raise _unreadable(place, error) from error
    return found


def _rows(path: Path) -> Iterator[tuple[dict[str, Any], tuple[int, str]]]:
    # Editors on Windows begin a file with a byte order mark.
    with path.open(encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            place = (number, path.name)
            try:
                row = json.loads(line)
            except ValueError as error:
                raise _unreadable(place, error) from error
            if not isinstance(row, dict):
                raise _unreadable(place, TypeError("no JSON object"))
            yield row, place


def _unreadable(place: tuple[int, str], error: Exception) -> InvalidInput:
    number, name = place
    return InvalidInput(
        "line %(number)s of %(file)s is not a question: %(error)s",
        number=number,
        file=name,
        error=str(error),
    )
