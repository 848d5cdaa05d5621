"""Statements with questions that they answer and questions that they nearly answer, and how well
the shipped reader tells the two apart: `python -m eval.fitting.pairs`.

`eval/data/other-words` and `eval/data/near-misses` have ``{title, heading, statement, asked,
asked_across, near, near_across}`` a line: questions that the statement answers, in the former in
words that are not its own, and questions that it does not answer though they share its subject and
often its words; `_across` in the other language.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from eval.answers.sets import SHIPPED
from eval.fitting.reader_samples import Sample, Statement
from eval.measures import auroc
from eval.sets import read_rows
from portal.domain.embedding import StatementReader
from portal.embeddings import create_embedder
from portal.settings import EmbeddingSettings

OTHER_WORDS, NEAR_MISSES = (SHIPPED.parent / name for name in ("other-words", "near-misses"))
_HELD_OUT = "held-out-*.jsonl"  # By authors whose lines are never trained on.
HELD_OUT = tuple(path for one in (OTHER_WORDS, NEAR_MISSES) for path in sorted(one.glob(_HELD_OUT)))
_OTHERS = 2
_ANSWERED = "asked", "asked_across"
_NOT_ANSWERED = "near", "near_across"


def samples_to_train(folder: Path) -> list[Sample]:
    """Return the samples of a folder's authors that are trained on. Raises BadSet."""
    paths = (path for path in sorted(folder.glob("*.jsonl")) if not path.match(_HELD_OUT))
    return [sample for path in paths for sample in samples(path)]


def samples(path: Path) -> list[Sample]:
    """Return a sample for each question of a file: with its statement come some of the same
    document, and some that share most letters with the question. Raises BadSet."""
    rows = list(read_rows(path))
    statements = [_statement(row) for row in rows]
    pairs_of = [_letter_pairs(text) for _, text in statements]
    found = []
    for place, row in enumerate(rows):
        beside = [
            one for one in range(len(rows)) if one != place and rows[one]["title"] == row["title"]
        ]
        elsewhere = [one for one in range(len(rows)) if rows[one]["title"] != row["title"]]
        for question, is_answered in _questions(row):
            asked = _letter_pairs(question)
            alike = sorted(
                elsewhere, key=lambda one: -len(asked & pairs_of[one]) / (20 + len(pairs_of[one]))
            )
            chosen = [place, *beside[:_OTHERS], *alike[:_OTHERS]]
            others = tuple(range(1, len(chosen)))
            found.append(
                Sample(
                    question,
                    f"{path.stem} {row['title']}",
                    tuple(statements[one] for one in chosen),
                    (0,) if is_answered else (),
                    others if is_answered else (0, *others),
                )
            )
    return found


def _statement(row: Mapping[str, Any]) -> Statement:
    return " > ".join(filter(None, (row["title"], row["heading"]))), row["statement"]


def _questions(row: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """Yield the questions of a line, and whether its statement answers each."""
    for name in _ANSWERED:
        yield from ((question, True) for question in row[name])
    for name in _NOT_ANSWERED:
        yield from ((question, False) for question in row[name])


def _letter_pairs(text: str) -> set[str]:
    letters = "".join(text.lower().split())
    return {letters[place : place + 2] for place in range(len(letters) - 1)}


def log_odds(reader: StatementReader, path: Path, *, every: int = 1) -> dict[str, list[float]]:
    """Return the log odds that the statement of each line, or `every` nth, answers its questions,
    by their kind."""
    found: dict[str, list[float]] = {name: [] for name in (*_ANSWERED, *_NOT_ANSWERED)}
    for row in list(read_rows(path))[::every]:
        for name in found:
            read = (reader.read_answers(one, [_statement(row)], [0.0], 1) for one in row[name])
            found[name] += (float(one[0]) for one in read)
    return found


def main() -> None:
    reader = create_embedder(EmbeddingSettings())
    assert isinstance(reader, StatementReader)
    for path in HELD_OUT:
        found = log_odds(reader, path)
        for answered, near in zip(_ANSWERED, _NOT_ANSWERED, strict=True):
            print(
                f"{path.stem} {answered}: AUROC {auroc(found[answered], found[near]):.3f} ", end=""
            )
            print(f"of {len(found[answered])} answered and {len(found[near])} others")


if __name__ == "__main__":
    main()
