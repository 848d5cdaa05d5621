"""`./run load`: measure the portal under normal load, under overload, and after it."""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any

import psutil

from bench.corpus import DEFAULT_DATA_DIR, open_corpus
from bench.load import machinery, report
from bench.load.idle import Idle
from bench.load.watching import Watch

_ARRIVALS_PER_SECOND = 4
_MIN_DESCRIPTORS = 8192


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./run load",
        description="Let simulated people use a portal of its own, then too many, then as before.",
        epilog="The corpus is made once and kept in the data directory (50,000 documents: 400 MB).",
    )
    parser.add_argument("--users", type=int, default=64, help="people at work (64)")
    parser.add_argument("--idle", type=int, default=1900, help="idle or slow connections (1900)")
    parser.add_argument("--seconds", type=int, default=3600, help="of steady work (3600)")
    parser.add_argument("--overload", type=int, help="people of the overload (4 × --users)")
    parser.add_argument("--overload-seconds", type=int, default=30)
    parser.add_argument("--recovery-seconds", type=int, default=60)
    parser.add_argument(
        "--pause", type=float, default=8.0, metavar="S", help="between two actions, on average (8)"
    )
    parser.add_argument("--documents", type=int, default=50_000)
    parser.add_argument("--accounts", type=int, default=2_000)
    parser.add_argument("--data-dir", type=Path, default=DEFAULT_DATA_DIR)
    parser.add_argument("--stale-ok", action="store_true", help="take a corpus of an older schema")
    parser.add_argument("--page", type=Path, metavar="FILE", help="renew the tables in this page")
    options = parser.parse_args()
    options.overload = options.overload or 4 * options.users
    return options


def main() -> int:
    options = _parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    _raise_descriptors()
    text = _measure(options)
    print(text)
    if options.page:
        report.write_page(text, options.page)
    return 0


def _raise_descriptors() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MIN_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(_MIN_DESCRIPTORS, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))


def _measure(options: argparse.Namespace) -> str:
    data_dir = options.data_dir.resolve()
    folder = data_dir / "load"
    folder.mkdir(parents=True, exist_ok=True)
    load_before = psutil.getloadavg()[0]
    with open_corpus(
        options.documents, data_dir, log=_log, stale_ok=options.stale_ok, mean_chunks=1
    ) as corpus:
        machinery.make_accounts(corpus, options.accounts)
        plan = _plan(options, [one.text for one in corpus.questions])
        plan_file, record = folder / "plan.json", folder / "requests.jsonl"
        plan_file.write_text(json.dumps(plan), encoding="utf-8")
        with machinery.served(corpus, folder, data_dir / "postgres", environment={}) as portal:
            with (
                Idle(machinery.HOST, portal.port, options.idle) as idle,
                Watch(portal.url, portal.trees, [idle]) as watch,
            ):
                _log(f"{options.users} people, {options.idle} idle connections")
                status = machinery.run_locust(portal.port, plan_file, record)
            sizes = machinery.sizes(corpus)
    if status not in {0, 1}:  # 1: some request failed, as the tables say.
        raise SystemExit(f"locust ended with {status}; see {record.with_suffix('.log')}")
    events = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
    settings = plan | {
        "users": options.users,
        "overload": options.overload,
        "documents": options.documents,
        "cores": os.cpu_count(),
        "load_before": load_before,
    }
    return report.page_text(report.Run(events, watch.samples, sizes, settings))


def _plan(options: argparse.Namespace, questions: list[str]) -> dict[str, Any]:
    arrival_s = options.users / _ARRIVALS_PER_SECOND
    return {
        "stages": [
            ("arrival", arrival_s + 10, options.users),
            ("base", options.seconds, options.users),
            ("overload", options.overload_seconds, options.overload),
            ("recovery", options.recovery_seconds, options.users),
        ],
        "arrivals_a_second": _ARRIVALS_PER_SECOND,
        "pause_s": (options.pause / 2, options.pause * 1.5),
        "names": machinery.NAMES,
        "password": machinery.PASSWORD,
        "accounts": options.accounts,
        "questions": questions,
    }


def _log(message: str) -> None:
    print(f"load: {message}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
