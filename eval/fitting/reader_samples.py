"""Questions with the statements of a document and which of them answer, to train the reader on.

`eval/data/team/train` has documents, and `questions.jsonl` with ``{document, kind, zh, en, gold,
near}`` a line: a question in both languages, texts of the document that answer it, and one that
only seems to.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from eval.answers.sets import SHIPPED, gold_of, plain
from eval.sets import read_rows
from portal.answering.quoting.phrasing import context_of, spelled_out
from portal.answering.quoting.statements import statements
from portal.domain.answering import Source
from portal.domain.documents.structure import BlockKind
from portal.ingest.chunking import split
from portal.ingest.extraction import extract
from portal.ingest.limits import FileToRead
from portal.ingest.media_types import sniff_file

TRAIN = SHIPPED / "train"
PUBLIC = ("en_xquad", "zh_cmrc2018_trial", "zhtw_drcd_dev", "cross_en_to_zh", "cross_zh_to_en")
# The set with the same questions whose answers are in the language of the documents.
_ANSWERS_OF = {"cross_en_to_zh": "cross_zh_to_en", "cross_zh_to_en": "cross_en_to_zh"}
_NOWHERE = UUID(int=0)
# Kinds of questions that several statements answer together.
MANY = frozenset({"list", "two"})

Statement = tuple[str, str]
"""What a statement is read under, and its text."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A question with the statements of one document. Any of `right` answers it, or each of them
    with `all_right`; `tempting` only seem to."""

    question: str
    document: str
    statements: tuple[Statement, ...]
    right: tuple[int, ...]
    tempting: tuple[int, ...] = ()
    all_right: bool = False


def team_samples(folder: Path = TRAIN) -> list[Sample]:
    """Return the samples of a folder, each question in both languages."""
    read = {path.name: _statements(sources_of(path)) for path in sorted(folder.glob("*.md"))}
    found = []
    for row in read_rows(folder / "questions.jsonl"):
        said = read[row.get("document")]
        right, all_right = _right(row.get("kind"), gold_of(row.get("gold") or [], row.place), said)
        near = row.get("near")
        tempting = tuple(
            place
            for place, one in enumerate(said)
            if near and _has(one, near) and place not in right
        )
        if bool(right) == (row.get("kind") != "absent"):
            found += [
                Sample(row.get(language), row.get("document"), said, right, tempting, all_right)
                for language in ("zh", "en")
            ]
    return found


def public_samples(folder: Path) -> list[Sample]:
    """Return the samples of the public sets in a folder: NAME.docs.jsonl with ``{id, title, text}``
    and NAME.queries.jsonl with ``{id, text, doc_id, answerable, answers}`` a line."""
    return [sample for name in PUBLIC for sample in _public(folder, name)]


def _public(folder: Path, name: str) -> Iterable[Sample]:
    documents = {row["id"]: row for row in _lines(folder / f"{name}.docs.jsonl")}
    other = _lines(folder / f"{_ANSWERS_OF.get(name, name)}.queries.jsonl")
    answers = {row["id"]: row["answers"] for row in other if row["answerable"]}
    for row in _lines(folder / f"{name}.queries.jsonl"):
        document = documents[row["doc_id"]]
        said = _statements([_source(document["text"], document["title"].replace("_", " "))])
        right = tuple(
            place
            for place, one in enumerate(said)
            if any(_has(one, answer) for answer in answers.get(row["id"], []))
        )
        if right:
            yield Sample(row["text"], f"{name} {row['doc_id']}", said, right)


def sources_of(path: Path) -> list[Source]:
    """Return the chunks of a file as an answer gets them."""
    with path.open("rb") as stream:
        media_type = sniff_file(stream, path.name)
    chunks = split(extract(FileToRead(path=path, name=path.name), media_type))
    return [
        _source(
            chunk.content,
            path.stem,
            heading=chunk.heading,
            context=chunk.context,
            blocks=chunk.blocks,
            heading_starts=frozenset(
                block.start for block in chunk.blocks if block.kind is BlockKind.HEADING
            ),
        )
        for chunk in chunks
    ]


def _statements(sources: Sequence[Source]) -> tuple[Statement, ...]:
    return tuple(
        (context_of(source, one), spelled_out(one, source.text))
        for source in sources
        for one in statements(source)
    )


def _right(
    kind: str, gold: Sequence[Sequence[str]], said: Sequence[Statement]
) -> tuple[tuple[int, ...], bool]:
    """Return which statements have the gold words: all of them, else any; and whether each of these
    is part of the answer."""
    shares = [share_of_gold(one, gold) for one in said]
    whole = tuple(place for place, share in enumerate(shares) if share == 1)
    if whole:
        return whole, False
    return tuple(place for place, share in enumerate(shares) if share), kind in MANY


def share_of_gold(statement: Statement, gold: Sequence[Sequence[str]]) -> float:
    """Return the share of the gold words that a statement has; 0 where there are none."""
    met = [any(_has(statement, one) for one in words) for words in gold]
    return sum(met) / len(met) if met else 0.0


def _has(statement: Statement, words: str) -> bool:
    # Gold words of a row may hold the borders of its cells, which are spelled out otherwise.
    return all(plain(one) in plain(statement[1]) for one in words.strip("| ").split("|"))


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _source(text: str, title: str, **known: object) -> Source:
    return Source(
        number=1,
        document_id=_NOWHERE,
        revision_id=_NOWHERE,
        chunk_id=_NOWHERE,
        title=title,
        media_type="text/plain",
        text=text,
        char_start=0,
        char_end=len(text),
        language="",
        **known,
    )
