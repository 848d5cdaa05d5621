"""Fixtures of these tests."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from click.testing import CliRunner, Result

from portal.domain.documents import Visibility
from portal.processes.cli import main
from portal.services.documents import library, selections
from portal.services.documents.intake import uploads
from tests.conftest import Portal, _execute, _with_name
from tests.factories.uploads import upload
from tests.integration.operations.backups.dumps.portals import KEY, OFFICE, SECRET

LEAVE = "员工每年有十五天带薪年假。病假需要医生证明。"
# Two full parts and a remainder; incompressible, and not a readable PDF.
LARGE = b"%PDF-1.7\n" + os.urandom(2_200_000)


@pytest.fixture
def blank_url(server_url: str) -> Iterator[str]:
    """Yield the address of an empty database, as `createdb` leaves it."""
    name = f"test_{uuid4().hex}"
    _execute(server_url, f"CREATE DATABASE {name} TEMPLATE template0")
    yield _with_name(server_url, name)
    _execute(server_url, f"DROP DATABASE {name} WITH (FORCE)")


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
    selections.set_switch(portal.services, ada, None, office.id, False)
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
