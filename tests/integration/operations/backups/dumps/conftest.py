"""Fixtures for the tests of backups and restores."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from click.testing import CliRunner, Result

from bench import databases
from portal.container import build_services
from portal.domain.documents import Visibility
from portal.domain.search import SearchMode, SearchRequest
from portal.processes.cli import main
from portal.services import Services
from portal.services.documents import library, switches
from portal.services.documents.intake import uploads
from portal.services.operations import setup
from portal.services.people import accounts
from portal.services.search import engine
from tests.conftest import Portal, make_settings
from tests.factories.uploads import upload

LEAVE = "员工每年有十五天带薪年假。病假需要医生证明。"
# Two full parts and a remainder; incompressible, and not a readable PDF.
LARGE = b"%PDF-1.7\n" + os.urandom(2_200_000)


@pytest.fixture
def blank_url(server_url: str) -> Iterator[str]:
    """Yield the address of an empty database, as `createdb` leaves it."""
    with databases.temporary(server_url, f"test_{uuid4().hex}", "TEMPLATE template0") as url:
        yield url


@pytest.fixture
def run(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return a runner of commands, on this test's database and data directory by default."""
    monkeypatch.setenv("PORTAL_EMBEDDING__PROVIDER", "hashing")
    (tmp_path / "secret_key").write_text(KEY, encoding="ascii")

    def call(*arguments: str | Path, url: str = database_url, data_dir: Path = tmp_path) -> Result:
        monkeypatch.setenv("DATABASE_URL", url)
        monkeypatch.setenv("PORTAL_DATA_DIR", str(data_dir))
        result = CliRunner().invoke(main, [str(each) for each in arguments], catch_exceptions=False)
        gc.collect()  # Close the command's connections, which otherwise end with its process.
        return result

    return call


@pytest.fixture
def full(portal: Portal, tmp_path: Path) -> Portal:
    """Return a portal with data of every kind and no open connections."""
    ada = portal.user("ada")
    portal.user("bob")
    office = portal.add(OFFICE, name="handbook.md")
    portal.add(LEAVE, name="年假规定.txt")
    portal.add(SECRET, name="secret.txt", owner=ada, visibility=Visibility.PRIVATE)
    thrown = portal.add("Thrown away.", name="old.txt")
    library.delete_document(portal.services, portal.admin, thrown.id)
    switches.set_switch(portal.services, ada, None, office.id, False)
    for name, content in (("later.txt", "Read me later."), ("scan.pdf", LARGE)):
        uploads.store_upload(
            portal.services,
            ada,
            stream=upload(content),
            file_name=name,
            title=None,
            domain=None,
            visibility=Visibility.SHARED,
        )
    portal.services.database.dispose()
    return portal


OFFICE = "The office closes at six. Visitors must sign in at the front desk."
SECRET = "The merger is called Kingfisher."
KEY = "the key that this portal made and keeps, of good length"


@contextmanager
def services_on(url: str, data_dir: Path) -> Iterator[Services]:
    services = build_services(make_settings(data_dir, url, secret_key=None))
    yield services
    services.database.dispose()


def everything_seen(services: Services) -> list[Any]:
    """Return the results of searches, and the originals byte for byte."""
    # An index counts deleted rows until it is rebuilt; a restored index is new.
    setup.repair_keyword_index(services)
    found: list[Any] = []
    for name in ("admin", "ada"):
        user = accounts.find_user(services, name)
        for query in ("年假有几天", "When does the office close?", "Kingfisher"):
            for mode in SearchMode:
                hits = engine.search(services, user, SearchRequest(query=query, mode=mode))
                # Confidence and the order of ties may differ until the model is calibrated.
                found += sorted(
                    (str(hit.chunk_id), hit.text_score, hit.vector_score) for hit in hits.hits
                )
        for document in library.list_documents(services, user).items:
            original = library.open_file(services, user, document.id)
            found.append((document.id, document.status, b"".join(original.parts)))
        found += [document.id for document in library.list_trash(services, user).items]
    return found


def own(directory: Path) -> tuple[str, Path]:
    return "--identity", directory / "identity"
