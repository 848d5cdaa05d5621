"""Prepare a database for serving, and report what a server lacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from portal.database import bm25, corruption, extensions
from portal.database import health as server_health
from portal.database.cancelling import Cancelled
from portal.domain.search import KeywordBackend
from portal.domain.search.bm25 import Bm25Parameters
from portal.embeddings.layer import fix_length
from portal.errors import (
    EmbedderUnavailable,
    InvalidEmbedding,
    NoSuchModel,
    RerankerUnavailable,
    ScannerUnavailable,
)
from portal.ingest import reader_process
from portal.services import Services
from portal.services.documents.intake import malware
from portal.services.models import catalog
from portal.services.operations.starting import unused_settings
from portal.settings.search import uses_bm25
from portal.settings.unused import UnusedSetting
from portal.store import migrations as store_migrations
from portal.store.documents import vocabulary
from portal.store.embedding_models import builds, registry
from portal.store.embedding_models.builds import IndexState
from portal.store.search.keywords import index as keyword_index
from portal.store.search.keywords.index import KeywordState
from portal.store.session import Session

_RANKINGS = {
    "pg_textsearch": "BM25 (pg_textsearch)",
    "tsvector": "ts_rank_cd (tsvector)",
    "off": "off",
    None: "unknown before portal migrate",
}
_HYBRID = {
    True: "semantic and words",
    False: "semantic only",
    None: "unknown before portal migrate",
}


def prepare_database(services: Services, *, revision: str = "head") -> Iterator[str]:
    """Prepare schema, extensions, keyword index and model partition; yield each step. Raises
    ServerSetup when the server cannot serve the portal."""
    database = services.database
    if revision != "head":
        yield f"schema to {revision}"
        store_migrations.migrate(database.url, revision)
        return
    yield "extensions"
    with database.engine.connect() as connection:
        extensions.ensure_extensions(connection)
    yield "schema"
    store_migrations.migrate(database.url)
    yield "keyword index"
    prepare_keyword_index(services)
    with database.engine.begin() as connection:
        vocabulary.ensure_trigram_index(connection)
    yield f"embedding model {services.embedder.name}"
    try:
        catalog.refresh_registration(services)
    except (EmbedderUnavailable, InvalidEmbedding) as error:
        # The model may be back before it is needed, and keyword search works without it.
        yield f"{error} Until then search goes by words alone and no document can be indexed"
    for unused in _find_unused_settings(services):
        yield f"{unused.name} has no effect: {unused.reason}"


def _find_unused_settings(services: Services) -> list[UnusedSetting]:
    settings = services.settings
    with services.database.begin() as session:
        keywords = _read_keywords(session, services)
        return unused_settings(session, settings, keywords)


def prepare_keyword_index(services: Services) -> None:
    """Create the BM25 index if the settings want it, and rebuild it after a server start. Work that
    would take long is left to `repair_keyword_index`."""
    engine = services.database.engine
    if not uses_bm25(services.settings.search):
        return
    parameters, max_rows = _bm25_parameters(services), bm25.MAX_ROWS_AT_START
    with engine.begin() as connection:
        is_offered = bm25.ensure_index(connection, parameters, max_rows=max_rows)
    if is_offered:
        bm25.rebuild_after_start(engine, parameters, max_rows=max_rows)


def _read_keywords(session: Session, services: Services) -> KeywordState:
    # Not logged here: the processes that search log it when they start.
    wanted = services.settings.search.keyword_backend
    return keyword_index.read_state(session, wanted=wanted, logs=False)


def _bm25_parameters(services: Services) -> Bm25Parameters:
    settings = services.settings.search
    return Bm25Parameters(k1=settings.bm25_k1, b=settings.bm25_b)


def repair_keyword_index(
    services: Services, *, should_stop: Callable[[], bool] = lambda: False
) -> None:
    """Create the BM25 index if it is missing, and rebuild it concurrently if it does not answer.
    A build is left to the next call once `should_stop` returns True."""
    if uses_bm25(services.settings.search):
        engine, parameters = services.database.engine, _bm25_parameters(services)
        with suppress(Cancelled):
            bm25.repair(engine, parameters, should_stop=should_stop)


def schema_differences(services: Services) -> list[object]:
    """Return what autogenerate would change between the migrated database and the models."""
    store_migrations.migrate(services.database.url)
    with services.database.engine.connect() as connection:
        return store_migrations.differences(connection)


def diagnose(services: Services) -> dict[str, Any]:
    """Return what the server has and lacks, what each lack costs, and what to do."""
    with services.database.engine.connect() as connection:
        wants_bm25 = uses_bm25(services.settings.search)
        report = server_health.report(connection, wants_bm25=wants_bm25)
        revision = store_migrations.current_revision(connection)
    keywords = index = None
    is_current = store_migrations.serves_schema(revision)
    if is_current:
        with suppress(NoSuchModel):
            fix_length(services.embedder, catalog.find(services, services.embedder.name).dimensions)
        with services.database.read() as session:
            keywords = _read_keywords(session, services)
            if model := registry.find_active(session):
                index = builds.index_state(session, model, services.settings.search)
    settings = services.settings
    return {
        "fit": report.is_fit,
        "database": "your own (DATABASE_URL)" if settings.database_url else "embedded",
        "server_version": report.server_version,
        "extensions": report.extensions,
        "schema": revision,
        "schema_wanted": store_migrations.newest_revision(),
        "keyword_backend": keywords.alone.value if keywords else None,
        "hybrid": keywords.backend is not KeywordBackend.OFF if keywords else None,
        "bm25_state": report.bm25.state,
        "vector_index": index.state if index else None,
        "embedding_model": services.embedder.name,
        "readers_confined_by": (confinement := reader_process.probe_confinement()),
        "lacks": [
            asdict(lack)
            for lack in (
                *report.lacks,
                *_check_index(index),
                *_check_models(services),
                *_check_confinement(confinement),
                *_check_scanner(services),
                *(_check_settings(services) if is_current else ()),
            )
        ],
    }


@dataclass(frozen=True, slots=True)
class DeepLine:
    """A line of `portal doctor --deep`; not `is_well` if data is damaged or unchecked."""

    text: str
    is_well: bool = True


def check_deeply(services: Services) -> Iterator[DeepLine]:
    """Check all indexes and tables against each other, and rebuild damaged indexes, while the
    portal is running. Takes minutes for a large database."""
    checked = corruption.check(services.database.engine)
    if checked is None:
        yield DeepLine(
            "not checked: amcheck is not available. Install PostgreSQL's contrib package, and run "
            "CREATE EXTENSION amcheck as a superuser",
            is_well=False,
        )
        return
    count = 0
    for relation in checked:
        count += 1
        if relation.is_rebuilt:
            yield DeepLine(f"damaged and rebuilt: {relation.kind} {relation.name}")
        elif relation.is_damaged:
            remedy = "restore the last backup (portal restore FILE)"
            yield DeepLine(f"DAMAGED: {relation.kind} {relation.name}; {remedy}", is_well=False)
    yield DeepLine(f"checked {count} indexes and tables")


def _check_index(index: IndexState | None) -> Iterator[server_health.Shortcoming]:
    if index is None or index.state in {"ok", "off"}:
        return
    is_missing = index.state == "missing"
    yield server_health.Shortcoming(
        what="the vector index is missing" if is_missing else "vector index differs from settings",
        cost="searches by meaning compare every passage"
        if is_missing
        else f"searches use the one that stands ({index.has})",
        remedy=f"a running worker replaces it ({index.wanted}) while searches go on; at once: "
        "portal reindex",
    )


def _check_confinement(confinement: Mapping[str, bool]) -> Iterator[server_health.Shortcoming]:
    missing = [layer for layer, holds in confinement.items() if not holds]
    # Each of the two alone blocks files and network; the other layers are there in case they fail.
    if "landlock" in missing and "seccomp" in missing:
        yield server_health.Shortcoming(
            what=f"readers of uploaded files run without {' and '.join(missing)}",
            cost="a file that takes a parser over may do what the portal's user may",
            remedy="use Linux 5.13 or later on x86_64 or arm64; in a container, a runtime whose "
            "profile allows seccomp and Landlock",
        )


def _check_settings(services: Services) -> Iterator[server_health.Shortcoming]:
    for unused in _find_unused_settings(services):
        yield server_health.Shortcoming(
            what=f"{unused.name} has no effect",
            cost=unused.reason,
            remedy="take it out, or correct it",
        )


def _check_scanner(services: Services) -> Iterator[server_health.Shortcoming]:
    try:
        finds_test_file = malware.finds_test_file(services)
    except ScannerUnavailable:
        finds_test_file = False
    if not finds_test_file:
        yield server_health.Shortcoming(
            what="the malware scanner (PORTAL_UPLOADS__SCAN_COMMAND) does not recognise the EICAR "
            "test file",
            cost="every upload is refused, or infected ones are not",
            remedy="run the command by hand with the test file as its standard input: it should "
            "end with 1",
        )


def _check_models(services: Services) -> Iterator[server_health.Shortcoming]:
    """Call the models now, which loads local ones."""
    try:
        services.embedder.embed_query("?")
    except (EmbedderUnavailable, InvalidEmbedding) as error:
        yield server_health.Shortcoming(
            what=f"the embedding model {services.embedder.name} cannot be used",
            cost="search goes by words alone, and new documents cannot be indexed",
            remedy=str(error.reason),
        )
    if services.reranker is None:
        return
    try:
        services.reranker.load()
    except RerankerUnavailable as error:
        yield server_health.Shortcoming(
            what=f"the re-ranking model {services.reranker.name} cannot be used",
            cost="results stay in the order of fusion",
            remedy=str(error.reason),
        )


def report_lines(report: dict[str, Any]) -> Iterator[str]:
    """Yield the report of `diagnose` as lines for a terminal."""
    yield f"PostgreSQL {report['server_version']}, {report['database']}"
    for name, version in report["extensions"].items():
        yield f"  {name}: {version or 'missing'}"
    yield f"schema: {report['schema'] or 'none'} (this version wants {report['schema_wanted']})"
    ranks = _RANKINGS[report["keyword_backend"]]
    yield f"search by words: {ranks}; BM25 index {report['bm25_state']}"
    yield f"hybrid search: {_HYBRID[report['hybrid']]}"
    yield f"embedding model: {report['embedding_model']}"
    yield f"vector index: {report['vector_index'] or 'none'}"
    held = [layer for layer, holds in report["readers_confined_by"].items() if holds]
    missing = [layer for layer, holds in report["readers_confined_by"].items() if not holds]
    without = f"; not available here: {', '.join(missing)}" if missing else ""
    yield f"readers confined by: {', '.join(held) or 'nothing'}{without}"
    for lack in report["lacks"]:
        yield ""
        yield f"{'MISSING' if lack['is_fatal'] else 'lacking'}: {lack['what']}"
        yield f"  costs: {lack['cost']}"
        yield f"  do:    {lack['remedy']}"
    yield ""
    yield "fit to serve" if report["fit"] else "not fit to serve"
