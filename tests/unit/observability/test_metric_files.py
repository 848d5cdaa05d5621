"""Processes that share their counters: when they reset, fork, exit and are merged."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from pathlib import Path
from runpy import run_path

from portal.observability import metric_files, metrics

# Records the metrics named on standard input and confirms each, until it is killed.
PROCESS = """
import os, pathlib, sys
from portal.observability import metric_files, metrics
metric_files.join(pathlib.Path(sys.argv[1]))
for line in sys.stdin:
    word = line.strip()
    if word == "began":
        metrics.request_began("GET")
    elif word == "answered":
        metrics.request_answered("GET", "x", 200, 0.01)
    elif word == "forked":
        if os.fork() == 0:
            metrics.request_answered("GET", "x", 200, 0.01)
            os._exit(0)
        os.wait()
    print("done", flush=True)
"""


class Counting:
    def __init__(self, data_dir: Path) -> None:
        environment = {k: v for k, v in os.environ.items() if k != "PROMETHEUS_MULTIPROC_DIR"}
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROCESS, str(data_dir)],
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def tell(self, *words: str) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        for word in words:
            self.process.stdin.write(word + "\n")
            self.process.stdin.flush()
            assert self.process.stdout.readline() == "done\n"

    def end(self, number: int = signal.SIGKILL) -> None:
        self.process.send_signal(number)
        self.process.communicate()


def read(data_dir: Path) -> dict[str, float]:
    """Return the requests answered and in flight, as a scrape of any process would."""
    shared = metric_files._SharedFiles(data_dir / "metrics")
    samples = [sample for metric in shared.collect() for sample in metric.samples]
    wanted = {"_count": "answered", "in_flight_requests": "in flight"}
    return {
        word: sum(sample.value for sample in samples if sample.name.endswith(suffix))
        for suffix, word in wanted.items()
    }


def test_counts_add_up_and_outlive_their_process(tmp_path: Path) -> None:
    one, two = Counting(tmp_path), Counting(tmp_path)
    one.tell("began", "answered", "began")
    two.tell("began", "answered")
    assert read(tmp_path) == {"answered": 2, "in flight": 3}
    one.end()
    assert read(tmp_path) == {"answered": 2, "in flight": 1}
    three = Counting(tmp_path)
    three.tell("answered")
    assert read(tmp_path) == {"answered": 3, "in flight": 1}
    names = {path.name.split("_")[-1] for path in (tmp_path / "metrics").glob("histogram_*.db")}
    assert len(names) == 3, "two that live, and the past"
    two.end()
    three.end()


def test_first_process_of_a_set_starts_at_zero(tmp_path: Path) -> None:
    one = Counting(tmp_path)
    one.tell("answered")
    one.end()
    assert read(tmp_path)["answered"] == 1
    two = Counting(tmp_path)
    two.tell("began")
    assert read(tmp_path) == {"answered": 0, "in flight": 1}
    two.end()


def test_many_processes_that_exit_leave_a_bounded_number_of_files(tmp_path: Path) -> None:
    stays = Counting(tmp_path)
    stays.tell("answered")
    for _ in range(4):
        comes = Counting(tmp_path)
        comes.tell("answered")
        comes.end()
    assert read(tmp_path)["answered"] == 5
    assert len(list((tmp_path / "metrics").glob("*.db"))) <= 8
    stays.end()


def test_forked_process_has_its_own_counters(tmp_path: Path) -> None:
    one = Counting(tmp_path)
    one.tell("answered", "forked", "answered", "forked")
    assert read(tmp_path)["answered"] == 4
    one.end()


def test_without_a_directory_a_process_counts_alone(tmp_path: Path) -> None:
    (tmp_path / "metrics").write_text("in the way")
    with metric_files.joined(tmp_path):
        assert metric_files.collector() is metrics.REGISTRY
        assert "PROMETHEUS_MULTIPROC_DIR" not in os.environ


def test_process_that_leaves_counts_alone_again(tmp_path: Path) -> None:
    with metric_files.joined(tmp_path):
        assert metric_files.collector() is not metrics.REGISTRY
        # A second entry point in the same process, as with gunicorn's --preload.
        metric_files.join(tmp_path / "elsewhere")
        assert not (tmp_path / "elsewhere").exists()
        assert len(metric_files._alive(tmp_path / "metrics")) == 1
    assert metric_files.collector() is metrics.REGISTRY
    assert "PROMETHEUS_MULTIPROC_DIR" not in os.environ
    assert metric_files._alive(tmp_path / "metrics") == set()


def test_reading_gunicorns_configuration_joins_nothing() -> None:
    handlers = logging.getLogger().handlers
    run_path(str(Path(__file__).parents[3] / "gunicorn.conf.py"))
    assert metric_files.collector() is metrics.REGISTRY
    assert "PROMETHEUS_MULTIPROC_DIR" not in os.environ
    assert logging.getLogger().handlers is handlers
