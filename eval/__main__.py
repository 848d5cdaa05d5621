"""`./run eval`: quality of the portal's search and answers."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from eval import chunk_sizes, sets
from eval.answers.sets import HALVES, QUESTIONS
from eval.cached_embedder import CachedEmbedder
from eval.sets import BadSet, QuestionSet

# More than any model reads of a chunk.
_NEVER_CUT_TOKENS = 8192


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./run eval",
        description="Measure search on sets of questions: NAME.docs.jsonl and NAME.queries.jsonl.",
        epilog="The first run embeds every passage, which is slow; the vectors are kept in "
        "var/eval. docs/retrieval-quality.md explains the tables.",
    )
    parser.add_argument(
        "--data",
        type=Path,
        help=f"folder of sets; else ${sets.DATA_VARIABLE}, else a small own one",
    )
    parser.add_argument("--sets", nargs="+", metavar="NAME", help="only these sets")
    parser.add_argument("--limit", type=_positive, metavar="N", help="N questions a set")
    parser.add_argument(
        "--mixed", action="store_true", help="all sets' passages in one corpus, not each alone"
    )
    parser.add_argument(
        "--whole", action="store_true", help="passages as they are, not cut as the portal would"
    )
    parser.add_argument(
        "--answers",
        action="store_true",
        help="measure answers instead of search: on the shipped documents of a team, or on the "
        "sets in --data",
    )
    parser.add_argument(
        "--half",
        choices=(*HALVES, "both"),
        default=HALVES[0],
        help="with --answers, which half of the shipped questions; tune only on the first",
    )
    parser.add_argument(
        "--failures", action="store_true", help="with --answers, show what went wrong as well"
    )
    parser.add_argument(
        "--chunking", action="store_true", help="compare lengths of passages instead (an hour)"
    )
    parser.add_argument("--provider", default=None, help="embedding provider, else as configured")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument(
        "--feedback",
        action="store_true",
        help="show the feedback on this portal's answers instead",
    )
    return parser.parse_args(arguments)


def _positive(text: str) -> int:
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError("has to be 1 or more")
    return number


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    # Leave through the contexts, so that the scratch server stops and its directory is removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    console = Console()
    if options.answers:
        return _measure_answers(console, options)
    if options.chunking and options.limit is None:
        options.limit = chunk_sizes.QUESTIONS
    if options.feedback:
        from eval import feedback

        return feedback.run(console, options.json)
    try:
        known, chosen = read(options)
    except BadSet as error:
        print(f"eval: {error}", file=sys.stderr)
        return 1
    if options.chunking:
        return chunk_sizes.run(console, chosen, provider=options.provider, path=options.json)
    corpora = [chosen] if options.mixed else [[one] for one in chosen]
    figures: dict[str, Any] = {}
    with ExitStack() as stack:
        database = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="portal-eval-")))
        progress = stack.enter_context(_progress(console))
        for corpus in corpora:
            figures |= measure(corpus, known, database, options, progress)
            if options.json:  # Kept in case the rest is interrupted.
                options.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    report(console, figures)
    return 0


def _measure_answers(console: Console, options: argparse.Namespace) -> int:
    from eval.answers import quality as answer_quality
    from eval.answers import quotations as answers

    if options.data and not (options.data / QUESTIONS).is_file():
        return answers.measure(options.data, options.limit)
    try:
        return answer_quality.run(
            console, options.data, options.half, shows=options.failures, path=options.json
        )
    except BadSet as error:
        print(f"eval: {error}", file=sys.stderr)
        return 1


def read(options: argparse.Namespace) -> tuple[list[QuestionSet], list[QuestionSet]]:
    """Return all sets of the folder, and those to measure. Raises BadSet."""
    directory = sets.data_dir(options.data)
    names = sets.names(directory)
    if missing := sorted(set(options.sets or ()) - set(names)):
        there = ", ".join(names)
        raise BadSet(f"there is no set {', '.join(missing)} in {directory}, but {there}")
    known = [sets.load(directory, name) for name in names]
    chosen = [
        sets.load(directory, name, limit=options.limit)
        for name in dict.fromkeys(options.sets or names)
    ]
    return known, chosen


def measure(
    corpus: Sequence[QuestionSet],
    known: Sequence[QuestionSet],
    database: Path,
    options: argparse.Namespace,
    progress: Progress,
) -> dict[str, Any]:
    """Measure each set over a corpus with the chunks of all of them."""
    from eval.engine import METHODS, scratch_engine
    from eval.evaluation import evaluate, off_topic_questions
    from portal.settings import load_settings

    settings = load_settings(data_dir=database, log_level="error")
    if options.provider:
        embedding = settings.embedding.model_copy(update={"provider": options.provider})
        settings = settings.model_copy(update={"embedding": embedding})
    if options.whole:
        ingest = settings.ingest.model_copy(update={"chunk_tokens": _NEVER_CUT_TOKENS})
        settings = settings.model_copy(update={"ingest": ingest})
    figures: dict[str, Any] = {}
    with scratch_engine(database, settings, CachedEmbedder) as engine:
        for one in corpus:
            task = progress.add_task(f"{one.name}: passages", total=len(one.chunks))
            engine.add(one.chunks, on_done=partial(progress.advance, task))
        for one in corpus:
            off_topic = off_topic_questions(one, corpus, known)
            total = len(one.questions) * (len(METHODS) + 1) + len(off_topic)
            task = progress.add_task(f"{one.name}: questions", total=total)
            figures[one.name] = {
                "passages": sum(len(each.chunks) for each in corpus),
                **evaluate(engine, one, off_topic, partial(progress.advance, task)),
            }
    return figures


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )


def report(console: Console, figures: dict[str, Any]) -> None:
    """Print the tables, and the sets on which hybrid search is worse than its better leg."""
    for measure_, title in (("ndcg_at_10", "nDCG@10"), ("hit_at_5", "hit@5")):
        console.print(_quality_table(figures, measure_, title))
    console.print(_confidence_table(figures))
    for name, one in figures.items():
        if (below := one["hybrid_below_best_leg"]) > 0:
            console.print(f"{name}: hybrid is {below:.1f} below the better leg", style="yellow")


def _quality_table(figures: dict[str, Any], measure_: str, title: str) -> Table:
    table = Table(title=f"{title}, in percent")
    table.add_column("set")
    methods = list(next(iter(figures.values()))["methods"])
    for heading in (*methods, "other script"):
        table.add_column(heading, justify="right")
    for name, one in figures.items():
        other = one["other_script"]
        table.add_row(
            name,
            *(f"{one['methods'][method][measure_]:.1f}" for method in methods),
            f"{other[measure_]:.1f}" if other else "–",
        )
    return table


def _confidence_table(figures: dict[str, Any]) -> Table:
    table = Table(title="Confidence of the first result")
    table.add_column("set")
    columns = {
        "calibration error": "error_of_first",
        "right flagged low": "right_first_flagged_low",
        "off-topic flagged low": "off_topic_first_flagged_low",
        "AUROC": "auroc",
    }
    for heading in columns:
        table.add_column(heading, justify="right")
    for name, one in figures.items():
        values = [one["confidence"][key] for key in columns.values()]
        table.add_row(name, *("–" if value is None else f"{value:.3f}" for value in values))
    return table


if __name__ == "__main__":
    sys.exit(main())
