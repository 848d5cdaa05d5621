"""Ingest: files, pages and chunks per second through the whole pipeline, and where the time goes.

Each run has its own database and does what a portal does: files are stored as `portal import`
stores them, and a worker takes them from the queue, reads, cuts, embeds, analyses and writes them,
with the bundled model.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import psutil
import psycopg
from sqlalchemy import text

from bench import SECRET_KEY, databases
from bench.embedding import PackageEngine, measure_embedding
from bench.ingest.files import Sheet, sheets
from portal.container import build_services
from portal.database.embedded import borrowed
from portal.domain.documents import Visibility
from portal.domain.embedding import Embedder
from portal.embeddings.providers.bundled import BundledEmbedder
from portal.processes.worker import work_until_empty
from portal.services import Services
from portal.services.documents.ingestion import chunk_storage, indexing
from portal.services.documents.intake import importing
from portal.services.operations import setup
from portal.services.people import accounts
from portal.settings import load_settings
from portal.store.documents import vocabulary
from portal.store.documents.ingestion import embedded_texts

READING, CUTTING, EMBEDDING, ANALYSING = "reading", "cutting", "embedding", "analysing"
DATABASE, REST = "waiting for the database", "the rest"
PARTS = (READING, CUTTING, EMBEDDING, ANALYSING, DATABASE, REST)
_WATCHED = (
    (READING, indexing, "extract"),
    (CUTTING, indexing, "split"),
    (ANALYSING, chunk_storage, "chunk_terms"),
    (ANALYSING, chunk_storage, "detect_language"),
    (ANALYSING, vocabulary, "words_of"),
    (DATABASE, psycopg.Connection, "wait"),
)
_SETTINGS = {
    "log_level": "error",
    "secret_key": SECRET_KEY,
    "embedding": {"provider": "bundled"},
}


@dataclass(frozen=True, slots=True)
class Scale:
    """The amount of work: files for the pipeline, texts for the model alone, rounds of each."""

    files: int
    texts: int
    rounds: int


QUICK, WHOLE = Scale(files=10, texts=6, rounds=1), Scale(files=24, texts=12, rounds=3)


@dataclass(frozen=True, slots=True)
class Variant:
    """A way to run the pipeline. `at_once` is the number of documents in progress; with `reuses`,
    equal texts share a vector."""

    name: str
    embedder: Callable[[], Embedder]
    at_once: int = 1
    reuses: bool = True


@dataclass(slots=True)
class Watch:
    """Seconds by part, of all threads together. A part within another counts only for the inner
    one."""

    seconds: Counter[str] = field(default_factory=Counter)
    reused: int = 0
    _inner: threading.local = field(default_factory=threading.local)

    def timed(self, part: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*values: Any, **named: Any) -> Any:
            outer = getattr(self._inner, "seconds", 0.0)
            self._inner.seconds = 0.0
            started = time.perf_counter()
            try:
                return call(*values, **named)
            finally:
                spent = time.perf_counter() - started
                self.seconds[part] += spent - self._inner.seconds
                self._inner.seconds = outer + spent

        return run


def measure_ingest(data_dir: Path, scale: Scale, *, log: Callable[[str], None]) -> dict[str, Any]:
    """Return figures, ready for JSON: `pipeline` and `model` rows, and `parts` of the portal as it
    is."""
    load = round(psutil.getloadavg()[0], 2)
    chosen = sheets(scale.files)
    variants = _variants()
    runs: dict[str, list[dict[str, Any]]] = {one.name: [] for one in variants}
    with tempfile.TemporaryDirectory(prefix="portal-bench-") as folder:
        files = [sheet.write(Path(folder)) for sheet in chosen]
        with borrowed((data_dir / "ingest").resolve(), report=log) as server_url:
            for number in range(scale.rounds):
                for variant in variants[:: 1 if number % 2 == 0 else -1]:
                    log(f"round {number + 1} of {scale.rounds}: {variant.name}")
                    runs[variant.name].append(_run(server_url, data_dir, variant, chosen, files))
    log("the model alone")
    texts = [chunk for sheet in chosen for chunk in sheet.chunks]
    return {
        "files": len(chosen),
        "pages": sum(sheet.pages for sheet in chosen),
        "passages": runs[variants[0].name][0]["passages"],
        "load_before": load,
        "cores": os.cpu_count(),
        "pipeline": [_summary(name, rows, runs[variants[0].name]) for name, rows in runs.items()],
        "parts": _shares(runs[variants[1].name]),
        "model": measure_embedding(texts[: scale.texts], rounds=scale.rounds),
    }


def _variants() -> list[Variant]:
    """Return the package's own engine first, in one thread, because several threads busy-wait for
    each other when anything else needs the processors; then the portal as it is. The others change
    one thing each."""
    cores = os.cpu_count() or 1
    return [
        Variant("the package's own engine", lambda: PackageEngine(1), reuses=False),
        Variant("as it is", lambda: BundledEmbedder(threads=cores)),
        Variant("same words embedded again", lambda: BundledEmbedder(threads=cores), reuses=False),
        Variant("one thread", lambda: BundledEmbedder(threads=1)),
        Variant("two documents at once", lambda: BundledEmbedder(threads=cores), at_once=2),
    ]


def _run(
    server_url: str, data_dir: Path, variant: Variant, chosen: Sequence[Sheet], files: list[Path]
) -> dict[str, Any]:
    embedder = variant.embedder()
    embedder.embed_chunks(["Loads the model before anything is timed."])
    with _portal(server_url, data_dir, embedder) as services, _watched(variant, embedder) as watch:
        owner = accounts.create_user(services, name="owner", password="correct horse battery")
        started = time.perf_counter()
        for one in importing.import_files(
            services, owner, files, domain=None, visibility=Visibility.SHARED
        ):
            if one.error is not None:
                raise one.error
        stored = time.perf_counter()
        watch.seconds.clear()
        work_until_empty(services, concurrency=variant.at_once)
        ended = time.perf_counter()
        with services.database.read() as session:
            count = session.scalar(text("SELECT count(*) FROM document_chunks")) or 0
            left = session.scalar(text("SELECT count(*) FROM documents WHERE status <> 'ready'"))
    if left:
        raise RuntimeError(f"{left} documents did not become ready")
    whole = (ended - stored) * variant.at_once
    parts = {part: watch.seconds[part] for part in PARTS[:-1]}
    return {
        "stored_a_second": len(files) / (stored - started),
        "files_a_second": len(files) / (ended - stored),
        "pages_a_second": sum(sheet.pages for sheet in chosen) / (ended - stored),
        "passages_a_second": count / (ended - stored),
        "passages": count,
        "reused": watch.reused,
        "parts": parts | {REST: max(0.0, whole - sum(parts.values()))},
    }


@contextmanager
def _portal(server_url: str, data_dir: Path, embedder: Embedder) -> Iterator[Services]:
    """Yield a portal on a new database, which is dropped at the end."""
    settings = load_settings(**_SETTINGS, data_dir=data_dir / "ingest")
    with databases.temporary(server_url, "bench_ingest") as url:
        services = replace(build_services(settings, database_url=url), embedder=embedder)
        try:
            for _ in setup.prepare_database(services):
                pass
            yield services
        finally:
            services.database.dispose()


@contextmanager
def _watched(variant: Variant, embedder: Embedder) -> Iterator[Watch]:
    watch, find = Watch(), embedded_texts.find_vectors

    def found(*values: Any, **named: Any) -> Any:
        vectors = find(*values, **named) if variant.reuses else {}
        watch.reused += len(vectors)
        return vectors

    with ExitStack() as stack:
        for part, owner, name in _WATCHED:
            timed = watch.timed(part, getattr(owner, name))
            stack.enter_context(patch.object(owner, name, timed))
        embed = watch.timed(EMBEDDING, embedder.embed_chunks)
        stack.enter_context(patch.object(embedder, "embed_chunks", embed))
        stack.enter_context(patch.object(embedded_texts, "find_vectors", found))
        yield watch


def _summary(
    name: str, rows: Sequence[dict[str, Any]], reference: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """Return medians over the rounds; the ratio is of chunks per second, round by round."""
    key = "passages_a_second"
    ratios = [row[key] / base[key] for row, base in zip(rows, reference, strict=True)]
    return {
        "name": name,
        **{
            one: round(median(row[one] for row in rows), 2)
            for one in ("files_a_second", "pages_a_second", key)
        },
        "stored_a_second": round(median(row["stored_a_second"] for row in rows), 1),
        "reused": rows[0]["reused"],
        "ratio": round(median(ratios), 2),
    }


def _shares(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Return percentages of a document's time, by part."""
    total = sum(sum(row["parts"].values()) for row in rows)
    return {part: round(100 * sum(row["parts"][part] for row in rows) / total, 1) for part in PARTS}
