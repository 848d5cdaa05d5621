"""`./run bench`: latency, recall and throughput of search and its peers, and of ingest."""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console

from bench import promises
from bench.corpus import DEFAULT_DATA_DIR, Corpus, open_corpus
from bench.corpus.profiles import SHARES
from bench.folders import measure_folders
from bench.ingest import QUICK, WHOLE, measure_ingest
from bench.measure import Plan, measure
from bench.plots import write_plots
from bench.promises import DOCUMENTS, measure_promises
from bench.report import print_part, print_tables, write_page
from bench.upkeep import measure_upkeep

_PEERS_UP_TO = 50_000
_PACKAGES = (
    "psycopg",
    "sqlalchemy",
    "pgvector",
    "numpy",
    "langchain-postgres",
    "chromadb",
    "lancedb",
    "milvus-lite",
)


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(float(part) for part in text.split(","))


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./run bench",
        description="Measure search on synthetic corpora, question embedding aside, and ingest.",
        epilog="Corpora are made once and kept in the data directory (about 4 GB for all sizes). "
        "docs/performance.md explains the tables.",
    )
    parser.add_argument(
        "--sizes", type=_numbers, default=(10_000, 50_000, 200_000), metavar="N,N",
        help="chunks in a corpus (10000,50000,200000)",
    )  # fmt: skip
    parser.add_argument(
        "--selectivity", type=_numbers, default=SHARES, metavar="P,P",
        help="percent of the documents that are switched on: some of 100,50,10,1,0.1",
    )  # fmt: skip
    parser.add_argument("--clients", type=_numbers, default=(1, 8), metavar="N,N")
    parser.add_argument(
        "--seconds", type=float, default=2.0, help="time for each figure of latency or load (2)"
    )
    parser.add_argument(
        "--peers", action=argparse.BooleanOptionalAction, default=True,
        help=f"four other stores beside it, up to {_PEERS_UP_TO} chunks",
    )  # fmt: skip
    parser.add_argument(
        "--ingest", action=argparse.BooleanOptionalAction, default=None,
        help="only ingest, or all but ingest (both)",
    )  # fmt: skip
    parser.add_argument(
        "--v1", action=argparse.BooleanOptionalAction, default=None,
        help="only /v1 with the bundled model, or all but /v1 (both)",
    )  # fmt: skip
    parser.add_argument(
        "--folders", action=argparse.BooleanOptionalAction, default=None,
        help="only lists and changes of 50,000 documents in folders, or all but those (both)",
    )  # fmt: skip
    parser.add_argument(
        "--pages", action=argparse.BooleanOptionalAction, default=False,
        help="only interactions with pages of 50,000 documents, in Chromium",
    )  # fmt: skip
    parser.add_argument(
        "--upkeep", type=int, default=False, metavar="N",
        help="only what a corpus of N chunks costs to keep: indexing, bulk changes, vacuum, "
        "a backup, a restart",
    )  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="10000 chunks, short, no peers")
    parser.add_argument("--data-dir", type=Path, default=DEFAULT_DATA_DIR)
    parser.add_argument(
        "--stale-ok", action="store_true",
        help="take a kept corpus although the schema or the analyser changed since it was made",
    )  # fmt: skip
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    parser.add_argument("--plots", type=Path, metavar="DIR", help="write SVG plots there")
    parser.add_argument(
        "--page", type=Path, metavar="FILE", help="renew the tables of docs/performance.md there"
    )
    options = parser.parse_args(arguments)
    if unknown := set(options.selectivity) - set(SHARES):
        parser.error(f"--selectivity: {sorted(unknown)} are none of {SHARES}")
    if options.page and not options.page.is_file():
        parser.error(f"--page: there is no file {options.page}")
    if options.quick:
        options.sizes, options.seconds, options.peers = (10_000,), 1.0, False
    if options.ingest or options.v1 or options.folders or options.pages or options.upkeep:
        # Run only the parts selected by name.
        options.sizes = ()
        for name in _PARTS:
            setattr(options, name, getattr(options, name) or False)
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    # Stop the database server on SIGTERM as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    console = Console()
    started = time.monotonic()
    figures: dict[str, Any] = {"load_before": round(psutil.getloadavg()[0], 2), "sizes": {}}
    for size in map(int, options.sizes):
        _measure_size(options, size, figures)
        print_tables(console, size, figures["sizes"][str(size)])
        _keep(options, figures)
    for name, measure_part in _PARTS.items():
        if getattr(options, name) is not False:
            figures[name] = measure_part(options, figures)
            print_part(console, name, figures[name])
            _keep(options, figures)
    figures["minutes"] = round((time.monotonic() - started) / 60, 1)
    if options.plots and figures["sizes"]:
        write_plots(figures, options.plots)
    if options.page:
        write_page(figures, options.page)
    console.print(f"{figures['minutes']} minutes")
    return 0


def _keep(options: argparse.Namespace, figures: dict[str, Any]) -> None:
    """Write the figures so far, so that an interrupted run keeps them."""
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


def _log_of(part: str) -> Callable[[str], None]:
    """Return a log in plain lines: a spinner would use the processor while contenders are timed."""

    def log(message: str) -> None:
        print(f"{part}: {message}", file=sys.stderr, flush=True)

    return log


def _measure_size(options: argparse.Namespace, size: int, figures: dict[str, Any]) -> None:
    plan = Plan(
        percents=tuple(options.selectivity),
        clients=tuple(map(int, options.clients)),
        seconds=options.seconds,
        recall_questions=40 if options.quick else 100,
        peers=options.peers and size <= _PEERS_UP_TO,
    )

    log = _log_of(str(size))
    with open_corpus(size, options.data_dir, log=log, stale_ok=options.stale_ok) as corpus:
        figures["machine"] = machine(corpus)
        figures["sizes"][str(size)] = measure(corpus, options.data_dir.resolve(), plan, log=log)


def _measure_ingest(options: argparse.Namespace, _figures: dict[str, Any]) -> dict[str, Any]:
    log = _log_of("ingest")
    scale = QUICK if options.quick else WHOLE
    return measure_ingest(options.data_dir.resolve(), scale, log=log)


def _measure_promises(options: argparse.Namespace, figures: dict[str, Any]) -> dict[str, Any]:
    log = _log_of("/v1")
    scale = promises.QUICK if options.quick else promises.WHOLE
    size = DOCUMENTS // 10 if options.quick else DOCUMENTS
    with _documents(options, figures, log, size=size) as corpus:
        return measure_promises(corpus, options.data_dir.resolve(), scale, log=log)


def _measure_folders(options: argparse.Namespace, figures: dict[str, Any]) -> dict[str, Any]:
    log = _log_of("folders")
    with _documents(options, figures, log) as corpus:
        return measure_folders(corpus, options.data_dir.resolve(), seconds=options.seconds, log=log)


def _measure_pages(options: argparse.Namespace, figures: dict[str, Any]) -> dict[str, Any]:
    # Playwright is a dependency of tests; the other parts do not need it.
    from bench.pages import measure_pages

    log = _log_of("pages")
    with _documents(options, figures, log) as corpus:
        return measure_pages(corpus, options.data_dir.resolve(), log=log)


@contextmanager
def _documents(
    options: argparse.Namespace,
    figures: dict[str, Any],
    log: Callable[[str], None],
    *,
    size: int = DOCUMENTS,
) -> Iterator[Corpus]:
    """Open a corpus of documents of one chunk, and describe the machine if no part has yet."""
    with open_corpus(
        size, options.data_dir, log=log, stale_ok=options.stale_ok, mean_chunks=1
    ) as corpus:
        figures.setdefault("machine", machine(corpus))
        yield corpus


def _measure_upkeep(options: argparse.Namespace, _figures: dict[str, Any]) -> dict[str, Any]:
    log = _log_of("upkeep")
    data_dir, stale_ok = options.data_dir.resolve(), options.stale_ok
    return measure_upkeep(options.upkeep, data_dir, stale_ok=stale_ok, log=log)


# The parts other than the searches at each size, by the option that selects them.
_PARTS = {
    "ingest": _measure_ingest,
    "v1": _measure_promises,
    "folders": _measure_folders,
    "pages": _measure_pages,
    "upkeep": _measure_upkeep,
}


def machine(corpus: Corpus) -> dict[str, Any]:
    """Describe the machine of the measurements."""
    with corpus.services.database.engine.connect() as connection:
        rows = connection.exec_driver_sql(
            """
            SELECT 'PostgreSQL', current_setting('server_version')
            UNION ALL SELECT extname, extversion FROM pg_extension
             WHERE extname IN ('vector', 'pg_textsearch')
            UNION ALL SELECT name, current_setting(name) FROM pg_settings
             WHERE name IN ('shared_buffers', 'work_mem')
            """
        ).all()
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 2**30),
        "python": platform.python_version(),
        **{str(name): value for name, value in rows},
        **{f"package {name}": _version(name) for name in _PACKAGES},
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


if __name__ == "__main__":
    sys.exit(main())
