"""Sets of questions with the words that their answers must contain.

A set is a folder: documents, and `questions.jsonl` with ``{id, kind, question, gold}`` per line.
`gold` lists words that an answer must contain, an inner list alternatives; `after` is a question to
ask before, in the same conversation, or a list of several. Questions without `gold` have no answer
in the documents.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from eval.sets import BadSet, read_rows
from portal.text.characters.folding import fold

SHIPPED = Path(__file__).parents[1] / "data" / "team"
QUESTIONS = "questions.jsonl"
HALVES = ("tune", "held-out")
_SPACE_OR_MARKUP = re.compile(r"[\s\\*`]")


class Expected(StrEnum):
    """The expected outcome of a question: a quotation with the gold words, no quotation, or a reply
    that quotes nothing and has the gold words."""

    ANSWER = "answer"
    ABSTENTION = "abstention"
    REPLY = "reply"


# What each kind of question expects.
KINDS: Mapping[str, Expected] = {
    "fact": Expected.ANSWER,
    "row": Expected.ANSWER,
    "list": Expected.ANSWER,
    "two": Expected.ANSWER,
    "follow": Expected.ANSWER,
    "cross": Expected.ANSWER,
    "absent": Expected.ABSTENTION,
    "foreign": Expected.ABSTENTION,
    "greeting": Expected.REPLY,
    "about": Expected.REPLY,
    "documents": Expected.REPLY,
    "summarise": Expected.REPLY,
    "translate": Expected.REPLY,
    "calculate": Expected.REPLY,
}


@dataclass(frozen=True, slots=True)
class AnswerQuestion:
    """`gold` are the words that an answer must contain, each with its alternatives."""

    id: str
    kind: str
    text: str
    gold: tuple[tuple[str, ...], ...]
    after: tuple[str, ...] = ()

    @property
    def expected(self) -> Expected:
        return KINDS[self.kind]

    def share_of_gold(self, answer: str) -> float:
        """Return the share of the gold words that an answer contains; 1 if there are none."""
        said = plain(answer)
        found = [any(plain(one) in said for one in words) for words in self.gold]
        return sum(found) / len(found) if found else 1.0


@dataclass(frozen=True, slots=True)
class AnswerSet:
    name: str
    documents: tuple[Path, ...]
    questions: tuple[AnswerQuestion, ...]


def load_halves(chosen: str) -> list[AnswerSet]:
    """Load the shipped set: "tune", "held-out" or "both". Raises BadSet."""
    return [load(SHIPPED / half) for half in HALVES if chosen in {half, "both"}]


def load(directory: Path) -> AnswerSet:
    """Load the set in a folder. Raises BadSet."""
    questions = tuple(_questions(directory / QUESTIONS))
    documents = documents_in(directory)
    if not documents or not questions:
        raise BadSet(f"{directory} needs documents and questions")
    return AnswerSet(directory.name, documents, questions)


def documents_in(directory: Path) -> tuple[Path, ...]:
    """Return the documents of a set, sorted by name."""
    files = (path for path in directory.iterdir() if path.is_file())
    return tuple(sorted(path for path in files if path.name not in {QUESTIONS, "README.md"}))


def _questions(path: Path) -> Iterator[AnswerQuestion]:
    for row in read_rows(path):
        kind, text, gold = row.get("kind"), row.get("question"), row.get("gold", [])
        if kind not in KINDS:
            raise BadSet(f"{row.place}: `kind` has to be one of {', '.join(KINDS)}")
        if not isinstance(text, str) or not text.strip():
            raise BadSet(f"{row.place}: `question` is missing or no text")
        if (KINDS[kind] is Expected.ABSTENTION) == bool(gold):
            raise BadSet(
                f"{row.place}: `gold` is for questions with an answer, and for all of them"
            )
        after = row.get("after", ())
        asked_before = (after,) if isinstance(after, str) else tuple(after)
        if not all(map(_is_text, asked_before)):
            raise BadSet(f"{row.place}: `after` has to be a question, or a list of questions")
        yield AnswerQuestion(
            str(row.get("id", "")), kind, text, gold_of(gold, row.place), asked_before
        )


def gold_of(values: Any, place: str) -> tuple[tuple[str, ...], ...]:
    """Return gold words, each with its alternatives. Raises BadSet."""
    words = [[one] if isinstance(one, str) else one for one in values]
    if not all(isinstance(one, list) and one and all(map(_is_text, one)) for one in words):
        raise BadSet(f"{place}: `gold` has to be a list of words, or of lists of alternatives")
    return tuple(map(tuple, words))


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def plain(text: str) -> str:
    """Return a text without differences of script, case, width, white space and markup."""
    return _SPACE_OR_MARKUP.sub("", fold(text).text)
