"""Tables of the ingest benchmark."""

from __future__ import annotations

from typing import Any

Rows = list[list[str]]


def pipeline_rows(ingest: dict[str, Any]) -> Rows:
    """Return the rows of the whole pipeline, by variant."""
    head = ["the portal with", "files/s", "pages/s", "chunks/s", "× the package's own engine"]
    rows = [[*head, "vectors reused"]]
    for one in ingest["pipeline"]:
        speeds = (one[f"{what}_a_second"] for what in ("files", "pages", "passages"))
        reused = f"{one['reused']} of {ingest['passages']}"
        rows.append([one["name"], *map(_speed, speeds), f"{one['ratio']:.1f}", reused])
    return rows


def part_rows(ingest: dict[str, Any]) -> Rows:
    """Return the shares of a document's time in the default variant."""
    shares = ingest["parts"].items()
    return [["part", "% of the time"], *([part, f"{share:.1f}"] for part, share in shares)]


def model_rows(ingest: dict[str, Any]) -> Rows:
    """Return the rows of the model alone, by engine, threads and batch size."""
    head = ["engine", "threads", "texts at once", "chunks/s", "× the package's own engine"]
    rows = [[*head, "least cosine to it"]]
    for one in ingest["model"]:
        numbers = [str(one["threads"]), str(one["at_once"]), _speed(one["passages_a_second"])]
        rows.append([one["engine"], *numbers, f"{one['ratio']:.1f}", f"{one['min_cosine']:.4f}"])
    return rows


def corpus_text(ingest: dict[str, Any]) -> str:
    """Describe the files of the measurement."""
    stored = max(one["stored_a_second"] for one in ingest["pipeline"])
    return (
        f"{ingest['files']} files of {ingest['pages']} pages, {ingest['passages']} chunks, on "
        f"{ingest['cores']} cores. Storing and queueing alone: {_speed(stored)} files a second."
    )


def _speed(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.1f}"
