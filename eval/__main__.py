"""`./run eval`: retrieval quality of the portal's own search, legs and fusions side by side."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from eval import sets
from eval.measures import Quality, calibration_error, quality
from eval.sets import QuestionSet

KEPT = Path("var") / "eval"


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./run eval",
        description="Measure search on sets of questions: NAME.docs.jsonl and NAME.queries.jsonl.",
        epilog="The first run embeds every passage, which is slow; the vectors are kept in "
        "var/eval. docs/retrieval-quality.md explains the table.",
    )
    parser.add_argument(
        "--data",
        type=Path,
        help=f"folder of sets; else ${sets.DATA_VARIABLE}, else a small own one",
    )
    parser.add_argument("--sets", nargs="+", metavar="NAME", help="only these sets")
    parser.add_argument("--limit", type=int, metavar="N", help="N questions a set")
    parser.add_argument(
        "--mixed", action="store_true", help="all sets' passages in one corpus, not each alone"
    )
    parser.add_argument("--provider", default=None, help="embedding provider, else as configured")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    # Ended from outside, the scratch server has to stop and its directory to go as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    console = Console()
    directory = sets.data_dir(options.data)
    names = options.sets or sets.names(directory)
    if not names or (missing := sorted(set(names) - set(sets.names(directory)))):
        what = f"no set {', '.join(missing)}" if names else "no sets"
        print(f"eval: there are {what} in {directory}", file=sys.stderr)
        return 1
    chosen = [sets.load(directory, name, limit=options.limit) for name in names]
    corpora = [chosen] if options.mixed else [[one] for one in chosen]
    figures: dict[str, Any] = {}
    with ExitStack() as stack:
        database = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="portal-eval-")))
        progress = stack.enter_context(_progress(console))
        for corpus in corpora:
            figures |= measure(corpus, database, options, progress)
    console.print(_table(figures))
    worse = [name for name, one in figures.items() if one["hybrid_below_best_leg"] > 0]
    for name in worse:
        below = figures[name]["hybrid_below_best_leg"]
        console.print(f"{name}: hybrid is {below:.1f} below the better leg", style="yellow")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    return 0


def measure(
    corpus: Sequence[QuestionSet],
    database: Path,
    options: argparse.Namespace,
    progress: Progress,
) -> dict[str, Any]:
    """Figures of each set, over a corpus that holds the passages of all of them."""
    from eval.engine import METHODS, scratch_engine
    from eval.remembered import RememberedPassages
    from portal.settings import load_settings

    settings = load_settings(data_dir=database, log_level="error")
    if options.provider:
        embedding = settings.embedding.model_copy(update={"provider": options.provider})
        settings = settings.model_copy(update={"embedding": embedding})
    figures: dict[str, Any] = {}
    with scratch_engine(
        database, settings, lambda embedder: RememberedPassages(embedder, KEPT / "vectors.sqlite")
    ) as engine:
        for one in corpus:
            task = progress.add_task(f"{one.name}: passages", total=len(one.passages))
            engine.add(one.passages, told=lambda task=task: progress.advance(task))  # type: ignore[misc]
        for one in corpus:
            total = len(one.questions) * len(METHODS)
            task = progress.add_task(f"{one.name}: questions", total=total)
            rankings: dict[str, list[tuple[list[str], frozenset[str]]]] = {m: [] for m in METHODS}
            stated: list[float] = []
            right: list[bool] = []
            for question in one.questions:
                for method in METHODS:
                    found, confidence = engine.rank(question.text, method)
                    rankings[method].append((found, question.relevant))
                    if method == "hybrid" and confidence is not None:
                        stated.append(confidence)
                        right.append(bool(found) and found[0] in question.relevant)
                    progress.advance(task)
            figures[one.name] = _figures(
                {method: quality(pairs) for method, pairs in rankings.items()}, stated, right
            )
    return figures


def _figures(
    by_method: dict[str, Quality], stated: list[float], right: list[bool]
) -> dict[str, Any]:
    better_leg = max(by_method["keyword"].ndcg_at_10, by_method["vector"].ndcg_at_10)
    flagged = [one < 0.5 for one, is_right in zip(stated, right, strict=True) if is_right]
    return {
        "methods": {method: one.as_dict() for method, one in by_method.items()},
        "hybrid_below_best_leg": round(max(0.0, better_leg - by_method["hybrid"].ndcg_at_10), 2),
        "confidence_error_of_first": round(calibration_error(stated, right), 3),
        "relevant_first_flagged_low": round(sum(flagged) / max(1, len(flagged)), 3),
    }


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )


def _table(figures: dict[str, Any]) -> Table:
    table = Table(title="nDCG@10 · hit@1 · hit@5, in percent")
    table.add_column("set")
    methods = list(next(iter(figures.values()))["methods"])
    for method in methods:
        table.add_column(method, justify="right")
    table.add_column("flagged low", justify="right")
    for name, one in figures.items():
        cells = [one["methods"][method] for method in methods]
        table.add_row(
            name,
            *(f"{c['ndcg_at_10']:.1f} · {c['hit_at_1']:.1f} · {c['hit_at_5']:.1f}" for c in cells),
            f"{100 * one['relevant_first_flagged_low']:.1f}%",
        )
    return table


if __name__ == "__main__":
    sys.exit(main())
