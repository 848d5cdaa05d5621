"""The cost of keeping a corpus: indexing, bulk changes, vacuum, a backup and a restart, with the
times of searches meanwhile. The corpus has the same documents afterwards."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import psycopg

from bench.corpus import Corpus, open_corpus
from bench.folders import Client, change_and_undo
from bench.folders.filed import Filed
from bench.ingest.files import sheets
from bench.over_http import UNLIMITED
from bench.timing import Samples, repeating
from portal.domain.documents import Visibility
from portal.embeddings.providers.bundled import BundledEmbedder
from portal.processes.backups import writing
from portal.processes.worker import work_until_empty
from portal.services.documents import library
from portal.services.documents.intake import importing
from portal.services.operations import setup
from portal.services.people import accounts

_FILES = 24
_DOMAIN = "law"
_TABLES = ("documents", "document_chunks", "user_document_defaults")
_CHANGES: dict[str, dict[str, Any]] = {
    "switch": {"action": "switch", "enabled": False},
    "tag": {"action": "add_tag", "tag": "bench"},
    "delete": {"action": "delete"},
}
_BETWEEN_SEARCHES_S = 0.05

Row = dict[str, Any]


def measure_upkeep(
    size: int, data_dir: Path, *, stale_ok: bool, log: Callable[[str], None]
) -> dict[str, Any]:
    """Return rows with the seconds of each piece of work, ready for JSON."""
    with open_corpus(size, data_dir, log=log, stale_ok=stale_ok, **UNLIMITED) as corpus:
        log(f"{_FILES} files")
        rows = _index(corpus)
        client = Client(Filed(corpus, None), "owner")
        count = _count(corpus)
        for name, body in _CHANGES.items():
            log(f"{name} of {count} documents")
            with _searching(corpus) as meanwhile:
                taken = change_and_undo(client, body, domain=_DOMAIN, count=count)
            what = f"{name} of {count:,} documents"
            rows.append({"work": what, **taken, **meanwhile.as_dict()})
        for table in _TABLES:
            log(f"vacuum of {table}")
            with _searching(corpus) as meanwhile:
                seconds = _vacuum(corpus, table)
            rows.append({"work": f"vacuum of {table}", "s": seconds, **meanwhile.as_dict()})
        log("a backup")
        with _searching(corpus) as meanwhile:
            row = _back_up(corpus, data_dir)
        rows.append(row | meanwhile.as_dict())
    log("a restart")
    rows += _restart(size, data_dir)
    return {"passages": size, "rows": rows}


@contextmanager
def _searching(corpus: Corpus) -> Iterator[Samples]:
    """Search with all documents switched on, one search after the other, until the block ends."""
    taken: list[float] = []
    profile, questions = corpus.profile("100 %"), cycle(corpus.questions)

    def search_next() -> None:
        started = time.perf_counter()
        corpus.search(profile, next(questions))
        taken.append(time.perf_counter() - started)

    with repeating(search_next, pause_s=_BETWEEN_SEARCHES_S):
        yield Samples([taken])


def _index(corpus: Corpus) -> list[Row]:
    """Index new files with the bundled model, then purge them."""
    embedder = BundledEmbedder()
    embedder.embed_chunks(["Loads the model before anything is timed."])
    services = replace(corpus.services, embedder=embedder)
    owner = accounts.find_user(services, "owner")
    with tempfile.TemporaryDirectory(prefix="portal-bench-") as folder:
        files = [sheet.write(Path(folder)) for sheet in sheets(_FILES)]
        with _searching(corpus) as meanwhile:
            started = time.perf_counter()
            stored = list(
                importing.import_files(
                    services, owner, files, domain=None, visibility=Visibility.SHARED
                )
            )
            work_until_empty(services)
            indexed = time.perf_counter() - started
    rows = [{"work": f"index {_FILES} files", "s": round(indexed, 2), **meanwhile.as_dict()}]
    ids = [one.document_id for one in stored if one.document_id is not None]
    with _searching(corpus) as meanwhile:
        started = time.perf_counter()
        for document_id in ids:
            library.purge_document(services, owner, document_id)
        purged = time.perf_counter() - started
    rows.append({"work": f"purge {len(ids)} files", "s": round(purged, 2), **meanwhile.as_dict()})
    return rows


def _count(corpus: Corpus) -> int:
    """Return the number of documents in the domain that changes."""
    query = (
        "SELECT count(*) FROM documents"
        " WHERE domain = %s AND deleted_at IS NULL AND visibility = 'shared'"
    )
    with psycopg.connect(corpus.services.database.conninfo) as connection:
        row = connection.execute(query, [_DOMAIN]).fetchone()
    assert row is not None
    return int(row[0])


def _vacuum(corpus: Corpus, table: str) -> float:
    with psycopg.connect(corpus.services.database.conninfo, autocommit=True) as connection:
        started = time.perf_counter()
        connection.execute(f"VACUUM (ANALYZE) {table}".encode())
        return round(time.perf_counter() - started, 2)


def _back_up(corpus: Corpus, data_dir: Path) -> Row:
    path = data_dir / "bench.portal-backup"
    settings = corpus.services.settings
    settings = settings.model_copy(update={"database_url": corpus.services.database.url})
    started = time.perf_counter()
    try:
        writing.write(settings, path, force=True)
        seconds = round(time.perf_counter() - started, 1)
        size = path.stat().st_size / 1e9
    finally:
        path.unlink(missing_ok=True)
    return {"work": f"backup, {size:.1f} GB, read back", "s": seconds}


def _restart(size: int, data_dir: Path) -> list[Row]:
    """Time the first search after a start of the server, and a worker's rebuild of the keyword
    index."""
    started = time.perf_counter()
    with open_corpus(size, data_dir, stale_ok=True, has_words=False) as corpus:
        profile, question = corpus.profile("100 %"), corpus.questions[0]
        corpus.search(profile, question)
        first = time.perf_counter() - started
        with _searching(corpus) as meanwhile:
            setup.repair_keyword_index(corpus.services)
            ready = time.perf_counter() - started
        found = corpus.search(profile, question)
    if found.degraded:
        raise RuntimeError(f"searches are still degraded: {found.degraded}")
    return [
        {"work": "restart to first search", "s": round(first, 1)},
        {"work": "restart to search by words", "s": round(ready, 1), **meanwhile.as_dict()},
    ]
