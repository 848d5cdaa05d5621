"""Quality of the portal's answers on documents like those of a team: `./run eval --answers`.

Every question is asked in its own conversation, of a portal that holds the documents of its set, so
the text that a user reads is measured. Failures of the held-out half are counted but not shown, so
that they are not tuned on.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from eval.answers import sets as answer_sets
from eval.answers.quoted_pieces import headings, is_half, is_heading
from eval.answers.sets import KINDS, AnswerQuestion, AnswerSet, Expected
from eval.engine import Answered, Engine, Wrap, scratch_engine
from eval.measures import calibration_error
from portal.settings import load_settings

# Kinds of questions that a single sentence, row or item answers.
_ONE_STATEMENT = ("fact", "row", "list")
_CUT = ("… ", " …")


@dataclass(frozen=True, slots=True)
class Result:
    """How a question was answered. `share` is the share of gold words that the answer contains."""

    question: AnswerQuestion
    text: str
    is_quoting: bool
    share: float
    headings_alone: int
    half_sentences: int
    seconds: float
    confidence: float = 0.0

    @property
    def is_right(self) -> bool:
        match self.question.expected:
            case Expected.ANSWER:
                return self.is_quoting and self.share == 1
            case Expected.REPLY:
                return not self.is_quoting and self.share == 1
            case Expected.ABSTENTION:
                return not self.is_quoting


def measure(
    console: Console, chosen: Sequence[AnswerSet], *, shows: bool, path: Path | None
) -> int:
    """Print the tables of each set; with `shows` also the failures, except of the held-out half."""
    figures: dict[str, Any] = {}
    for one in chosen:
        with console.status(f"{one.name}: {len(one.questions)} questions"):
            results = ask_all(one)
        figures[one.name] = summary(results)
        console.print(table(one.name, figures[one.name]))
        if shows and one.name != "held-out":
            _show_failures(console, results)
    if path:
        path.write_text(json.dumps(figures, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


def ask_all(one: AnswerSet) -> list[Result]:
    """Ask every question of a set, of a portal that holds its documents."""
    with engine_of(one.documents) as engine:
        return [ask(engine, question) for question in one.questions]


@contextmanager
def engine_of(documents: Iterable[Path], wrap: Wrap = lambda model: model) -> Iterator[Engine]:
    """Open a portal that holds the documents, with its embedder in `wrap`. Raises BadSet."""
    with tempfile.TemporaryDirectory(prefix="portal-eval-") as directory:
        settings = load_settings(data_dir=Path(directory), log_level="error")
        with scratch_engine(Path(directory), settings, wrap) as engine:
            for document in documents:
                engine.add_file(document)
            yield engine


def ask(engine: Engine, question: AnswerQuestion) -> Result:
    """Ask a question, after the questions that it follows."""
    answered = engine.converse([*question.after, question.text])
    return Result(
        question=question,
        text=answered.text,
        is_quoting=answered.is_quoting,
        share=question.share_of_gold(answered.text),
        headings_alone=_count_headings(answered),
        half_sentences=_count_halves(answered),
        seconds=answered.seconds,
        confidence=answered.confidence,
    )


def _count_headings(answered: Answered) -> int:
    return sum(
        is_heading(one.text[one.start : one.end], headings(one.path)) for one in answered.quotations
    )


def _count_halves(answered: Answered) -> int:
    halves = sum(is_half(one.text, one.start, one.end) for one in answered.quotations)
    quoted = [line for line in answered.text.splitlines() if line.startswith(">")]
    return halves + sum(any(cut in line for cut in _CUT) for line in quoted)


def summary(results: Sequence[Result]) -> dict[str, Any]:
    """Return the figures of a set: by kind, by what is expected, and over all."""
    asked = Counter(result.question.kind for result in results)
    groups: dict[str, Callable[[Result], bool]] = {
        kind: lambda one, kind=kind: one.question.kind == kind for kind in KINDS if asked[kind]
    }
    groups |= {
        "one sentence, row or item": lambda one: one.question.kind in _ONE_STATEMENT,
        "any answer": lambda one: one.question.expected is Expected.ANSWER,
        "any abstention": lambda one: one.question.expected is Expected.ABSTENTION,
        "any reply": lambda one: one.question.expected is Expected.REPLY,
    }
    milliseconds = [1000 * one.seconds for one in results]
    return {
        "kinds": {name: _figures(filter(is_in, results)) for name, is_in in groups.items()},
        "headings alone": sum(one.headings_alone for one in results),
        "half sentences": sum(one.half_sentences for one in results),
        "calibration error": _calibration_error(results),
        "ms": {str(share): round(float(np.percentile(milliseconds, share))) for share in (50, 95)},
    }


def _calibration_error(results: Sequence[Result]) -> float:
    """Return the calibration error of quoted answers."""
    quoted = [one for one in results if one.confidence]
    return round(
        calibration_error([one.confidence for one in quoted], [one.is_right for one in quoted]), 3
    )


def _figures(results: Iterable[Result]) -> dict[str, Any]:
    found = list(results)
    if not found:
        return {"questions": 0}
    return {
        "questions": len(found),
        "right": _percent(one.is_right for one in found),
        "gold": _percent(one.share for one in found),
        "quoting": _percent(one.is_quoting for one in found),
    }


def _percent(shares: Iterable[float]) -> float:
    return round(100 * float(np.mean(list(shares))), 1)


def table(name: str, figures: dict[str, Any]) -> Table:
    """Return the figures of a set as a table, one kind of question per row."""
    latency = figures["ms"]
    shown = Table(
        title=f"Answers, {name}",
        caption=f"headings or header rows quoted alone: {figures['headings alone']} · "
        f"half sentences: {figures['half sentences']} · "
        f"calibration error: {figures['calibration error']} · "
        f"ms: median {latency['50']}, p95 {latency['95']}",
    )
    shown.add_column("kind")
    for heading in ("questions", "right %", "gold words %", "quoting %"):
        shown.add_column(heading, justify="right")
    for kind, one in figures["kinds"].items():
        if kind == "one sentence, row or item":
            shown.add_section()
        cells = [str(one.get(key, "–")) for key in ("questions", "right", "gold", "quoting")]
        shown.add_row(kind, *cells)
    return shown


def _show_failures(console: Console, results: Iterable[Result]) -> None:
    for one in results:
        if one.is_right and not one.headings_alone and not one.half_sentences:
            continue
        gold = " + ".join("|".join(words) for words in one.question.gold) or "abstention"
        head = f"{one.question.id} {one.question.kind}: {one.question.text} → {gold}"
        flags = one.headings_alone * " [heading]" + one.half_sentences * " [half]"
        console.print(f"\n{head}{flags}\n{one.text}", markup=False, highlight=False)


def run(console: Console, data: Path | None, half: str, *, shows: bool, path: Path | None) -> int:
    """Measure the shipped halves, or the set in the folder `data`. Raises BadSet."""
    chosen = [answer_sets.load(data)] if data else answer_sets.load_halves(half)
    return measure(console, chosen, shows=shows, path=path)
