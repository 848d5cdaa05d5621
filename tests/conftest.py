"""One PostgreSQL server for the whole run, with a migrated template that each test clones."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import hypothesis
import psutil
import psycopg
import pytest
from argon2 import PasswordHasher
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.engine import make_url
from werkzeug.routing import Rule

from portal import create_app
from portal.container import build_services
from portal.database.embedded import EmbeddedPostgres
from portal.database.lock import exclusive
from portal.database.server import cluster_files
from portal.domain.documents import DocumentSummary, Visibility
from portal.domain.people import User
from portal.domain.search.bm25 import INDEXES
from portal.embeddings.calibration import Calibration
from portal.embeddings.providers import bundled
from portal.services import Services
from portal.services.documents import library
from portal.services.documents.ingestion import indexing
from portal.services.documents.intake import uploads
from portal.services.operations import health, setup
from portal.services.operations.reports import scraping
from portal.services.people import accounts, sessions
from portal.settings import Settings, load_settings
from tests.factories.compiled import (
    CompiledTemplates,
    calibrated_once,
    compiled_once,
    loaded_once,
    share_statements,
)
from tests.factories.uploads import upload

_OTHER_VARIABLES = {"DATABASE_URL", "REDIS_URL", "PROMETHEUS_MULTIPROC_DIR"}
# Deadlines of examples would fail on a busy machine.
hypothesis.settings.register_profile(
    "portal", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("portal")

_OWN_DATA = str(Path(__file__).resolve().parents[1] / "var")
_EVENTS_OF_FILES = {"open", "os.mkdir", "os.remove", "os.rename", "os.link", "os.truncate"}
_RUN_DIR = pytest.StashKey[Path]()
_MODEL_BYTES = 400 * 1024**2
_kept_bytes = [0]  # After the last collection.
PASSWORD = "correct horse battery"
TEMPLATE = "portal_template"
TEMPLATE_DATA = "template-data"
# Tests create and drop databases all the time and keep none, so durability is not needed.
SERVER = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
SERVER |= {"shared_buffers": "256MB", "max_connections": "200", "autovacuum": "off"}
SERVER |= {"max_wal_size": "256MB"}  # The folder may be in memory.
_DEFINITIONS = """
    SELECT relname, pg_get_indexdef(oid) AS statement FROM pg_class WHERE relname = ANY(:names)
"""


def make_settings(data_dir: Path, url: str, **overrides: object) -> Settings:
    values: dict[str, object] = {
        "database_url": url,
        "data_dir": data_dir,
        "admin_password": PASSWORD,
        "secret_key": "a key for tests that is long enough for HS256",
        "embedding": {"provider": "hashing"},
        "database_pool_size": 5,
        "rate_limits": {"enabled": False},
        # Tests compare the metrics before and after a request.
        "metrics": {"cached_s": 0},
    }
    return load_settings(**(values | overrides))


@pytest.fixture(autouse=True, scope="session")
def _no_settings_of_this_machine() -> Iterator[None]:
    """Keep the settings of the environment away from the tests."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith("PORTAL_") or name in _OTHER_VARIABLES:
                patch.delenv(name)
        patch.setenv("PORTAL_CONFIG", os.devnull)
        yield


@pytest.fixture(autouse=True, scope="session")
def _touched() -> list[str]:
    """Record the files of the checkout's own data directory that this process touches."""
    touched: list[str] = []

    def note(event: str, args: tuple[object, ...]) -> None:
        if event in _EVENTS_OF_FILES and isinstance(args[0], (str, bytes, Path)):
            path = os.path.abspath(os.fsdecode(args[0]))  # noqa: PTH100 - on every file opened
            if path == _OWN_DATA or path.startswith(_OWN_DATA + os.sep):
                touched.append(path)

    sys.addaudithook(note)
    return touched


@pytest.fixture(autouse=True)
def _leaves_the_checkouts_data_alone(_touched: list[str]) -> Iterator[None]:
    """Fail a test that uses ./var, which may belong to a portal running from this checkout."""
    was_there = Path(_OWN_DATA).exists()
    del _touched[:]
    yield
    assert not _touched, f"the test uses the checkout's data directory: {sorted(set(_touched))}"
    # This also catches processes that a test starts, unless ./var existed before.
    assert Path(_OWN_DATA).exists() == was_there, f"the test made {_OWN_DATA}"


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let SIGINT interrupt even if the tests were started with SIGINT ignored, as in the background
    of a script or by nohup."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True, scope="session")
def _passwords_are_hashed_quickly() -> Iterator[None]:
    """Hash passwords at the lowest cost: a real hash takes a tenth of a second, 64 MB and all
    cores, and nearly every test creates an account."""
    with pytest.MonkeyPatch.context() as patch:
        quick = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
        patch.setattr(accounts, "_hasher", quick)
        yield


@pytest.fixture(autouse=True)
def health_waits() -> Iterator[None]:
    """Let checks of health and metrics wait for the database: other tests keep all cores busy, and
    a check that gives up after half a second reports it as unavailable. Overridden by the tests of
    that half second."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(health, "_TIMEOUT_S", 10.0)
        patch.setattr(health, "_COUNTING_TIMEOUT_S", 10.0)
        patch.setattr(scraping, "_TIMEOUT_S", 10.0)
        yield


@pytest.fixture(autouse=True, scope="session")
def _all_is_compiled_once() -> Iterator[None]:
    """Share compiled templates, URL rules and statements, certificates and calibrations between the
    many applications of a run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Flask, "jinja_options", {"bytecode_cache": CompiledTemplates()})
        patch.setattr(Rule, "compile", compiled_once(Rule.compile))
        patch.setattr(Calibration, "for_model", calibrated_once(Calibration.for_model))
        patch.setattr(httpx, "create_ssl_context", loaded_once(httpx.create_ssl_context))
        share_statements(patch)
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("portal")
    group.addoption("--faults", action="store_true", help="the long round of tests/faults")
    group.addoption(
        "--tries", type=int, default=200, help="of the attack in test_hidden_statistics.py"
    )
    group.addoption(
        "--without-pg-textsearch",
        action="store_true",
        help="run on a server that has pgvector and no BM25",
    )
    group.addoption("--seed", type=int, help="repeat a round of tests/faults that failed")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("without_pg_textsearch"):
        cluster_files.pg_textsearch_prefix = lambda: None
    worker_input = getattr(config, "workerinput", None)
    run_id = worker_input["testrunuid"] if worker_input else uuid4().hex
    # Not in pytest's own temporary folder, which other users cannot read: under root the server
    # runs as another user.
    config.stash[_RUN_DIR] = Path(_fast_folder()) / f"portal-tests-{run_id}"
    if worker_input is None:
        config.option.testrunuid = run_id  # Xdist passes this to its workers.


def _fast_folder() -> str:
    """Return the file system in memory if it has room: each test clones and drops 600 files, which
    takes half as long there."""
    memory = "/dev/shm"
    has_room = Path(memory).is_dir() and shutil.disk_usage(memory).free > 4 * 1024**3
    return memory if has_room else tempfile.gettempdir()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run slow modules first, so that none is left to start at the end."""
    if cluster_files.pg_textsearch_prefix() is None:
        skip = pytest.mark.skip(reason="the server has no pg_textsearch")
        for item in items:
            if item.get_closest_marker("bm25"):
                item.add_marker(skip)
    slow = {item.path for item in items if any(map(item.get_closest_marker, ("slow", "e2e")))}
    items.sort(key=lambda item: item.path not in slow)


def pytest_collection_finish() -> None:
    """Exempt imported objects from garbage collection: scanning those 400,000 objects again and
    again would take a tenth of the run."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)


def pytest_runtest_logfinish() -> None:
    """Free models in reference cycles, which the collector counts as few small objects."""
    process = psutil.Process()
    if process.memory_info().rss > _kept_bytes[0] + _MODEL_BYTES:
        gc.collect()
        _kept_bytes[0] = process.memory_info().rss


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        shutil.rmtree(config.stash[_RUN_DIR], ignore_errors=True)


@pytest.fixture(scope="session")
def run_dir(request: pytest.FixtureRequest) -> Path:
    """Return a folder shared by all workers of this run."""
    path = request.config.stash[_RUN_DIR]
    path.mkdir(exist_ok=True)
    return path


@pytest.fixture(scope="session")
def server_url(run_dir: Path) -> Iterator[str]:
    """Yield the run's PostgreSQL: the first worker starts it, the last stops it."""
    server = EmbeddedPostgres(run_dir / "shared-server", extra_settings=SERVER)
    yield server.start()
    server.leave()


@pytest.fixture(scope="session")
def template(server_url: str, run_dir: Path) -> str:
    """Return the name of a migrated database to clone, with its model partition.

    It has no keyword indexes: early pg_textsearch identifies them by a number that clones share.
    """
    with exclusive(run_dir / "template.lock"):
        if _execute(server_url, f"SELECT 1 FROM pg_database WHERE datname = '{TEMPLATE}'"):
            return TEMPLATE
        _execute(server_url, f"CREATE DATABASE {TEMPLATE}_new")
        settings = make_settings(run_dir / TEMPLATE_DATA, _with_name(server_url, f"{TEMPLATE}_new"))
        services = build_services(settings)
        list(setup.prepare_database(services))
        with services.database.engine.begin() as connection:
            names = {"names": [index.name for index in INDEXES]}
            found = connection.execute(text(_DEFINITIONS), names).all()
            for name, _ in found:
                connection.execute(text(f"DROP INDEX {name}"))
        statements = "; ".join(row.statement for row in found).replace("'", "''")
        _execute(server_url, f"COMMENT ON DATABASE {TEMPLATE}_new IS '{statements}'")
        services.database.dispose()
        # Renamed once complete, so that other workers never see it half done.
        _execute(server_url, f"ALTER DATABASE {TEMPLATE}_new RENAME TO {TEMPLATE}")
    return TEMPLATE


@cache
def _keyword_indexes(server_url: str, template: str) -> str:
    """Return the statements that create the keyword indexes dropped from the template."""
    comment = "SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname ="
    (statements,) = _execute(server_url, f"{comment} '{template}'")
    return str(statements or "")


def _with_name(url: str, name: str) -> str:
    return make_url(url).set(database=name).render_as_string(hide_password=False)


@cache
def _server_engine(url: str) -> Engine:
    return create_engine(url, isolation_level="AUTOCOMMIT", pool_size=1)


def _execute(server_url: str, statement: str) -> list[object]:
    with _server_engine(server_url).connect() as connection:
        result = connection.execute(text(statement))
        return list(result.scalars()) if result.returns_rows else []


@pytest.fixture
def database_url(server_url: str, template: str) -> Iterator[str]:
    """Yield the address of this test's own database."""
    with cloned_database(server_url, template) as url:
        yield url


@contextmanager
def cloned_database(server_url: str, template: str) -> Iterator[str]:
    """Yield the address of a fresh copy of the template, dropped at the end."""
    name = f"test_{uuid4().hex}"
    # Copying files takes a third of the time of copying through the write-ahead log.
    _execute(server_url, f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
    url = _with_name(server_url, name)
    if statements := _keyword_indexes(server_url, template):
        # In one message, and without an engine, which would first ask the server what it is.
        address = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
        with psycopg.connect(address) as connection:
            connection.execute(statements.encode())
    yield url
    _execute(server_url, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def make_services(
    database_url: str, tmp_path: Path, run_dir: Path
) -> Iterator[Callable[..., Services]]:
    """Return a function that builds services with other settings on this test's database."""
    made: list[Services] = []
    # The template's model has embedded its background, which is the same for every test.
    shutil.copytree(run_dir / TEMPLATE_DATA / "cache", tmp_path / "cache")

    def make(**overrides: object) -> Services:
        made.append(build_services(make_settings(tmp_path, database_url, **overrides)))
        return made[-1]

    yield make
    for services in made:
        services.database.dispose()


@pytest.fixture
def services(make_services: Callable[..., Services]) -> Services:
    return make_services()


@cache
def _load_bundled(threads: int) -> bundled.Model:
    return bundled.MODELS[bundled.E5][1](threads, None)


@pytest.fixture(scope="module")
def loaded_model() -> Iterator[None]:
    """Load the bundled model once a process: loading and testing it takes seconds."""
    _load_bundled(threads := os.cpu_count() or 1)
    loaded = (384, lambda _threads, _cache_dir: _load_bundled(threads))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(bundled.MODELS, bundled.E5, loaded)
        yield


@pytest.fixture
def make_reading_services(
    make_services: Callable[..., Services], loaded_model: None
) -> Callable[..., Services]:
    """Return a function like `make_services`, with the bundled model."""
    return partial(make_services, embedding={"provider": "bundled"})


@dataclass(frozen=True)
class Portal:
    """Shortcuts for what tests do with a portal."""

    services: Services
    admin: User

    @classmethod
    def of(cls, services: Services) -> Portal:
        """Return the portal of these services, with its first administrator."""
        accounts.ensure_first_administrator(services)
        return cls(services, accounts.find_user(services, "admin"))

    def app(self) -> Flask:
        """Return an application whose errors become responses, as in production, instead of being
        raised into the test."""
        app = create_app(self.services)
        app.testing = True
        app.config["PROPAGATE_EXCEPTIONS"] = False
        return app

    def user(self, name: str, *, is_admin: bool = False) -> User:
        return accounts.create_user(self.services, name=name, password=PASSWORD, is_admin=is_admin)

    def add(
        self,
        content: str | bytes,
        *,
        name: str = "note.txt",
        owner: User | None = None,
        visibility: Visibility = Visibility.SHARED,
        domain: str | None = None,
        title: str | None = None,
    ) -> DocumentSummary:
        """Store a document and index it."""
        owner = owner or self.admin
        receipt = uploads.store_upload(
            self.services,
            owner,
            stream=upload(content),
            file_name=name,
            title=title,
            domain=domain,
            visibility=visibility,
        )
        document = receipt.document
        if document.job_id is not None:
            indexing.index_document(self.services, document.job_id)
        return library.get_summary(self.services, owner, document.id)

    def token(self, user: User) -> str:
        return sessions.token_for(self.services, user, ttl_s=600)

    def headers(self, user: User | None = None) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token(user or self.admin)}"}

    def client(self, user: User | None = None) -> FlaskClient:
        """Return a client that sends the user's token with each request."""
        client = self.app().test_client()
        client.environ_base["HTTP_AUTHORIZATION"] = self.headers(user)["Authorization"]
        return client

    def execute(self, statement: str, **values: object) -> None:
        """Run a statement in its own transaction."""
        with self.services.database.begin() as session:
            session.execute(text(statement), values)

    def scalars(self, statement: str, **values: object) -> list[Any]:
        """Return the first column of a query's rows."""
        with self.services.database.begin() as session:
            return list(session.scalars(text(statement), values))

    def scalar(self, statement: str, **values: object) -> Any:
        """Return the first column of a query's first row, None without any."""
        with self.services.database.begin() as session:
            return session.scalar(text(statement), values)


@pytest.fixture
def portal(services: Services) -> Portal:
    return Portal.of(services)


@pytest.fixture
def client(portal: Portal) -> FlaskClient:
    return portal.app().test_client()
