from __future__ import annotations

import copy
import io
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from rich.console import Console

from bench.__main__ import parse
from bench.folders import report as folder_report
from bench.plots import linear, logarithmic, write_plots
from bench.report import print_tables, write_page

TIMES = {"p50_ms": 2.0, "p95_ms": 4.5, "p99_ms": 120.4, "searches": 100}
FIGURES: dict[str, Any] = {
    "minutes": 1.5,
    "load_before": 0.1,
    "machine": {
        "cpu": "a <fast> one",
        "cores": 2,
        "memory_gb": 8,
        "python": "3.11",
        "vector": "0.8",
        "PostgreSQL": "18",
        "shared_buffers": "1GB",
        "package numpy": "2",
        "package x": None,
    },
    "sizes": {
        "10000": {
            "documents": 2000,
            "bare": {"bare vector index scan": TIMES, "bare BM25 index scan": TIMES},
            "ratio_to_bare": {"100 %": 1.25, "1 %": 2.0},
            "portal": [
                {
                    "profile": name,
                    "percent": percent,
                    "in_conversation": False,
                    **{"passages": 9700, "vector_recall": 0.99, "hybrid_recall": 1.0} | TIMES,
                    "switched_just_before": TIMES,
                    "breakdown": {
                        "plan": "join",
                        "total_ms": 3,
                        "python_ms": 1,
                        "in_database_ms": 2,
                        "waits": 2,
                        "configuration_ms": 0.5,
                        "words_ms": 0.25,
                        "statement_ms": 1.2,
                        "results_ms": 0.75,
                    },
                }
                for name, percent in (("100 %", 100.0), ("1 %", 1.0))
            ],
            "peers": [
                {"engine": "Chroma", "kind": "vector", "profile": "1 %", "recall": 0.5} | TIMES
            ],
            "http": [
                {"way": "search call", "added_ms": 0.0, "ratio": 1.0} | TIMES,
                {"way": "application", "added_ms": 3.25, "ratio": 2.625} | TIMES,
            ],
            "load": [
                {"profiles": name, "clients": count, "searches_a_second": 100.0 * count} | TIMES
                for name in ("100 %", "1 %")
                for count in (1, 8)
            ],
        }
    },
}


def test_tables_hold_every_figure() -> None:
    written = io.StringIO()
    console = Console(file=written, width=200)
    print_tables(console, 10_000, FIGURES["sizes"]["10000"])
    for expected in (
        "100 %",
        "9,700",
        "4.5",
        "120",
        "0.990",
        "1.2",
        "800, 4.5",
        "3.2",
        "2.62",
        "Chroma, vector",
    ):
        assert expected in written.getvalue()


def test_only_text_between_the_marks_of_the_page_is_replaced(tmp_path: Path) -> None:
    page = tmp_path / "performance.md"
    page.write_text(
        "# Prose\n\n<!-- bench: machine -->\nold\n<!-- /bench -->\nmore\n"
        "<!-- bench: peers -->\n<!-- /bench -->\n"
    )
    write_page(FIGURES, page)
    once = page.read_text()
    assert once.startswith("# Prose\n")
    assert "\nmore\n" in once
    assert "old" not in once
    assert "numpy 2" in once
    assert "| 1 % | portal, hybrid | 2.0 | 4.5 | 1.000 |" in once
    write_page(FIGURES, page)
    assert page.read_text() == once


def test_plots_are_well_formed_and_show_every_line(tmp_path: Path) -> None:
    write_plots(FIGURES, tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {f"performance-{what}-10000.svg" for what in ("latency", "recall", "load")}
    for path in tmp_path.iterdir():
        root = ElementTree.parse(path).getroot()
        assert root.get("aria-label")
    lines = ElementTree.parse(tmp_path / "performance-latency-10000.svg").findall(".//{*}polyline")
    assert len(lines) == 3


def test_a_size_without_peers_has_no_lines_and_no_table_of_them(tmp_path: Path) -> None:
    alone = copy.deepcopy(FIGURES)
    alone["sizes"]["10000"]["peers"] = []
    write_plots(alone, tmp_path)
    assert "Chroma" not in (tmp_path / "performance-latency-10000.svg").read_text()
    written = io.StringIO()
    print_tables(Console(file=written), 10_000, alone["sizes"]["10000"])
    assert "engine" not in written.getvalue()


def test_scales_span_their_values() -> None:
    scale = logarithmic(1.3, 180)
    assert scale.ticks == (1, 2, 5, 10, 20, 50, 100, 200)
    assert scale.place(1) == 0
    assert scale.place(200) == pytest.approx(1)
    assert linear(1.0).place(0.25) == 0.25


def test_unknown_selectivity_and_missing_page_are_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        parse(["--page", "missing.md"])
    with pytest.raises(SystemExit):
        parse(["--selectivity", "100,33"])
    assert "33" in capsys.readouterr().err
    assert parse(["--quick"]).sizes == (10_000,)


INGEST: dict[str, Any] = {
    "files": 2,
    "pages": 3,
    "passages": 4,
    "load_before": 0.5,
    "cores": 2,
    "pipeline": [
        {
            "name": "as it is",
            "files_a_second": 4.0,
            "pages_a_second": 5.0,
            "passages_a_second": 123.0,
            "stored_a_second": 30.0,
            "reused": 1,
            "ratio": 4.04,
        }
    ],
    "parts": {"reading": 3.25, "embedding": 96.75},
    "model": [
        {
            "engine": "onnxruntime",
            "threads": 2,
            "at_once": 16,
            "passages_a_second": 9.0,
            "ratio": 4.0,
            "min_cosine": 0.99912,
        }
    ],
}


def test_ingest_run_updates_only_its_own_tables(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    names = ("search", "ingest_corpus", "ingest", "ingest_parts", "ingest_model")
    page.write_text("".join(f"<!-- bench: {name} -->\nold\n<!-- /bench -->\n" for name in names))
    write_page({"sizes": {}, "ingest": INGEST, "load_before": 0.5, "minutes": 1.0}, page)
    written = page.read_text()
    assert written.count("old") == 1
    assert "<!-- bench: search -->\nold\n" in written
    assert "2 files of 3 pages, 4 chunks" in written
    assert "| as it is | 4.00 | 5.00 | 123.0 | 4.0 | 1 of 4 |" in written
    assert "| embedding | 96.8 |" in written
    assert "| onnxruntime | 2 | 16 | 9.00 | 4.0 | 0.9991 |" in written
    assert parse(["--ingest"]).sizes == ()


def test_v1_run_updates_its_table_and_says_whether_a_goal_is_met(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "".join(f"<!-- bench: {n} -->\nold\n<!-- /bench -->\n" for n in ("search", "v1"))
    )
    times = TIMES | {"degraded": 0, "processor_ms": 80.0}
    rows = [
        {"path": path, "goal_ms": goal} | times | {"p95_ms": p95}
        for path, goal, p95 in (("/v1/search", 150.0, 149.0), ("/v1/answer", 3000.0, 3001.0))
    ]
    v1 = {"documents": 50_000, "model": "e5", "model_latency_s": 2.5, "rows": rows}
    write_page({"sizes": {}, "v1": v1, "load_before": 0.5, "minutes": 1.0}, page)
    written = page.read_text()
    assert written.count("old") == 1
    assert "50,000 documents, questions embedded by e5" in written
    assert "| /v1/search | 100 | 0 | 2.0 | 149 | 120 | < 150 ms, met | 80.0 |" in written
    assert "| /v1/answer | 100 | 0 | 2.0 | 3001 | 120 | < 3000 ms, missed | 80.0 |" in written
    only = parse(["--v1"])
    assert (only.sizes, only.ingest, only.v1) == ((), False, True)
    assert parse(["--ingest"]).v1 is False
    assert parse([]).v1 is None


def test_pages_run_updates_its_table_and_says_whether_the_goal_is_met(tmp_path: Path) -> None:
    page = tmp_path / "performance.md"
    page.write_text("<!-- bench: pages -->\n<!-- /bench -->\n", encoding="utf-8")
    times = {"paint_p50_ms": 16.0, "shown_p50_ms": 90.4, "shown_p95_ms": 210.6, "count": 25}
    times |= {"thread_p50_ms": 12.0, "thread_p95_ms": 30.0}
    rows = [
        {"interaction": "a switch", "paint_p95_ms": 45.0} | times,
        {"interaction": "typing", "paint_p95_ms": 101.0} | times,
    ]
    pages = {"documents": 50_000, "goal_ms": 100, "rows": rows}
    write_page({"sizes": {}, "load_before": 0.4, "pages": pages}, page)
    text = page.read_text(encoding="utf-8")
    assert "50,000 documents in folders. Load before it: 0.4." in text
    assert "| a switch | 25 | 16 | 45 | ≤ 100 ms, met | 90 | 211 | 12 | 30 |" in text
    assert "| typing | 25 | 16 | 101 | ≤ 100 ms, missed | 90 | 211 | 12 | 30 |" in text
    options = parse(["--pages"])
    assert (options.sizes, options.folders, options.pages) == ((), False, True)


def test_tables_of_folders_have_a_cell_for_each_column() -> None:
    seconds = {"s": 1.2, "undo_s": 0.5}
    folders = {
        "documents": 50_000,
        "folders": 2_000,
        "groups": 200,
        "changed": 10_000,
        "reads": [
            {"read": "list", "flat": TIMES, "filed": TIMES},
            {"read": "tree", "filed": TIMES},
        ],
        "changes": [{"change": "move", "filed": seconds}],
        "meanwhile": {"alone": TIMES, "meanwhile": TIMES, "moves": 4, "move_s": 1.2},
    }
    for make in (folder_report.read_rows, folder_report.change_rows, folder_report.meanwhile_rows):
        head, *rows = make(folders)
        assert {len(row) for row in rows} == {len(head)}
    options = parse(["--folders"])
    assert (options.sizes, options.ingest, options.v1, options.folders) == ((), False, False, True)


def test_upkeep_run_updates_its_table(tmp_path: Path) -> None:
    page = tmp_path / "performance.md"
    page.write_text("<!-- bench: upkeep -->\n<!-- /bench -->\n")
    upkeep = {
        "passages": 10_000,
        "rows": [
            {"work": "delete of 1,600 documents", "s": 1.24, "undo_s": 4.0} | TIMES,
            {"work": "restart to first search", "s": 1_300.0},
        ],
    }
    write_page({"sizes": {}, "load_before": 0.4, "upkeep": upkeep}, page)
    text = page.read_text()
    assert "10,000 chunks. Load before it: 0.4." in text
    assert "| delete of 1,600 documents | 1.2 | 4.0 | 2.0 | 4.5 |" in text
    assert "| restart to first search | 1,300.0 |  |  |  |" in text
    options = parse(["--upkeep", "10000"])
    assert (options.sizes, options.folders, options.upkeep) == ((), False, 10_000)
    assert parse([]).upkeep is False
